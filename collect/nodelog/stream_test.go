package nodelog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/agent"
)

// node is a real agent over scripted rules: what it prints is what a node's log
// holds.
type node struct {
	t     *testing.T
	name  string
	rng   *rand.Rand
	rules map[collect.RulePortKey]collect.RulePort
	gen   uint32
	lines [][]byte
}

func newNode(t *testing.T, name string, seed uint64) *node {
	return &node{t: t, name: name, rng: rand.New(rand.NewPCG(seed, 0)), rules: map[collect.RulePortKey]collect.RulePort{}}
}

// sets gives the node's rules, sorted.
func (n *node) sets() []collect.RulePort { return sorted(n.rules) }

func sorted(m map[collect.RulePortKey]collect.RulePort) []collect.RulePort {
	return slices.SortedFunc(maps.Values(m), func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
}

// change makes one Service port other than it was.
func (n *node) change() *collect.Rules {
	p := collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "default", Service: fmt.Sprint("svc-", n.rng.IntN(8)), Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
	}
	p.Frontends = []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.MustParseAddrPort("10.96.0.1:80")}}
	count := n.rng.IntN(6)
	switch n.rng.IntN(10) {
	case 0:
		count = 600 + n.rng.IntN(600) // more than a line holds
	case 1:
		p.Frontends, count = nil, 0 // gone
	}
	for range count {
		p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(n.rng.IntN(255)), byte(n.rng.IntN(255))}), 8080))
	}
	slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
	p.Endpoints = slices.Compact(p.Endpoints)
	if p.Empty() {
		delete(n.rules, p.RulePortKey)
	} else {
		n.rules[p.RulePortKey] = p
	}
	n.gen++
	return &collect.Rules{Node: n.name, Generation: n.gen, Ports: []collect.RulePort{p}}
}

// live runs an agent through some changes with a keyframe at the end, and keeps
// what it printed.
func (n *node) live(changes int) {
	n.t.Helper()
	out := &lockedBuffer{}
	emit := make(chan collect.Payload)
	src := sourceFunc(func(ctx context.Context, sink collect.Sink) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case p := <-emit:
				sink.Emit(collect.Event{At: time.Now(), Source: collect.RulesSource(n.name), Object: collect.ObjectKey{Kind: "Node", Name: n.name}, Payload: p})
			}
		}
	})
	ctx, stop := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Options{
			Node: n.name, Heartbeat: 2 * time.Millisecond, Keyframe: 5 * time.Millisecond,
			Rules: func() collect.Source { return src }, ReadClock: func() collect.NodeClock { return collect.NodeClock{} },
		}, out)
	}()
	n.gen++
	emit <- &collect.Rules{Node: n.name, Generation: n.gen, Baseline: true, Ports: n.sets()}
	for range changes {
		// What the agent has not printed yet must stay well below what it
		// keeps.
		for printed := out.Len(); n.rng.IntN(20) == 0 && out.Len() == printed; {
			time.Sleep(time.Millisecond)
		}
		emit <- n.change()
		emit <- &collect.Vouch{Until: time.Now(), How: "heartbeat", Generation: n.gen}
	}
	// Large sets take turns: all have been told in whole after a few.
	from := out.Len()
	for out.count(from, `"type":"keyframe"`) < 30 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		n.t.Fatal(err)
	}
	n.lines = append(n.lines, bytes.SplitAfter(bytes.TrimSpace(out.bytes()), []byte("\n"))...)
}

type sourceFunc func(context.Context, collect.Sink) error

