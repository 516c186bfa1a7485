package live

import (
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

func snapshot(now, watermark int, change func(*timeline.Service)) *timeline.Snapshot {
	svc := &timeline.Service{Namespace: "default", Name: "web", State: timeline.Converged, Wanted: []timeline.Count{{At: at(0), N: 4}}}
	if change != nil {
		change(svc)
	}
	return &timeline.Snapshot{
		Now: at(now), Watermark: at(watermark), Services: []*timeline.Service{svc}, Workloads: map[string]timeline.Workload{},
		Sources: []timeline.SourceStatus{{ID: collect.SourcePods, Needed: true, Vouched: at(watermark)}},
	}
}

func differing(s *timeline.Service) {
	s.State = timeline.Converging
	s.Differences = []timeline.Difference{{Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: "node-3"}, Kind: "stale",
		Endpoint: timeline.Endpoint{EndpointID: timeline.EndpointID{IP: netip.MustParseAddr("10.244.3.5")}}}}
}

func unsettled(s *timeline.Service) {
	s.Workloads = []timeline.Workload{{Kind: "Deployment", Name: "web", Why: "4 of 7 replicas available"}}
}

func TestConvergedNeedsTheSourcesWordPastThatMoment(t *testing.T) {
	asked := 0
	cond := Convergence{Ask: func() { asked++ }}.Condition()
	for _, step := range []struct {
		s    *timeline.Snapshot
		ok   bool
		why  string
		asks int
	}{
		{snapshot(10, 9, differing), false, "default/web: rules@node-3 of 10.244.3.5 stale", 0},
		{snapshot(11, 10, nil), false, "word from kube/pods", 1},
		{snapshot(12, 10, differing), false, "default/web: rules@node-3 of 10.244.3.5 stale", 1}, // taken back
		{snapshot(13, 11, nil), false, "word from kube/pods", 2},                                 // vouched only for before
		{snapshot(14, 13, nil), true, "", 2},
	} {
		ok, why := cond(step.s)
		if ok != step.ok || why != step.why || asked != step.asks {
			t.Errorf("at %s: %v %q after %d asks, want %v %q after %d", step.s.Now.Format("05"), ok, why, asked, step.ok, step.why, step.asks)
		}
	}
}

func TestRightAfterAScaleAgreementIsNotDone(t *testing.T) {
	cond := Convergence{Settled: true}.Condition()
	if ok, why := cond(snapshot(10, 10, unsettled)); ok || why != "Deployment web: 4 of 7 replicas available" {
		t.Errorf("%v %q", ok, why)
	}
	s := snapshot(11, 11, nil)
	s.Workloads["Deployment/default/other"] = timeline.Workload{Kind: "Deployment", Name: "other", Why: "not observed"}
	if ok, why := cond(s); ok || why != "Deployment other: not observed" {
		t.Errorf("a workload that no Service selects yet is ignored: %v %q", ok, why)
	}
	if ok, _ := cond(snapshot(12, 12, nil)); !ok {
		t.Error("settled and agreeing is not converged")
	}
}

func TestTheWordMustReachTheEndOfTheCommand(t *testing.T) {
	cond := Convergence{After: at(20)}.Condition()
	if ok, _ := cond(snapshot(15, 15, nil)); ok {
		t.Error("converged before the command ended")
	}
	if ok, _ := cond(snapshot(21, 20, nil)); !ok {
		t.Error("not converged although the word reaches the command's end")
	}
}

func TestWaitingForAServiceAndItsEndpoints(t *testing.T) {
	cond := Convergence{Scope: Scope{Services: []string{"default/api"}}}.Condition()
	if ok, why := cond(snapshot(10, 10, nil)); ok || why != "Service default/api to exist" {
		t.Errorf("%v %q", ok, why)
	}
	cond = Convergence{Scope: Scope{Services: []string{"default/web"}}, MinEndpoints: 5}.Condition()
	if ok, why := cond(snapshot(10, 10, nil)); ok || why != "default/web to have 5 ready endpoints" {
		t.Errorf("%v %q", ok, why)
	}
	deleted := snapshot(10, 10, func(s *timeline.Service) { s.Deleted = at(9); s.State = timeline.Converging })
	if ok, _ := (Convergence{}.Condition())(deleted); !ok {
		t.Error("a deleted Service holds up the others")
	}
}

func TestSettledNeedsTheWordOfTheWorkloadsWatches(t *testing.T) {
	cond := Convergence{Settled: true, After: at(20)}
	s := snapshot(21, 21, nil)
	s.Sources = append(s.Sources, timeline.SourceStatus{ID: collect.SourceDeployments, State: collect.SourceSynced, Vouched: at(19)})
	if ok, why := cond.Condition()(s); ok || why != "word from kube/deployments" {
		t.Errorf("settled although the Deployments' watch has not told of the command: %v %q", ok, why)
	}
	s.Sources[1].Vouched = at(21)
	if ok, why := cond.Condition()(s); !ok {
		t.Errorf("not converged: %q", why)
	}
	if _, untold := cond.Untold(s); untold {
		t.Error("a watch that works is called untold")
	}
	s.Sources[1] = timeline.SourceStatus{ID: collect.SourceDeployments, State: collect.SourceForbidden}
	if ok, why := cond.Condition()(s); !ok {
		t.Errorf("waits for ever for a watch that is forbidden: %q", why)
	}
	if src, untold := cond.Untold(s); !untold || src.ID != collect.SourceDeployments {
		t.Errorf("untold is %v, %v", src.ID, untold)
	}
}
