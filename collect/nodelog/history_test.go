package nodelog

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pasts are what a sink was told of the past, and everything else that it was
// told.
type pasts struct {
	told   []*collect.RulesPast
	events []collect.Event
}

func (p *pasts) Emit(e collect.Event) {
	if x, ok := e.Payload.(*collect.RulesPast); ok {
		p.told = append(p.told, x)
	}
	p.events = append(p.events, e)
}

// last prints the past that was told last: when, as seconds from noon, which
// Service, how many endpoints.
func (p *pasts) last() string {
	if len(p.told) == 0 {
		return "nothing"
	}
	x := p.told[len(p.told)-1]
	out := fmt.Sprintf("from %s", x.From.Sub(noon))
	for _, c := range x.Changes {
		out += fmt.Sprintf(", %s %s=%d", c.At.Sub(noon), c.Service, c.Endpoints)
		if c.Generation > 0 {
			out += fmt.Sprintf(" gen %d", c.Generation)
		}
		if !c.NotBefore.IsZero() {
			out += fmt.Sprintf(" not before %s", c.NotBefore.Sub(noon))
		}
	}
	return out
}

// writer writes an agent's lines by the clock of its node.
type writer struct {
	seq  uint64
	gen  uint32
	boot string
}

func (w *writer) at(s float64, p collect.Payload) collect.Event {
	w.seq++
	return collect.Event{Seq: w.seq, At: noon.Add(time.Duration(s * float64(time.Second))), Source: collect.RulesSource("node-1"), Payload: p}
}

func (w *writer) rules(s float64, baseline bool, ports ...collect.RulePort) collect.Event {
	w.gen++
	return w.at(s, &collect.Rules{Node: "node-1", Generation: w.gen, Baseline: baseline, Ports: ports})
}

func (w *writer) state(s float64, started float64, clock collect.NodeClock) collect.Event {
	at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
	return w.at(s, &collect.AgentState{Node: "node-1", Instance: "a", Started: at(started), Uptime: at(s).Sub(at(started)), Heartbeat: 10 * time.Second, Clock: clock})
}

// of is a Service's port with n endpoints.
func of(svc, port string, n int) collect.RulePort {
	p := webPort()
	p.Service, p.Port = svc, port
	for i := range n {
		p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}), 80))
	}
	return p
}

func keyframeOf(gen uint32, ports ...collect.RulePort) *collect.Keyframe {
	k := &collect.Keyframe{Node: "node-1", Generation: gen}
	for _, p := range ports {
		k.Ports = append(k.Ports, collect.KeyPort{RulePort: p, Digest: p.Digest(), N: len(p.Endpoints), Whole: true})
	}
	return k
}

func one() collect.NodeClock { return collect.NodeClock{Boot: "here"} }

// pastOf reads lines as a log's past, all at once at 12:10, and comes then.
func pastOf(viewer func() collect.NodeClock, lines ...collect.Event) (*stream, *pasts) {
	told := &pasts{}
	s := newStream("node-1", told, newKnown(), nil, viewer)
	at := noon.Add(10 * time.Minute)
	for _, l := range lines {
		s.line(l, at)
	}
	s.present(at)
	return s, told
}

