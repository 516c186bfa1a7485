package nodelog

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// viewers are what a Follower tells, by node.
type viewers struct {
	t  *testing.T
	mu sync.Mutex
	by map[string]*viewer
	of collect.SourceState // of the following itself
}

func (v *viewers) Emit(e collect.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Source == collect.SourceAgents {
		v.of = *e.Payload.(*collect.SourceState)
		return
	}
	v.at(e.Object.Name).Emit(e)
}

func (v *viewers) at(node string) *viewer {
	if v.by[node] == nil {
		v.by[node] = newViewer(v.t)
	}
	return v.by[node]
}

// until waits for a condition of what was told.
func (v *viewers) until(what string, ok func() bool) {
	v.t.Helper()
	for i := 0; ; i++ {
		v.mu.Lock()
		done := ok()
		v.mu.Unlock()
		if done {
			return
		}
		if i > 24000 {
			v.t.Fatalf("still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// follow starts a Follower of the cluster.
func follow(t *testing.T, c *cluster) *viewers {
	t.Helper()
	return followSince(t, c, 0)
}

// followSince starts a Follower that reads logs that far back.
func followSince(t *testing.T, c *cluster, since time.Duration) *viewers {
	t.Helper()
	v := &viewers{t: t, by: map[string]*viewer{}}
	f, err := NewFollower(Options{Config: c.config(), ReadClock: noClock, ListEvery: c.listEvery, Since: since})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, v) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return v
}

// script writes an agent's lines.
type script struct {
	node     string
	instance string
	seq      uint64
	gen      uint32
}

func (s *script) line(p collect.Payload) []byte {
	s.seq++
	b, err := collect.Marshal(collect.Event{
		Seq: s.seq, At: time.Now(), Source: collect.RulesSource(s.node), Object: collect.ObjectKey{Kind: "Node", Name: s.node}, Payload: p,
	})
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

func (s *script) hello() [][]byte {
	s.gen++
	return [][]byte{
		s.line(&collect.AgentState{Node: s.node, Instance: s.instance, Started: time.Now(), Heartbeat: time.Hour}),
		s.line(&collect.Rules{Node: s.node, Generation: s.gen, Baseline: true, Ports: []collect.RulePort{s.port()}}),
		s.vouch(),
	}
}

// port is what the node routes at this generation.
func (s *script) port() collect.RulePort {
	return webPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(s.gen >> 8), byte(s.gen)}), 80))
}

func (s *script) vouch() []byte {
	return s.line(&collect.Vouch{Until: time.Now(), How: "heartbeat", Generation: s.gen})
}

func (s *script) change() []byte {
	s.gen++
	return s.line(&collect.Rules{Node: s.node, Generation: s.gen, Ports: []collect.RulePort{s.port()}})
}

func (s *script) keyframe() []byte {
	p := s.port()
	return s.line(&collect.Keyframe{Node: s.node, Generation: s.gen, Ports: []collect.KeyPort{{RulePort: p, Digest: p.Digest(), N: 1, Whole: true}}})
}

// has reports that the viewer knows the node's rules of this generation.
func (s *script) has(v *viewer) bool {
	p := s.port()
	got := v.rules[p.RulePortKey]
	return v.known && got.Digest() == p.Digest()
}

