package nodelog

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// What an agent says while nobody reads, and before it dies, is in the log of the
// container before the one that runs.
func TestWhatAnAgentSaidLastIsReadAfterItsRestart(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	v := follow(t, c)
	v.until("the baseline", func() bool { return s.has(v.at("node-1")) })
	from := s.gen
	var died time.Time
	again := &script{node: "node-1", instance: "b"}
	c.change(func() {
		for range 20 {
			p.lines = append(p.lines, logLine{time.Now(), s.change()}, logLine{time.Now(), s.vouch()})
		}
		died = time.Now()
		again.gen = s.gen + 3
		p.restart(again.hello()...)
		p.epoch++
	})
	v.until("the new one is heard", func() bool { return len(v.at("node-1").open()) == 0 && again.has(v.at("node-1")) })
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.at("node-1")
	for g := from + 1; g <= s.gen; g++ {
		if !x.exact[g] {
			t.Errorf("generation %d, of %d to %d, was not told as it happened", g, from+1, s.gen)
		}
	}
	var last collect.Gap
	for _, g := range x.gaps {
		if g.To.IsZero() || g.Lost > 0 {
			t.Errorf("gap %+v", g)
		}
		last = g
	}
	if last.Why != "the agent started anew" || last.To.Before(died) {
		t.Errorf("the agent died at %s and started anew: gaps %+v", died, x.gaps)
	}
}

// One that is not started again is read to its end before that is said.
func TestWhatAnAgentSaidLastIsReadWhenItDoesNotRunAgain(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	c.write(p, s.hello()...)
	v := follow(t, c)
	v.until("the baseline", func() bool { return s.has(v.at("node-1")) })
	// After a first break the follower waits before it asks again.
	c.change(func() { p.epoch++; p.lines = append(p.lines, logLine{time.Now(), s.change()}) })
	v.until("a change after a break", func() bool { return s.has(v.at("node-1")) })
	c.change(func() {
		p.running = false
		p.epoch++
		p.lines = append(p.lines, logLine{time.Now(), s.change()}, logLine{time.Now(), s.vouch()})
	})
	v.until("the gap is open", func() bool { return len(v.at("node-1").open()) == 1 })
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.at("node-1"); !x.exact[s.gen] || !s.has(x) {
		t.Errorf("the last change was not told as it happened: told %v", x.exact)
	}
}