func (f sourceFunc) Name() string                                     { return "rules" }
func (f sourceFunc) Run(ctx context.Context, sink collect.Sink) error { return f(ctx, sink) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

func (l *lockedBuffer) count(from int, what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.b.Bytes()[from:], []byte(what))
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// viewer is what a sink has been told about one node's rules.
type viewer struct {
	t     *testing.T
	rules map[collect.RulePortKey]collect.RulePort
	known bool
	exact map[uint32]bool // generations of changes that were told without an interval
	gaps  []collect.Gap   // with the same From replaced
	last  time.Time
	state collect.SourceState
	past  *collect.RulesPast
	n     int
}

func newViewer(t *testing.T) *viewer {
	return &viewer{t: t, rules: map[collect.RulePortKey]collect.RulePort{}, exact: map[uint32]bool{}}
}

func (v *viewer) Emit(e collect.Event) {
	if !strings.HasPrefix(string(e.Source), collect.SourceRulesPrefix) {
		return
	}
	v.n++
	if e.At.Before(v.last) {
		v.t.Errorf("%s went back by %s", e.Payload.Type(), v.last.Sub(e.At))
	}
	v.last = e.At
	switch p := e.Payload.(type) {
	case *collect.Rules:
		if p.Part != 0 || p.Parts != 0 {
			v.t.Error("a part was passed on")
		}
		if p.Baseline {
			clear(v.rules)
			v.known = true
		}
		if !v.known {
			v.t.Error("a change came before the first baseline")
		}
		if !p.Baseline && e.NotBefore.IsZero() {
			v.exact[p.Generation] = true
		}
		for _, port := range p.Ports {
			if port.Empty() {
				delete(v.rules, port.RulePortKey)
			} else {
				v.rules[port.RulePortKey] = port
			}
		}
	case *collect.Gap:
		if i := slices.IndexFunc(v.gaps, func(g collect.Gap) bool { return g.From.Equal(p.From) }); i >= 0 {
			v.gaps[i] = *p
		} else {
			v.gaps = append(v.gaps, *p)
		}
	case *collect.SourceState:
		v.state = *p
	case *collect.RulesPast:
		v.past = p
	case *collect.Vouch:
		if len(v.open()) > 0 {
			v.t.Error("vouched within a gap")
		}
	}
}

func (v *viewer) open() (open []collect.Gap) {
	for _, g := range v.gaps {
		if g.To.IsZero() {
			open = append(open, g)
		}
	}
	return open
}

// same checks that the viewer knows what the node does.
func (v *viewer) same(n *node) {
	v.t.Helper()
	got, want := sorted(v.rules), n.sets()
	if !slices.EqualFunc(got, want, func(a, b collect.RulePort) bool { return a.RulePortKey == b.RulePortKey && a.Digest() == b.Digest() }) {
		v.t.Errorf("the viewer has %d ports, the node %d, and they are not the same", len(got), len(want))
	}
}

func noClock() collect.NodeClock { return collect.NodeClock{} }

func (n *node) stream(v *viewer) *stream { return newStream(n.name, v, newKnown(), nil, noClock) }

// feed reads lines as they would come, a millisecond after they were written.
func feed(s *stream, lines [][]byte) {
	for _, l := range lines {
		e, err := collect.Unmarshal(l)
		if err != nil {
			s.read(bytes.TrimSpace(l), time.Now())
			continue
		}
		s.read(bytes.TrimSpace(l), e.At.Add(time.Millisecond))
	}
}

func TestAWholeLogIsFollowedWithoutAGap(t *testing.T) {
	n, v := newNode(t, "node-1", 1), newViewer(t)
	n.live(200)
	s := n.stream(v)
	s.present(time.Now())
	feed(s, n.lines)
	// The agent's last line says that it stopped.
	if len(v.gaps) > 0 {
		t.Errorf("gaps %+v", v.gaps)
	}
	if v.state.State != collect.SourceStopped {
		t.Errorf("state %+v", v.state)
	}
	v.same(n)
}

// Whatever part of a log is missing, in the past or in the present, is a gap,
// and after the next keyframes the viewer knows what the node does.
func TestNoLossIsSilent(t *testing.T) {
	n := newNode(t, "node-1", 2)
	n.live(120)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		// Rules change in the first part of the log, so at least the last
		// keyframes stand after any loss.
		span := lastRule(n.lines)
		from := 4 + rng.IntN(span-4)
		to := min(from+1+rng.IntN(12), span+1)
		lines := slices.Concat(n.lines[:from], n.lines[to:])
		present := rng.IntN(len(lines))
		v := newViewer(t)
		s := n.stream(v)
		feed(s, lines[:present])
		s.present(s.lineAt.Add(time.Millisecond))
		feed(s, lines[present:])
		if len(v.gaps) == 0 {
			t.Fatalf("seed %d: lines %d to %d are missing and no gap says so", seed, from, to)
		}
		if open := v.open(); len(open) > 0 {
			t.Errorf("seed %d: still open: %+v", seed, open)
		}
		v.same(n)
	}
}