func TestAFollowerTellsThePastAsABaselineAndThenEveryChange(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	for range 20 {
		c.write(p, s.change())
	}
	v := follow(t, c)
	v.until("the past is known", func() bool { return s.has(v.at("node-1")) })
	v.mu.Lock()
	if n := v.at("node-1").n; n > 6 {
		t.Errorf("%d events of 20 changes in the past", n)
	}
	v.mu.Unlock()
	// Connections that break lose nothing and repeat nothing.
	for i := range 60 {
		c.write(p, s.change(), s.vouch())
		if i%10 == 5 {
			c.change(func() { p.epoch++ })
		}
	}
	v.until("every change was told", func() bool { return s.has(v.at("node-1")) })
	v.mu.Lock()
	defer v.mu.Unlock()
	if open := v.at("node-1").open(); len(open) > 0 {
		t.Errorf("open gaps %+v", open)
	}
	for _, g := range v.at("node-1").gaps {
		if g.Lost > 0 {
			t.Errorf("lost: %+v", g)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for what := range c.asked {
		if what != "GET pods" && what != "GET pods/log" {
			t.Errorf("asked: %s", what)
		}
	}
}

func TestARotatedLogLosesNothingInSilence(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	v := follow(t, c)
	v.until("the baseline", func() bool { return s.has(v.at("node-1")) })
	// More is written and rotated away than the follower can have read: the
	// log is not served meanwhile.
	c.change(func() {
		for range 50 {
			p.lines = append(p.lines, logLine{time.Now(), s.change()})
		}
		p.first = len(p.lines)
		p.lines = append(p.lines, logLine{time.Now(), s.change()})
	})
	v.until("a gap", func() bool { return len(v.at("node-1").gaps) == 1 })
	c.write(p, s.keyframe(), s.vouch())
	v.until("the gap is closed", func() bool { return len(v.at("node-1").open()) == 0 && s.has(v.at("node-1")) })
	v.mu.Lock()
	defer v.mu.Unlock()
	if g := v.at("node-1").gaps[0]; !strings.Contains(g.Why, "50 lines") {
		t.Errorf("gap %+v", g)
	}
}

func TestAViewerThatComesAfterARotationNeedsOneKeyframe(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	c.write(p, s.change(), s.change())
	c.change(func() { p.first = len(p.lines) - 1 })
	v := follow(t, c)
	v.until("it is said that the beginning is missing", func() bool {
		return v.at("node-1").state.State == collect.SourceListing && strings.Contains(v.at("node-1").state.Detail, "keyframe")
	})
	c.write(p, s.keyframe())
	v.until("everything is known", func() bool { return s.has(v.at("node-1")) && v.at("node-1").state.State == collect.SourceSynced })
}

func TestAKilledAgentAndItsSuccessor(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	v := follow(t, c)
	v.until("the baseline", func() bool { return s.has(v.at("node-1")) })
	c.change(func() { p.running = false })
	v.until("the gap is open and says why", func() bool {
		open := v.at("node-1").open()
		return len(open) == 1 && strings.Contains(open[0].Why, "137")
	})
	// The container starts anew in the same pod.
	again := &script{node: "node-1", instance: "b", gen: s.gen + 3}
	c.change(func() { p.running = true; p.lines, p.first = nil, 0 })
	c.write(p, again.hello()...)
	v.until("the gap is closed", func() bool { return len(v.at("node-1").open()) == 0 && again.has(v.at("node-1")) })
	// The pod is replaced by another one.
	c.change(func() { delete(c.pods, "agent-1") })
	v.until("a gap for the pod", func() bool { return len(v.at("node-1").open()) == 1 })
	third := &script{node: "node-1", instance: "c", gen: again.gen + 3}
	q := c.addPod("agent-2", "node-1", 2)
	c.write(q, third.hello()...)
	v.until("it is closed, too", func() bool { return len(v.at("node-1").open()) == 0 && third.has(v.at("node-1")) })
	c.write(q, third.change())
	v.until("changes go on", func() bool { return third.has(v.at("node-1")) })
}

func TestWhatIsForbiddenIsSaid(t *testing.T) {
	t.Run("list", func(t *testing.T) {
		c := newCluster(t)
		c.forbidden = "list"
		v := follow(t, c)
		v.until("it is said", func() bool {
			return v.of.State == collect.SourceForbidden && strings.Contains(v.of.Detail, "kconverge info --rbac")
		})
	})
	t.Run("log", func(t *testing.T) {
		c := newCluster(t)
		c.forbidden = "log"
		c.addPod("agent-1", "node-1", 1)
		v := follow(t, c)
		v.until("it is said of the node", func() bool { return v.at("node-1").state.State == collect.SourceForbidden })
		c.change(func() { c.forbidden = "" })
	})
	t.Run("nothing there", func(t *testing.T) {
		c := newCluster(t)
		v := follow(t, c)
		v.until("it is said", func() bool { return strings.Contains(v.of.Detail, "kconverge agent manifest") })
	})
}

// Five hundred agents through pods/log, each with changes, broken connections
// and a restart of some.
func TestFiveHundredAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("500 logs at a time")
	}
	fiveHundred(t, newCluster(t))
}

const agents = 500

// fiveHundred follows as many agents of a cluster, while their logs grow and break
// off.
func fiveHundred(t *testing.T, c *cluster) {
	t.Helper()
	const n = agents
	scripts, pods := make([]*script, n), make([]*testPod, n)
	for i := range n {
		name := nodeName(i)
		scripts[i] = &script{node: name, instance: "a"}
		pods[i] = c.addPod(agentName(i), name, 1)
		c.write(pods[i], scripts[i].hello()...)
	}
	before := heap()
	v := follow(t, c)
	all := func() bool {
		for _, s := range scripts {
			if !s.has(v.at(s.node)) {
				return false
			}
		}
		return true
	}
	v.until("every baseline", all)
	for round := range 5 {
		for i, s := range scripts {
			c.write(pods[i], s.change(), s.vouch())
			if i%100 == round {
				c.change(func() { pods[i].epoch++ })
			}
		}
		v.until("every change", all)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for node, x := range v.by {
		if len(x.open()) > 0 {
			t.Errorf("%s: %+v", node, x.gaps)
		}
	}
	mb := float64(heap()-before) / (1 << 20)
	t.Logf("%d logs at once: %.1f MB of heap with the test server's side", n, mb)
	if mb > n/2 { // ten times what it takes
		t.Errorf("%.1f MB for %d logs", mb, n)
	}
}

func nodeName(i int) string  { return fmt.Sprint("node-", i) }
func agentName(i int) string { return "agent-" + nodeName(i) }

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAFileIsFollowedAcrossRotation(t *testing.T) {
	path := t.TempDir() + "/node-1.log"
	s := &script{node: "node-1", instance: "a"}
	write(t, path, bytes.Join(s.hello(), nil))
	v := &viewers{t: t, by: map[string]*viewer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewFile(FileOptions{Node: "node-1", Path: path, ReadClock: noClock}).Run(ctx, v) }()
	v.until("what is there", func() bool { return s.has(v.at("node-1")) })
	// Half a line, then the rest.
	l := s.change()
	add(t, path, l[:20])
	add(t, path, l[20:])
	v.until("a change", func() bool { return s.has(v.at("node-1")) })
	// The file is moved away and begun anew, without a loss.
	rename(t, path, path+".1")
	write(t, path, bytes.Join([][]byte{s.change(), s.vouch()}, nil))
	v.until("a change in the new file", func() bool { return s.has(v.at("node-1")) })
	// It is cut off, and a line is lost by that.
	s.change()
	write(t, path, s.change())
	v.until("a gap", func() bool { return len(v.at("node-1").open()) == 1 })
	add(t, path, s.keyframe())
	v.until("the gap is closed", func() bool { return len(v.at("node-1").open()) == 0 && s.has(v.at("node-1")) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := NewFile(FileOptions{Node: "node-1", Path: path + ".none"}).Run(t.Context(), v); err == nil {
		t.Error("a file that is not there is no error")
	}
}