func TestThePastIsToldWithItsChanges(t *testing.T) {
	w := &writer{}
	a := of("web", "http", 2)
	// Two ports lead to the same pods: they count once.
	_, told := pastOf(one, w.state(0, 0, one()), w.rules(1, true, a, of("web", "admin", 2), of("api", "", 1)),
		w.rules(60, false, of("web", "http", 4)), w.at(61, &collect.Vouch{Until: noon.Add(61 * time.Second)}),
		w.rules(90, false, of("api", "", 1)), // as it was: no change
		w.rules(120, false, of("web", "http", 3)), w.rules(130, false, of("dns", "", 1)),
		w.at(180, keyframeOf(5, of("web", "http", 3), of("web", "admin", 2), of("api", "", 1), of("dns", "", 1))),
		w.rules(590, false, of("dns", "", 2)))
	want := "from 1s, 1s web=2, 1s dns=0, 1m0s web=4 gen 2, 2m0s web=3 gen 4, 2m10s dns=1 gen 5, 9m50s dns=2 gen 6"
	if got := told.last(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if len(told.told) != 1 {
		t.Errorf("told %d times", len(told.told))
	}
	// It comes after the baseline, and does not come before it in time.
	var last time.Time
	known := false
	for _, e := range told.events {
		if !strings.HasPrefix(string(e.Source), collect.SourceRulesPrefix) {
			continue
		}
		if e.At.Before(last) {
			t.Errorf("%s goes back", e.Payload.Type())
		}
		last = e.At
		switch e.Payload.(type) {
		case *collect.Rules:
			known = true
		case *collect.RulesPast:
			if !known {
				t.Error("the past comes before the baseline")
			}
		}
	}
}

// An agent that starts anew tells everything once more: of a Service that is as it
// was, however many ports it has, that is no change.
func TestAnAgentThatStartsAnewChangesNothing(t *testing.T) {
	var ports []collect.RulePort
	for i := range 20 {
		ports = append(ports, of("web", fmt.Sprint("p", i*7%20), 2))
	}
	for range 10 { // ports are listed in a random order
		w := &writer{}
		again := w.state(30, 30, one())
		lines := []collect.Event{w.state(0, 0, one()), w.rules(1, true, append(ports, of("api", "", 1))...), w.rules(10, false, of("web", "p3", 1))}
		again.Seq, w.seq = 1, 1
		again.Payload.(*collect.AgentState).Instance = "b"
		now := append([]collect.RulePort{of("web", "p3", 1), of("api", "", 3)}, ports...)
		for i := range now[2:] {
			if now[2+i].Port == "p3" {
				now = append(now[:2+i], now[3+i:]...)
				break
			}
		}
		_, told := pastOf(one, append(lines, again, w.rules(31, true, now...))...)
		want := "from 1s, 1s web=2, 1s api=1, 10s web=2 gen 2, 31s api=3 gen 3"
		if got := told.last(); got != want {
			t.Fatalf("\n got %s\nwant %s", got, want)
		}
	}
}

// What is missing is a gap, and what changed within it is told as of its end.
func TestAGapInThePastIsNoContinuity(t *testing.T) {
	w := &writer{}
	lines := []collect.Event{w.state(0, 0, one()), w.rules(1, true, of("web", "", 2)), w.rules(60, false, of("web", "", 3)), w.at(61, &collect.Vouch{Until: noon.Add(61 * time.Second)})}
	w.rules(90, false, of("web", "", 9)) // lost
	lines = append(lines, w.rules(100, false, of("api", "", 1)), w.at(120, keyframeOf(4, of("web", "", 9), of("api", "", 1))), w.rules(200, false, of("web", "", 4)))
	_, told := pastOf(one, lines...)
	if got, want := told.last(), "from 1s, 1s web=2, 1s api=0, 1m0s web=3 gen 2, 2m0s api=1 gen 4, 2m0s web=9 gen 4, 3m20s web=4 gen 5"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if g := told.told[0].Gaps; len(g) != 1 || !g[0].From.Equal(noon.Add(61*time.Second)) || !g[0].To.Equal(noon.Add(120*time.Second)) {
		t.Errorf("gaps of the past %+v", g)
	}
	var gaps []collect.Gap
	for _, e := range told.events {
		if g, ok := e.Payload.(*collect.Gap); ok {
			gaps = append(gaps, *g)
		}
	}
	if len(gaps) != 1 || !gaps[0].From.Equal(noon.Add(61*time.Second)) || !gaps[0].To.Equal(noon.Add(120*time.Second)) {
		t.Errorf("gaps %+v", gaps)
	}
}

// When the viewer comes while something is missing, the past ends in a gap that is
// open, and what the lines in doubt told is not said.
func TestAPastCanEndInAGap(t *testing.T) {
	w := &writer{}
	lines := []collect.Event{w.state(0, 0, one()), w.rules(1, true, of("web", "", 2)), w.at(61, &collect.Vouch{Until: noon.Add(61 * time.Second)})}
	w.rules(90, false, of("web", "", 9)) // lost
	_, told := pastOf(one, append(lines, w.rules(100, false, of("api", "", 1)))...)
	if got, want := told.last(), "from 1s"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if g := told.told[0].Gaps; len(g) != 1 || !g[0].From.Equal(noon.Add(61*time.Second)) || !g[0].To.IsZero() {
		t.Errorf("gaps of the past %+v", g)
	}
}

func TestOfManyGapsTheLatestAreKept(t *testing.T) {
	h := &history{}
	h.start(noon)
	h.changes = []lineChange{{at: noon.Add(time.Second), service: serviceName{"default", "web"}, endpoints: 7}, {at: noon.Add(time.Hour), endpoints: 8}}
	for i := range pastGaps + 1 {
		h.miss(lineGap{from: noon.Add(time.Duration(10*i) * time.Second), to: noon.Add(time.Duration(10*i+5) * time.Second)})
	}
	if len(h.gaps) != pastGaps || !h.from.Equal(noon.Add(5*time.Second)) || len(h.changes) != 1 || h.base[serviceName{"default", "web"}] != 7 {
		t.Errorf("%d gaps, from %s, %d changes, base %v", len(h.gaps), h.from.Sub(noon), len(h.changes), h.base)
	}
}

func TestALogThatBeginsInTheMiddleHasNoPastBeforeAllIsKnown(t *testing.T) {
	w := &writer{seq: 41, gen: 7}
	_, told := pastOf(one, w.state(0, 0, one()), w.rules(1, false, of("web", "", 2)), w.at(30, keyframeOf(8, of("web", "", 2), of("api", "", 1))), w.rules(60, false, of("api", "", 5)))
	if got, want := told.last(), "from 30s, 30s api=1, 1m0s api=5 gen 9"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	_, told = pastOf(one, w.rules(1, false, of("web", "", 2)), w.rules(30, false, of("web", "", 3)))
	if got := told.last(); got != "nothing" {
		t.Errorf("of a log that tells changes only: %s", got)
	}
}

func TestOfManyChangesTheLatestAreKept(t *testing.T) {
	w := &writer{}
	lines := []collect.Event{w.state(0, 0, one()), w.rules(0, true, of("web", "", 1), of("api", "", 1))}
	for i := range pastMost + 10 {
		lines = append(lines, w.rules(float64(i+1)/10, false, of("web", "", 2+i%2)))
	}
	_, told := pastOf(one, lines...)
	x := told.told[0]
	if len(x.Changes) != pastMost+1 || x.Dropped != 10 || !x.From.Equal(noon.Add(time.Second)) || x.Changes[0].Endpoints != 3 || !x.Changes[0].At.Equal(x.From) {
		t.Errorf("%d changes, %d dropped, from %s, first %+v", len(x.Changes), x.Dropped, x.From.Sub(noon), x.Changes[0])
	}
	w = &writer{}
	_, told = pastOf(one, w.state(0, 0, one()), w.rules(0, true, of("web", "", 1)), w.rules(60, false, of("web", "", 2)), w.rules(100, false, of("web", "", 3)), w.rules(3690, false, of("api", "", 4)))
	if got, want := told.last(), "from 1m0s, 1m0s web=2, 1m0s api=0, 1m40s web=3 gen 3, 1h1m30s api=4 gen 4"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A clock that was set cannot be followed back.
func TestBeforeANodesClockWasSetNothingIsTold(t *testing.T) {
	w := &writer{}
	lines := []collect.Event{w.state(0, 0, one()), w.rules(1, true, of("web", "", 1)), w.rules(10, false, of("web", "", 2)), w.state(20, 0, one())}
	set := w.state(40, 0, one())
	set.Payload.(*collect.AgentState).Uptime = 30 * time.Second // 10 s were jumped over
	_, told := pastOf(one, append(lines, set, w.rules(50, false, of("web", "", 3)))...)
	if got, want := told.last(), "from 40s, 40s web=2, 50s web=3 gen 3"; got != want {
		t.Errorf("set:\n got %s\nwant %s", got, want)
	}
	w = &writer{}
	lines = []collect.Event{w.state(0, 0, collect.NodeClock{Boot: "a"}), w.rules(1, true, of("web", "", 1)), w.rules(10, false, of("web", "", 2))}
	anew := w.state(20, 20, one())
	anew.Payload.(*collect.AgentState).Instance = "b"
	_, told = pastOf(one, append(lines, anew, w.rules(21, true, of("web", "", 2)), w.rules(30, false, of("web", "", 4)), w.rules(40, false, of("web", "", 3)))...)
	if got := told.last(); !strings.HasPrefix(got, "from 20s, 20s web=2") {
		t.Errorf("started anew: %s", got)
	}
}

// Times on another clock carry its error, and how far it may have drifted.
func TestThePastCarriesTheClocksError(t *testing.T) {
	sync := func() collect.NodeClock {
		return collect.NodeClock{Synchronised: true, MaxError: 5 * time.Millisecond}
	}
	w := &writer{}
	_, told := pastOf(sync, w.state(0, 0, sync()), w.rules(0, true, of("web", "", 1)), w.rules(400, false, of("web", "", 2)), w.state(600, 0, sync()))
	x := told.told[0]
	if x.OneSided || x.Changes[1].Error < 110*time.Millisecond || x.Changes[1].Error > 112*time.Millisecond || x.FromError < 310*time.Millisecond {
		t.Errorf("synchronised: %+v", x)
	}
	_, told = pastOf(one, (&writer{}).state(0, 0, one()), (&writer{seq: 1}).rules(0, true, of("web", "", 1)), (&writer{seq: 2}).rules(400, false, of("web", "", 2)))
	if x := told.told[0]; x.FromError != 0 || x.OneSided {
		t.Errorf("one clock: %+v", x)
	}
}

// By the logs alone the past is where it can be at the latest; the first live
// line says more, and then the past is told once more.
func TestThePastIsToldAgainWhenTheClockIsKnownBetter(t *testing.T) {
	w := &writer{}
	s, told := pastOf(noClock, w.state(0, 0, noClock()), w.rules(0, true, of("web", "", 1)), w.rules(400, false, of("web", "", 2)), w.state(590, 0, noClock()))
	if len(told.told) != 1 || !told.told[0].OneSided {
		t.Fatalf("told %+v", told.told)
	}
	if at := told.told[0].Changes[1].At.Sub(noon); at < 410*time.Second || at > 411*time.Second {
		t.Errorf("the change at %s: the last line was read 10 s after it was written", at)
	}
	s.line(w.state(600, 0, noClock()), noon.Add(600*time.Second+5*time.Millisecond))
	if len(told.told) != 2 {
		t.Fatalf("told %d times", len(told.told))
	}
	if at := told.told[1].Changes[1].At.Sub(noon); at < 400*time.Second || at > 401*time.Second {
		t.Errorf("the change at %s", at)
	}
	for i := range 20 {
		s.line(w.state(610+float64(i), 0, noClock()), noon.Add(610*time.Second+time.Duration(i)*time.Second+4*time.Millisecond))
	}
	s.tick(noon.Add(20 * time.Minute))
	if len(told.told) != 2 || !s.hist.from.IsZero() {
		t.Errorf("told %d times, kept: %v", len(told.told), !s.hist.from.IsZero())
	}
}

func TestANodeThatRoutesElsewhereHasNoPast(t *testing.T) {
	w := &writer{}
	other := func(s float64) collect.Event {
		e := w.rules(s, false)
		e.Payload.(*collect.Rules).NoLayout = "Cilium routes here"
		return e
	}
	_, told := pastOf(one, w.rules(0, true, of("web", "", 1)), w.rules(10, false, of("web", "", 2)), other(20))
	if got := told.last(); got != "nothing" {
		t.Errorf("%s", got)
	}
}

func TestAFollowersPastHasItsChanges(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	for range 5 {
		c.write(p, s.change())
	}
	v := follow(t, c)
	v.until("the past is told", func() bool { return v.at("node-1").past != nil })
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.at("node-1").past
	if len(x.Changes) != 6 || x.Changes[5].Generation != s.gen || x.Changes[0].Generation != 0 {
		t.Errorf("%+v", x)
	}
}

func TestTheLinesThatAFileHasAreThePast(t *testing.T) {
	path := t.TempDir() + "/node-1.log"
	s := &script{node: "node-1", instance: "a"}
	write(t, path, bytes.Join(append(s.hello(), s.change(), s.change()), nil))
	v := &viewers{t: t, by: map[string]*viewer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewFile(FileOptions{Node: "node-1", Path: path, ReadClock: noClock}).Run(ctx, v) }()
	v.until("the past is told", func() bool { return v.at("node-1").past != nil && s.has(v.at("node-1")) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if x := v.at("node-1").past; len(x.Changes) != 3 || x.Changes[2].Generation != s.gen {
		t.Errorf("%+v", x)
	}
}
