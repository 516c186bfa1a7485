package lab_test

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// whole checks that a path arrived in the slices and on n nodes, in causal
// order within its stated errors.
func whole(t testing.TB, p *timeline.Path, n int) {
	t.Helper()
	if p.Slice == nil || p.Slice.Status != timeline.StatusArrived || len(p.Rules) != n {
		t.Errorf("%s %s (%s): slice %+v, %d nodes of %d", p.Op, p.Endpoint.Pod, p.Cause, p.Slice, len(p.Rules), n)
		return
	}
	if p.Slice.Lag < -p.Slice.Error {
		t.Errorf("%s %s: the slice came %s before its cause, error %s", p.Op, p.Endpoint.Pod, -p.Slice.Lag, p.Slice.Error)
	}
	for _, h := range p.Rules {
		if h.Status != timeline.StatusArrived || h.At.Before(p.Slice.At.Add(-h.Error)) {
			t.Errorf("%s %s on %s: %s at %s, slice at %s, error %s", p.Op, p.Endpoint.Pod, h.Plane.Node, h.Status, h.At, p.Slice.At, h.Error)
		}
	}
}

func TestAFallbackIsItsOwnStepAndNotLag(t *testing.T) {
	// Nearly all of the grace period: the second scaling has to come while the
	// first pod still terminates, on a slow machine, too.
	const stopAfter = 14 * time.Second
	w := start(t, 3)
	w.deploy(2, stopAfter.String())
	w.settled()
	first := w.service(w.rt.Latest(), "web")
	if n := first.Wanted[len(first.Wanted)-1].N; n != 2 {
		t.Fatalf("%d endpoints wanted, want 2", n)
	}

	// One goes, everywhere.
	w.scale(1)
	s := w.until("one endpoint on every node", func(s *timeline.Snapshot) bool { return have(s, 1, 3) })
	var gone timeline.EndpointID
	for _, p := range w.service(s, "web").Paths {
		if p.Op == timeline.OpRemove && p.Cause == timeline.CausePodTerminating {
			whole(t, p, 3)
			gone = p.Endpoint.EndpointID
		}
	}
	if gone.UID == "" {
		t.Fatal("no removal because of a terminating pod")
	}

	// The last ready one leaves while the first still terminates: both serve,
	// so kube-proxy routes to both until they are gone.
	w.scale(0)
	s = w.until("both terminating endpoints on every node", func(s *timeline.Snapshot) bool { return have(s, 2, 3) })
	found := false
	for _, p := range w.service(s, "web").Paths {
		if p.Cause == timeline.CauseFallback {
			found = true
			if p.Op != timeline.OpAdd || p.Endpoint.EndpointID != gone {
				t.Errorf("the fallback is a path %s of %v, want an addition of %v", p.Op, p.Endpoint.EndpointID, gone)
			}
		}
	}
	if !found {
		t.Error("no path has the cause fallback")
	}

	// What follows the pods' end is wanted only then: no hop is as long as
	// their termination.
	s = w.settled()
	if !have(s, 0, 3) {
		t.Error("endpoints are left")
	}
	for _, p := range w.service(s, "web").Paths {
		for _, h := range p.Rules {
			if h.Status == timeline.StatusArrived && h.Lag >= stopAfter {
				t.Errorf("%s %s (%s) took %s on %s", p.Op, p.Endpoint.Pod, p.Cause, h.Lag, h.Plane.Node)
			}
		}
	}
}

// have reports that n endpoints are routed on every one of the nodes and that
// nothing differs from what is wanted.
func have(s *timeline.Snapshot, n, nodes int) bool {
	svc := s.Service("default", "web")
	if svc == nil || svc.Rules.Len() != nodes || svc.State != timeline.Converged {
		return false
	}
	for _, p := range svc.Rules.All() {
		if c, ok := p.At(s.Now); !ok || c.Have != n {
			return false
		}
	}
	return true
}