// lastRule is the index of the last line that changes rules.
func lastRule(lines [][]byte) int {
	for i := len(lines) - 1; ; i-- {
		if bytes.Contains(lines[i], []byte(`"type":"rules"`)) {
			return i
		}
	}
}

func TestALogThatBeginsInTheMiddleIsKnownAfterKeyframes(t *testing.T) {
	n := newNode(t, "node-1", 3)
	n.live(60)
	for _, from := range []int{3, 10, 40, lastRule(n.lines)} {
		v := newViewer(t)
		s := n.stream(v)
		s.present(time.Now())
		feed(s, n.lines[from:])
		if !v.known {
			t.Fatalf("from line %d: nothing is known", from)
		}
		v.same(n)
	}
}

// A large set of which a keyframe has only the digest is found on another node.
func TestWhatAnotherNodeHasNeedNotBeTold(t *testing.T) {
	k := newKnown()
	big := webPort()
	for i := range 200 {
		big.Endpoints = append(big.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), 80))
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a, b := newViewer(t), newViewer(t)
	first, second := newStream("node-1", a, k, nil, noClock), newStream("node-2", b, k, nil, noClock)
	first.present(at)
	second.present(at)
	frame := &collect.Keyframe{Node: "node-2", Generation: 5, Ports: []collect.KeyPort{{RulePort: collect.RulePort{RulePortKey: big.RulePortKey}, Digest: big.Digest(), N: 200}}}
	second.line(collect.Event{Seq: 40, At: at, Payload: frame}, at)
	if b.known || b.state.State != collect.SourceListing {
		t.Fatalf("known from a digest alone: %+v", b.state)
	}
	first.line(collect.Event{Seq: 1, At: at, Payload: &collect.Rules{Node: "node-1", Generation: 9, Baseline: true, Ports: []collect.RulePort{big}}}, at)
	second.line(collect.Event{Seq: 41, At: at.Add(time.Second), Payload: frame}, at.Add(time.Second))
	if got := sorted(b.rules); !b.known || len(got) != 1 || got[0].Digest() != big.Digest() {
		t.Errorf("node-2 has %d ports", len(got))
	}
	first.table.clear()
	second.table.clear()
	if len(k.ports) > 0 {
		t.Errorf("%d sets are kept for nobody", len(k.ports))
	}
}

// A keyframe that contradicts the lines before it is a gap, and the keyframe
// wins.
func TestAKeyframeThatDisagreesIsAGap(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	addr := netip.MustParseAddrPort("10.244.0.1:80")
	v := newViewer(t)
	s := newStream("node-1", v, newKnown(), nil, noClock)
	s.present(at)
	s.line(collect.Event{Seq: 1, At: at, Payload: &collect.Rules{Node: "node-1", Generation: 1, Baseline: true, Ports: []collect.RulePort{webPort()}}}, at)
	p := webPort(addr)
	s.line(collect.Event{Seq: 2, At: at.Add(time.Second), Payload: &collect.Keyframe{Node: "node-1", Generation: 1, Ports: []collect.KeyPort{{RulePort: p, Digest: p.Digest(), N: 1, Whole: true}}}}, at.Add(time.Second))
	if len(v.gaps) != 1 || v.gaps[0].To.IsZero() || !strings.Contains(v.gaps[0].Why, "disagrees") {
		t.Errorf("gaps %+v", v.gaps)
	}
	if got := sorted(v.rules); len(got) != 1 || !slices.Equal(got[0].Endpoints, []netip.AddrPort{addr}) {
		t.Errorf("rules %+v", got)
	}
}

