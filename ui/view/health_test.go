package view

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestHealthNamesTheNeededSourcesThatDoNotTell(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 29, 22, 15, s, 0, time.UTC) }
	src := func(id collect.SourceID, state collect.SourceStateName, vouched time.Time) timeline.SourceStatus {
		return timeline.SourceStatus{ID: id, State: state, Vouched: vouched, Needed: true, Detail: "detail of " + string(id)}
	}
	fine := src(collect.SourceServices, collect.SourceSynced, at(59))
	unneeded := timeline.SourceStatus{ID: collect.SourceKubeEvents, State: collect.SourceForbidden}
	for name, c := range map[string]struct {
		sources  []timeline.SourceStatus
		gaps     []timeline.Gap
		recorded bool
		mark     string
		lost     bool
		why      string
	}{
		"all tell":           {sources: []timeline.SourceStatus{fine, unneeded}},
		"broken":             {sources: []timeline.SourceStatus{fine, src(collect.SourcePods, collect.SourceBroken, at(53)), src(collect.SourceEndpointSlices, collect.SourceBroken, at(54))}, mark: "lost pods, slices since 22:15:53", lost: true, why: "detail of kube/pods"},
		"never told":         {sources: []timeline.SourceStatus{src(collect.SourcePods, collect.SourceForbidden, time.Time{})}, mark: "not seen: pods", lost: true, why: "detail of kube/pods"},
		"open gap":           {sources: []timeline.SourceStatus{src("rules/node-2", collect.SourceSynced, at(59))}, gaps: []timeline.Gap{{Source: "rules/node-2", From: at(40), Why: "overrun"}}, mark: "lost node-2 since 22:15:40", lost: true, why: "overrun"},
		"closed gap":         {sources: []timeline.SourceStatus{fine}, gaps: []timeline.Gap{{Source: fine.ID, From: at(40), To: at(41)}}},
		"stopped":            {sources: []timeline.SourceStatus{src(collect.SourcePods, collect.SourceStopped, at(5))}, mark: "lost pods since 22:15:05", lost: true, why: "detail of kube/pods"},
		"stopped, recorded":  {sources: []timeline.SourceStatus{src(collect.SourcePods, collect.SourceStopped, at(5))}, recorded: true},
		"lists anew":         {sources: []timeline.SourceStatus{src(collect.SourcePods, collect.SourceListing, at(5))}, mark: "listing pods"},
		"too many to be all": {sources: []timeline.SourceStatus{src("rules/a", collect.SourceBroken, at(9)), src("rules/b", collect.SourceBroken, at(8)), src("rules/c", collect.SourceBroken, at(7)), src("rules/d", collect.SourceBroken, at(6))}, mark: "lost a, b, 2 more since 22:15:06", lost: true, why: "detail of rules/a"},
	} {
		h := HealthOf(&timeline.Snapshot{Sources: c.sources, Gaps: c.gaps}, c.recorded)
		if mark, lost := h.Mark(time.UTC); mark != c.mark || lost != c.lost || h.Why != c.why {
			t.Errorf("%s: %q %v, why %q", name, mark, lost, h.Why)
		}
	}
}
