package lab_test

import (
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// watchesApart is how far two watches of one API server may be apart: the model's
// reordering window.
const watchesApart = 30 * time.Millisecond

// commits keeps when the rule syncs of a node began to write and had written, by the
// generation, on the lab's own clock.
type commits struct {
	mu   sync.Mutex
	last map[string]time.Time // started
	of   map[string][][2]time.Time
}

func (c *commits) Emit(e collect.Event) {
	s, ok := e.Payload.(*collect.SyncStep)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.Step {
	case "started":
		c.last[s.Node] = e.At
	case "committed":
		c.of[s.Node] = append(c.of[s.Node], [2]time.Time{c.last[s.Node], e.At})
	}
}

// within reports that a sync of the node was under way somewhere in [from, to].
func (c *commits) within(node string, from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.of[node] {
		if !x[1].Before(from) && !x[0].After(to) {
			return true
		}
	}
	return false
}

// TestAWrongClockOfANodeMovesNoArrivalBeyondItsError lets a node's clock be nine
// minutes ahead, and compares what is told of its rules with when they were written.
func TestAWrongClockOfANodeMovesNoArrivalBeyondItsError(t *testing.T) {
	seen := &commits{last: map[string]time.Time{}, of: map[string][][2]time.Time{}}
	w := start(t, 2, seen)
	w.deploy(1, "200ms")
	w.settled()
	w.fault("clock-skew=9m@node-2")
	corrected := func(s *timeline.Snapshot) collect.ClockBound {
		for _, n := range s.Nodes {
			if n.Name == "node-2" {
				return n.Clock
			}
		}
		return collect.ClockBound{}
	}
	for replicas := int32(2); replicas <= 5; replicas++ {
		before := w.paths()
		w.scale(replicas)
		p := w.added(before, 2)
		h := hop(p, "node-2")
		from, to := h.At.Add(-h.Error), h.At.Add(h.Error)
		if !h.NotBefore.IsZero() {
			// The slice's arrival, by the viewer's watch: the proxy's own may be sooner.
			from = h.NotBefore.Add(-watchesApart)
		}
		if !seen.within("node-2", from, to) {
			t.Errorf("told to have arrived at %s ±%s (not before %s), when nothing was written: %v", h.At, h.Error, h.NotBefore, seen.of["node-2"])
		}
		if h.Lag.Abs() > time.Minute {
			t.Errorf("a lag of %s ±%s", h.Lag, h.Error)
		}
	}
	s := w.settled()
	if c := corrected(s); (c.Offset+9*time.Minute).Abs() > c.Error || c.OneSided || c.Error > 10*time.Second {
		t.Errorf("a clock that is nine minutes ahead is corrected by %+v", c)
	}
	w.fault("clock-skew=off")
	s = w.until("the clock is right", func(s *timeline.Snapshot) bool { return corrected(s).How == "one clock" })
	if c := corrected(s); c.Offset != 0 || c.Error != 0 {
		t.Errorf("a clock that is right is corrected by %+v", c)
	}
}
