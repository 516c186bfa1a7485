package lab_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// fault sets a fault for the rest of the test, unless it is cleared before.
func (w *world) fault(texts ...string) {
	w.Helper()
	if err := w.lab.SetFaults(w.Context(), "test", texts...); err != nil {
		w.Fatal(err)
	}
}

// added waits until a pod that was not there before is routed on all nodes but those
// left out, and returns its path.
func (w *world) added(before map[string]bool, nodes int, but ...string) *timeline.Path {
	w.Helper()
	var found *timeline.Path
	w.until("a new endpoint on every node but "+strings.Join(but, " "), func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		if svc == nil {
			return false
		}
		for _, p := range svc.Paths {
			if before[p.ID] || p.Op != timeline.OpAdd || len(p.Rules) < nodes {
				continue
			}
			arrived := 0
			for _, h := range p.Rules {
				if h.Status == timeline.StatusArrived {
					arrived++
				}
			}
			if arrived == nodes-len(but) && !slices.ContainsFunc(but, func(n string) bool { return hop(p, n).Status != timeline.StatusOpen }) || arrived == nodes {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func hop(p *timeline.Path, node string) timeline.Hop {
	for _, h := range p.Rules {
		if h.Plane.Node == node {
			return h
		}
	}
	return timeline.Hop{}
}

// paths are the IDs of those of the Service "web".
func (w *world) paths() map[string]bool {
	out := map[string]bool{}
	for _, p := range w.service(w.rt.Latest(), "web").Paths {
		out[p.ID] = true
	}
	return out
}

// steps keeps what the controllers and rule syncs did.
type steps struct {
	mu        sync.Mutex
	reconcile []collect.ReconcileStep
	sync      []collect.SyncStep
}

func (s *steps) Emit(e collect.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := e.Payload.(type) {
	case *collect.ReconcileStep:
		s.reconcile = append(s.reconcile, *p)
	case *collect.SyncStep:
		s.sync = append(s.sync, *p)
	}
}

func (s *steps) reconciled(ok func(collect.ReconcileStep) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reconcile, ok)
}

func (s *steps) synced(ok func(collect.SyncStep) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.sync, ok)
}

// TestFaultsOfNodes plays those of rule syncs and of the watches of one node's proxy.
func TestFaultsOfNodes(t *testing.T) {
	seen := &steps{}
	w := start(t, 3, seen)
	w.deploy(1, "200ms")
	w.settled()
	replicas := int32(1)
	more := func() map[string]bool {
		before := w.paths()
		replicas++
		w.scale(replicas)
		return before
	}
	t.Run("none", func(t *testing.T) {
		if seen.synced(func(s collect.SyncStep) bool { return s.Step == "failed" }) || len(w.rt.Latest().Faults) != 0 {
			t.Error("something failed without a fault")
		}
	})
	t.Run("sync-delay", func(t *testing.T) {
		w.fault("sync-delay=4s@node-2")
		p := w.added(more(), 3)
		if d := hop(p, "node-2").FromStep; d < 4*time.Second-hop(p, "node-2").Error {
			t.Errorf("the slow node was %v late, want 4s at least", d)
		}
		if a, b := hop(p, "node-1").FromStep, hop(p, "node-2").FromStep; a >= b {
			t.Errorf("node-1 was late by %v, node-2 by %v", a, b)
		}
		w.fault("sync-delay=off")
		s := w.settled()
		if n := len(s.Faults); n != 1 || s.Faults[0].Text() != "sync-delay 4s node-2" || s.Faults[0].To.IsZero() || s.Faults[0].By != "test" {
			t.Errorf("on the axis: %+v", s.Faults)
		}
	})
	t.Run("sync-fail", func(t *testing.T) {
		w.fault("sync-fail=on@node-2")
		before := more()
		p := w.added(before, 3, "node-2")
		w.until("a failed sync", func(*timeline.Snapshot) bool {
			return seen.synced(func(s collect.SyncStep) bool {
				return s.Node == "node-2" && s.Step == "failed" && strings.Contains(s.Detail, "sync-fail=on@node-2")
			})
		})
		if hop(p, "node-2").Status != timeline.StatusOpen {
			t.Error("a node whose syncs fail arrived")
		}
		if seen.synced(func(s collect.SyncStep) bool { return s.Node != "node-2" && s.Step == "failed" }) {
			t.Error("another node's syncs fail, too")
		}
		w.fault("sync-fail=off")
		more() // asks for a sync sooner than the 30 s after which a failed one is tried again
		w.settled()
	})
	t.Run("watch-hang", func(t *testing.T) {
		w.fault("watch-hang=on@node-3")
		p := w.added(more(), 3, "node-3")
		if h := hop(p, "node-3"); h.Status != timeline.StatusOpen {
			t.Errorf("a node that hears nothing is %s", h.Status)
		}
		seen.mu.Lock()
		n := 0
		for _, s := range seen.sync {
			if s.Node == "node-3" && s.Step == "received" {
				n++
			}
		}
		seen.mu.Unlock()
		w.fault("watch-hang=off")
		w.settled()
		after := 0
		seen.mu.Lock()
		for _, s := range seen.sync {
			if s.Node == "node-3" && s.Step == "received" {
				after++
			}
		}
		seen.mu.Unlock()
		if after <= n {
			t.Error("what was held back did not come")
		}
	})
	t.Run("watch-delay", func(t *testing.T) {
		w.fault("watch-delay=3s@node-3")
		p := w.added(more(), 3)
		if d := hop(p, "node-3").FromStep; d < 2900*time.Millisecond {
			t.Errorf("a node whose watch is 3s late was late by %v", d)
		}
		w.fault("watch-delay=off")
		w.settled()
	})
	t.Run("watch-drop", func(t *testing.T) {
		w.fault("watch-drop=1s@node-3")
		more()
		w.settled() // it watches again, and misses nothing
		w.fault("watch-drop=off")
	})
}
