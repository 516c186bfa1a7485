package lanes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// story is what is told of a hop of the last addition, without times.
func story(snap *timeline.Snapshot, hop string) string {
	svc := snap.Services[0]
	w := lanes.NewWaterfallOf(snap, svc, svc.Paths[len(svc.Paths)-1], snap.Now)
	var out []string
	for i := range w.Bars {
		if w.Bars[i].Label == hop {
			for _, l := range w.Story(&w.Bars[i]) {
				out = append(out, l.Text)
			}
		}
	}
	return strings.Join(out, "; ")
}

func TestAStoryTellsWhatHappenedDuringItsHopAlone(t *testing.T) {
	a := lanestest.UsualAddition()
	a.Conflicts, a.Waited[1] = 1, 2*time.Second
	snap := lanestest.Additions(lanestest.UsualAddition(), a)
	svc := snap.Services[0]
	p := svc.Paths[len(svc.Paths)-1]
	snap.Faults = []timeline.Fault{
		{Name: "conflicts", Amount: "1", From: p.Origin.At.Add(-time.Minute)},
		{Name: "over", From: p.Origin.At.Add(-time.Minute), To: p.Origin.At.Add(-time.Second)},
		{Name: "later", From: p.Slice.At.Add(time.Second)},
	}
	snap.Gaps = []timeline.Gap{
		{Source: "kube/pods", From: p.Origin.At, To: p.Origin.At.Add(time.Millisecond), Why: "watch closed"},
		{Source: "kube/nodes", From: p.Origin.At.Add(-2 * time.Second), To: p.Origin.At.Add(-time.Second), Why: "watch closed"},
	}
	for hop, want := range map[string]string{
		"slice": "fault since then: conflicts 1; pod ready; gap of kube/pods: watch closed; reconciler began, queued for 2 ms; conflict with another writer; reconciler began, queued for 1 ms; reconciler wrote in 5 ms; slice web-1 rev 18",
		"n2":    "fault since then: conflicts 1; slice web-1 rev 18; n2 received the change; n2 sync began; n2 committed generation 7",
		"n1":    "fault since then: conflicts 1; slice web-1 rev 18; n1 received the change; n1 sync began; n1 committed generation 7",
	} {
		if got := story(snap, hop); got != want {
			t.Errorf("%s: %q", hop, got)
		}
	}
}
