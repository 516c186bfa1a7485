package main

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestWhatWasNotHeardIsNotCalledConverged(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	watched := timeline.SourceStatus{ID: collect.SourcePods, State: collect.SourceSynced, Needed: true, Vouched: now}
	listing := timeline.SourceStatus{ID: collect.SourceServices, State: collect.SourceListing, Needed: true}
	for _, c := range []struct {
		name    string
		sources []timeline.SourceStatus
		gaps    []timeline.Gap
		code    int
		says    string
	}{
		{"everything is told", []timeline.SourceStatus{watched}, nil, exitOK, ""},
		{"the first list is still awaited", []timeline.SourceStatus{watched, listing}, nil, exitCannotTell, "kube/services has told nothing yet"},
		{"a watch is broken now", []timeline.SourceStatus{watched}, []timeline.Gap{{Source: collect.SourcePods, From: now, Why: "connection refused"}}, exitCannotTell, "kube/pods is in a gap: connection refused"},
		{"a watch was broken", []timeline.SourceStatus{watched}, []timeline.Gap{{Source: collect.SourcePods, From: now, To: now.Add(time.Second)}}, exitOK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &timeline.Snapshot{Now: now, Sources: c.sources, Gaps: c.gaps}
			err := verdict(s, live.Scope{})
			if codeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v with exit code %d, want %d and %q", err, codeOf(err), c.code, c.says)
			}
		})
	}
}

// A node that routes Services otherwise cannot be told of, and why is said.
func TestWhatRoutesElsewhereCannotBeTold(t *testing.T) {
	const why = "kube-proxy runs in IPVS mode, whose virtual servers are not read"
	svc := &timeline.Service{Namespace: "default", Name: "web", State: timeline.Converged, Coverage: timeline.Coverage{
		Expected: []string{"n1"}, Blind: []string{"n1"}, BlindWhy: map[string]string{"n1": why},
	}}
	err := verdict(&timeline.Snapshot{Services: []*timeline.Service{svc}}, live.Scope{})
	if codeOf(err) != exitCannotTell || !strings.Contains(err.Error(), why) {
		t.Errorf("%v with exit code %d", err, codeOf(err))
	}
}

// What a plane had before its source went silent proves nothing; what another one that
// is seen has does.
func TestAServiceIsOnlyCalledBehindByWhatIsKnown(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	plane := func(node string, k timeline.Knowledge) *timeline.Plane {
		return &timeline.Plane{ID: timeline.PlaneID{Kind: timeline.PlaneRules, Node: node}, Changes: []timeline.PlaneChange{{At: at, Knowledge: k, Missing: 1}}}
	}
	for _, c := range []struct {
		differs string
		want    int
	}{{"lost", exitCannotTell}, {"seen", exitNot}} {
		svc := &timeline.Service{Namespace: "default", Name: "web", State: timeline.Stalled, Rules: timeline.PlanesOf(plane("lost", timeline.InGap), plane("seen", timeline.Known)),
			Differences: []timeline.Difference{{Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: c.differs}, Kind: "missing"}}}
		s := &timeline.Snapshot{Now: at, Services: []*timeline.Service{svc},
			Sources: []timeline.SourceStatus{{ID: collect.RulesSource("lost"), Needed: true, Vouched: at}},
			Gaps:    []timeline.Gap{{Source: collect.RulesSource("lost"), From: at, Why: "damaged"}}}
		if got := codeOf(verdict(s, live.Scope{})); got != c.want {
			t.Errorf("%s differs: exit code %d, want %d", c.differs, got, c.want)
		}
	}
}
