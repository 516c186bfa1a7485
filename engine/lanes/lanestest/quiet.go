package lanestest

import (
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Quiet is Web after 12 s in which nothing has happened. By its own words the
// slice was made three days ago and written last, for the fourth pod, 47 minutes
// before; node-1 and node-2 tell of ten minutes, in which node-1's log lacks one;
// what node-3 tells is bounded from one side, and of its last change.
func Quiet() *timeline.Snapshot { return QuietSpec().Snapshot() }

// QuietSpec is the story of Quiet.
func QuietSpec() Spec {
	now := Start.Add(1500 * time.Millisecond)
	first := now.Add(-12 * time.Second)
	s := Web(1500 * time.Millisecond)
	s.First, s.Actions = first, nil
	wrote := first.Add(-47 * time.Minute).Truncate(time.Second)
	for i := range s.Pods {
		s.Pods[i].Ready = first.Add(-70 * time.Hour)
	}
	s.Pods[3].Ready = wrote.Add(-time.Second)
	had := func(at time.Time, n int, e time.Duration, note string) timeline.PastChange {
		return timeline.PastChange{At: at, Kind: timeline.PastHad, Have: n, Error: e, Note: note}
	}
	rules := func(node string, changes ...timeline.PastChange) {
		s.Pasts[timeline.PlaneID{Kind: timeline.PlaneRules, Node: node}] = &timeline.Past{Until: first, Changes: changes}
	}
	existed := timeline.PastChange{At: first.Add(-72 * time.Hour).Truncate(time.Second), Kind: timeline.PastExisted, Error: time.Second}
	s.Pasts = map[timeline.PlaneID]*timeline.Past{
		{Kind: timeline.PlaneSlices}:    {Until: first, Changes: []timeline.PastChange{existed, had(wrote, 4, time.Second, "web-bx4wq")}},
		{Kind: timeline.PlaneEndpoints}: {Until: first, Changes: []timeline.PastChange{existed, had(wrote, 4, time.Second, "")}},
	}
	from := first.Add(-10 * time.Minute)
	rules("node-1", had(from, 4, 0, ""), timeline.PastChange{At: from.Add(4 * time.Minute), Kind: timeline.PastGap}, had(from.Add(5*time.Minute), 4, 0, ""))
	rules("node-2", had(from, 4, 12*time.Millisecond, ""))
	late := had(wrote.Add(1200*time.Millisecond), 4, 0, "generation 79")
	late.OneSided = true
	before := had(wrote.Add(-2*time.Minute), 3, 0, "")
	before.OneSided = true
	rules("node-3", before, late)
	return s
}
