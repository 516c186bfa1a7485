package timeline

import (
	"slices"
	"testing"
	"time"
)

// removals are paths by their pods' termination, with needs of 1 ms to n ms.
func removals(n int) []*Path {
	var out []*Path
	for i := range n {
		d := time.Duration(i+1) * time.Millisecond
		out = append(out, &Path{ID: d.String(), Op: OpRemove, Cause: CausePodTerminating, Risk: Risk{FromTermination: &d, Error: time.Millisecond}})
	}
	return out
}

func TestNoP99UnderAHundredRemovals(t *testing.T) {
	s := &Service{}
	if a := s.Advice(removals(99)); a.P99 != nil || a.N != 99 || a.Worst.D != 99*time.Millisecond || a.WorstPath != "99ms" {
		t.Errorf("%+v", a)
	}
	a := s.Advice(removals(100))
	if a.P99 == nil || a.P99.D != 99*time.Millisecond || a.P99.Growing || a.Worst.D != 100*time.Millisecond || a.Worst.Needed() != 200*time.Millisecond {
		t.Errorf("%+v %+v", a, a.P99)
	}
	if a := s.Advice(removals(250)); a.P99.D != 248*time.Millisecond {
		t.Errorf("p99 of 250: %v, want the 248th", a.P99.D) // ceil(0.99 × 250)
	}
}

// One that is not over has at least its value. The p99 of a hundred is the 99th:
// one that grows from 50 ms can push it up to the next; one that is above it
// already cannot.
func TestARemovalThatIsNotOverMakesWhatRestsOnItMore(t *testing.T) {
	s := &Service{}
	for _, c := range []struct {
		grows     int
		p99       time.Duration
		p99Grows  bool
		worst     time.Duration
		worstPath string
	}{
		{50, 99 * time.Millisecond, true, 100 * time.Millisecond, "100ms"},
		{100, 99 * time.Millisecond, false, 100 * time.Millisecond, "100ms"},
		{99, 99 * time.Millisecond, true, 100 * time.Millisecond, "100ms"},
	} {
		list := removals(100)
		list[c.grows-1].Risk.Growing = true
		a := s.Advice(list)
		if a.P99.D != c.p99 || a.P99.Growing != c.p99Grows || a.Worst.D != c.worst || !a.Worst.Growing || a.WorstPath != c.worstPath {
			t.Errorf("%d grows: p99 %+v worst %+v of %s", c.grows, a.P99, a.Worst, a.WorstPath)
		}
	}
}

func TestWhyARemovalDoesNotCount(t *testing.T) {
	hop := func(st Status) Hop { return Hop{Status: st} }
	list := removals(1)
	list = append(list,
		&Path{Op: OpAdd, Cause: CausePodReady}, // no removal at all
		&Path{Op: OpRemove, Cause: CauseRelabelled}, &Path{Op: OpRemove, Cause: CausePodGone},
		&Path{Op: OpRemove, Cause: CausePodTerminating},
		&Path{Op: OpRemove, Cause: CausePodTerminating, Rules: []Hop{hop(StatusArrived)}},
		&Path{Op: OpRemove, Cause: CausePodTerminating, Rules: []Hop{hop(StatusArrived), hop(StatusHandedOver)}},
	)
	a := (&Service{}).Advice(list)
	want := []LeftOut{{whyOtherCause, 2}, {whyTakenBack, 1}, {whyNoNode, 1}, {whyNoStart, 1}}
	if a.N != 1 || !slices.Equal(a.LeftOut, want) {
		t.Errorf("%+v, want %v", a, want)
	}
	if a := (&Service{}).Advice(nil); a.N != 0 || a.P99 != nil || a.Worst != (Amount{}) {
		t.Errorf("of nothing: %+v", a)
	}
}

