package lanes_test

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestAFallbackNamesTheTerminatingPodsThatAreRoutedTo(t *testing.T) {
	snap := lanestest.Fallback()
	svc := snap.Services[0]
	f, ok := lanes.FallbackAt(svc, snap.Now)
	if long, short := f.Text(); !ok || long != "fallback: nothing is ready, 2 terminating pods are still routed to" || short != "fallback to 2 terminating pods" {
		t.Errorf("%v: %q, %q", ok, long, short)
	}
	one := svc.Rules.All()[1]
	agrees := one.Members[0].Changes
	one.Members[0].Changes = append(agrees[:len(agrees):len(agrees)], timeline.MemberChange{At: snap.Now, Want: true})
	f, _ = lanes.FallbackAt(svc, snap.Now)
	if long, _ := f.Text(); long != "fallback: nothing is ready, 2 terminating pods should be routed to" {
		t.Errorf("while a node routes to one of them only: %q", long)
	}
	one.Members[0].Changes = agrees
	row := lanes.Instant(svc, snap.Now)[0]
	if row.Set != "2" || row.Diff != ".1.3  .2.2" || row.Note != "serving while terminating" {
		t.Errorf("wanted: %+v", row)
	}
	for _, p := range svc.Paths {
		if !lanes.Moved(svc, p) || lanes.PathCause(svc, p) != "kept by fallback" {
			t.Errorf("path %s: moved %v, cause %q", p.ID, lanes.Moved(svc, p), lanes.PathCause(svc, p))
		}
	}
}

func TestWithoutAFallbackNothingIsCalledOne(t *testing.T) {
	snap := lanestest.Fallback()
	svc := snap.Services[0]
	if _, ok := lanes.FallbackAt(svc, snap.Now.Add(-6*time.Second)); ok {
		t.Error("while both pods were ready")
	}
	svc.RoutedByProxy = false
	if _, ok := lanes.FallbackAt(svc, snap.Now); ok {
		t.Error("although nothing is routed by rules")
	}
	snap = lanestest.Converging()
	svc = snap.Services[0]
	for i := range 100 {
		if _, ok := lanes.FallbackAt(svc, snap.First.Add(snap.Now.Sub(snap.First)*time.Duration(i)/100)); ok {
			t.Errorf("in a Service that always had ready pods, at %d %%", i)
		}
	}
}