func TestAKilledAgentIsAGapUntilTheNext(t *testing.T) {
	n, v := newNode(t, "node-1", 4), newViewer(t)
	n.live(20)
	s := n.stream(v)
	s.present(time.Now())
	killed := n.lines[:lastRule(n.lines)] // no last words
	feed(s, killed)
	s.ended(time.Now(), "the agent's container ended")
	if open := v.open(); len(open) != 1 {
		t.Fatalf("open gaps %+v", open)
	}
	n.lines = nil
	n.live(20)
	feed(s, n.lines)
	if open := v.open(); len(open) > 0 || len(v.gaps) == 0 {
		t.Errorf("gaps %+v", v.gaps)
	}
	v.same(n)
	// Lines that are read again, as after a reconnection, change nothing.
	before := v.n
	feed(s, n.lines[len(n.lines)/2:])
	if v.n != before {
		t.Errorf("%d events from lines that were read before", v.n-before)
	}
}

func TestASilentAgentIsAGap(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := newViewer(t)
	s := newStream("node-1", v, newKnown(), nil, noClock)
	s.present(at)
	s.line(collect.Event{Seq: 1, At: at, Payload: &collect.AgentState{Node: "node-1", Instance: "1", Started: at, Heartbeat: 10 * time.Second}}, at)
	s.line(collect.Event{Seq: 2, At: at, Payload: &collect.Rules{Node: "node-1", Generation: 1, Baseline: true}}, at)
	s.tick(at.Add(29 * time.Second))
	if len(v.gaps) > 0 {
		t.Fatalf("gaps %+v", v.gaps)
	}
	s.tick(at.Add(31 * time.Second))
	if len(v.open()) != 1 {
		t.Fatalf("gaps %+v", v.gaps)
	}
	s.line(collect.Event{Seq: 3, At: at.Add(32 * time.Second), Payload: &collect.Vouch{Until: at.Add(32 * time.Second)}}, at.Add(32*time.Second))
	if len(v.open()) != 0 {
		t.Errorf("gaps %+v", v.gaps)
	}
}

func TestALineThatIsNoLineIsSaid(t *testing.T) {
	var said string
	s := newStream("node-1", collect.SinkFunc(func(e collect.Event) {
		if st, ok := e.Payload.(*collect.SourceState); ok && st.State == collect.SourceBroken {
			said = cmp.Or(said, st.Detail)
		}
	}), newKnown(), nil, noClock)
	s.present(time.Now())
	s.read([]byte("panic: runtime error\x1b[2J"), time.Now())
	if !strings.Contains(said, "panic: runtime error") || strings.Contains(said, "\x1b") {
		t.Errorf("said %q", said)
	}
	// A type of a newer agent is no loss.
	v := newViewer(t)
	s = newStream("node-1", v, newKnown(), nil, noClock)
	s.present(time.Now())
	feed(s, [][]byte{
		[]byte(`{"seq":1,"at":"2026-03-01T12:00:00Z","src":"rules/node-1","type":"rules","data":{"node":"node-1","generation":1,"baseline":true}}`),
		[]byte(`{"seq":2,"at":"2026-03-01T12:00:01Z","src":"agent/node-1","type":"weather","data":{"sun":true}}`),
		[]byte(`{"seq":3,"at":"2026-03-01T12:00:02Z","src":"rules/node-1","type":"vouch","data":{"until":"2026-03-01T12:00:02Z","how":"heartbeat"}}`),
	})
	if len(v.gaps) > 0 {
		t.Errorf("gaps %+v", v.gaps)
	}
}