// Unseen is of the time of the paths: what a node's source does now says nothing of an
// episode before, nor the other way round.
func TestNodesAreUnseenByTheTimeOfThePaths(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	plane := func(node string, changes ...PlaneChange) *Plane {
		return &Plane{ID: PlaneID{Kind: PlaneRules, Node: node}, Changes: changes}
	}
	known, gap := func(s int) PlaneChange { return PlaneChange{At: at(s), Knowledge: Known} }, func(s int) PlaneChange { return PlaneChange{At: at(s), Knowledge: InGap} }
	s := &Service{
		Coverage: Coverage{Gap: []string{"lost-now"}, LeftOut: []string{"not-ready"}},
		Rules: PlanesOf(plane("always", known(0)), plane("came-late", known(11)), plane("lost-before", known(0), gap(2), known(5)),
			plane("lost-meanwhile", known(0), gap(12), known(13)), plane("lost-now", known(0), gap(30)), plane("not-ready", gap(0)), plane("silent", PlaneChange{At: at(0), Knowledge: Blind})),
	}
	path := &Path{Op: OpRemove, Cause: CausePodTerminating, Origin: Moment{At: at(10)}, Status: StatusArrived, Rules: []Hop{{At: at(20), Status: StatusArrived}}}
	over := []string{"came-late", "lost-meanwhile", "silent"}
	if got := s.Advice([]*Path{path}).Unseen; !slices.Equal(got, over) {
		t.Errorf("of a removal from 10 s to 20 s: %q, want %q", got, over)
	}
	if got := s.Unrouted([]*Path{path}, at(40)).Unseen; !slices.Equal(got, over) {
		t.Errorf("of an addition: %q, want %q", got, over)
	}
	open := *path
	open.Status, open.Rules = StatusOpen, nil
	if got, want := s.Advice([]*Path{&open}).Unseen, []string{"came-late", "lost-meanwhile", "lost-now", "silent"}; !slices.Equal(got, want) {
		t.Errorf("of one that is open: %q, want %q", got, want)
	}
	if got, want := s.Advice(nil).Unseen, []string{"lost-now"}; !slices.Equal(got, want) {
		t.Errorf("of none: %q, want %q", got, want)
	}
}

// What covers all must cover the one whose error is larger than the other's lead.
func TestTheWorstIsWhatMayHaveBeenWorst(t *testing.T) {
	list := removals(2)
	list[0].Risk.Error = 400 * time.Millisecond
	if a := (&Service{}).Advice(list); a.WorstPath != "1ms" || a.Worst.Needed() != 500*time.Millisecond {
		t.Errorf("worst %+v of %s, needs %s", a.Worst, a.WorstPath, a.Worst.Needed())
	}
}

func TestWhatAnAdditionLeftOutOfTheSumIs(t *testing.T) {
	arrived := func(lag, width time.Duration) Hop {
		at := epoch.Add(lag)
		h := Hop{Status: StatusArrived, At: at, Lag: lag, Error: time.Millisecond}
		if width > 0 {
			h.NotBefore = at.Add(-width)
		}
		return h
	}
	origin := Moment{At: epoch}
	s := &Service{}
	u := s.Unrouted([]*Path{
		{Op: OpAdd, Origin: origin, Rules: []Hop{arrived(2*time.Second, 0), arrived(4*time.Second, time.Second)}},
		{Op: OpAdd, Origin: origin, Rules: []Hop{arrived(time.Second, 0), {Status: StatusAlreadyRouted}}},
		{Op: OpAdd, Origin: origin, Rules: []Hop{arrived(time.Second, 0), {Status: StatusSuperseded}}},
		{Op: OpAdd, Origin: origin, Cause: CauseFallback, Rules: []Hop{arrived(time.Second, 0)}},
		{Op: OpAdd, Origin: origin},
		{Op: OpRemove, Origin: origin, Rules: []Hop{arrived(time.Second, 0)}},
	}, epoch.Add(time.Minute))
	// Until the last 4 + 1 s, of which the first is good to 1 s and 1 ms, the
	// second to 1 ms; the means are 3 and 0.5 s.
	want := Unrouted{N: 2,
		ToLast:  Amount{D: 5 * time.Second, Width: time.Second, Error: 2 * time.Millisecond},
		Mean:    Amount{D: 3500 * time.Millisecond, Width: 500 * time.Millisecond, Error: 1500 * time.Microsecond},
		LeftOut: []LeftOut{{whyNoFollower, 1}, {whyNotReady, 1}, {whyUndone, 1}},
	}
	if u.N != want.N || u.ToLast != want.ToLast || u.Mean != want.Mean || !slices.Equal(u.LeftOut, want.LeftOut) {
		t.Errorf("%+v\nwant %+v", u, want)
	}
	u = s.Unrouted([]*Path{{Op: OpAdd, Origin: origin, Rules: []Hop{arrived(time.Second, 0), {Status: StatusOpen}}}}, epoch.Add(9*time.Second))
	if u.ToLast.D != 9*time.Second || !u.ToLast.Growing || u.Mean.D != 5*time.Second || !u.Mean.Growing {
		t.Errorf("while a node is missing: %+v", u)
	}
}
