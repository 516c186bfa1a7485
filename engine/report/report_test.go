package report

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

var t0 = time.Date(2026, 3, 1, 12, 4, 10, 530_000_000, time.UTC)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

func arrived(plane timeline.PlaneID, origin, step, when int) timeline.Hop {
	return timeline.Hop{
		Plane: plane, Step: at(step), At: at(when), Lag: at(when).Sub(at(origin)), FromStep: at(when).Sub(at(step)),
		Error: time.Millisecond, Status: timeline.StatusArrived,
	}
}

func node(name string) timeline.PlaneID {
	return timeline.PlaneID{Kind: timeline.PlaneRules, Node: name}
}

// addition is a pod that became ready at 2541 ms, was in the slice 9 ms later,
// on node-1 after 107 ms, and not yet on node-2.
func addition() *timeline.Snapshot {
	slice := arrived(timeline.PlaneID{Kind: timeline.PlaneSlices}, 2541, 2541, 2550)
	p := &timeline.Path{
		ID: "p1", Namespace: "default", Service: "web", Op: timeline.OpAdd, Cause: timeline.CausePodReady, By: "scale",
		Endpoint: timeline.Endpoint{EndpointID: timeline.EndpointID{UID: "u1", IP: netip.MustParseAddr("10.244.3.5")}, Pod: "web-7d9c-x7k2p", Node: "node-2", Family: collect.IPv4},
		Origin:   timeline.Moment{At: at(2541), Claimed: at(2470), ClaimedPrecision: time.Second},
		Before:   timeline.Before{Created: timeline.Moment{At: at(0)}, Scheduled: timeline.Moment{At: at(31)}, Started: timeline.Moment{Claimed: at(470)}},
		Slice:    &slice,
		Rules: []timeline.Hop{
			arrived(node("node-1"), 2541, 2550, 2648),
			{Plane: node("node-2"), Step: at(2550), Status: timeline.StatusOpen},
		},
		Status: timeline.StatusOpen,
	}
	plane := func(id timeline.PlaneID, want, have int) *timeline.Plane {
		return &timeline.Plane{ID: id, Changes: []timeline.PlaneChange{{At: at(2550), Knowledge: timeline.Known, Want: want, Have: have, Missing: want - have}}}
	}
	return &timeline.Snapshot{
		Session: collect.Session{Kind: "lab", Name: "lab"}, First: at(0), Now: at(4541), Watermark: at(4000),
		Services: []*timeline.Service{{
			Namespace: "default", Name: "web", State: timeline.Converging,
			Coverage: timeline.Coverage{Expected: []string{"node-1", "node-2"}, Seen: []string{"node-1", "node-2"}},
			Wanted:   []timeline.Count{{At: at(0), N: 0}, {At: at(2541), N: 1}},
			Slices:   plane(timeline.PlaneID{Kind: timeline.PlaneSlices}, 1, 1), Endpoints: plane(timeline.PlaneID{Kind: timeline.PlaneEndpoints}, 1, 1),
			Rules: timeline.PlanesOf(plane(node("node-1"), 1, 1), plane(node("node-2"), 1, 0)),
			Paths: []*timeline.Path{p},
		}},
		Gaps: []timeline.Gap{{Source: "rules/node-2", From: at(3000), Why: "receive buffer overrun"}},
	}
}

func TestAPodOfADualStackServiceCountsOnce(t *testing.T) {
	for snap, want := range map[*timeline.Snapshot]int{lanestest.Converging(): 5, lanestest.DualStack(): 5} {
		s := Build(snap, func(*timeline.Service) bool { return true }).Services[0]
		slices := map[bool]int{false: 5, true: 10}[len(snap.Services[0].Spec.Families) > 1]
		if s.Planes.Pods.Have != want || s.Planes.Slices.Have != slices {
			t.Errorf("%d pods, %d endpoints in slices; want %d and %d", s.Planes.Pods.Have, s.Planes.Slices.Have, want, slices)
		}
	}
}

func TestANodeThatHasNotArrivedCountsAsAtLeastItsAge(t *testing.T) {
	r := Build(addition(), nil)
	p := r.Services[0].Paths[0]
	switch {
	case p.Rules.N != 2:
		t.Errorf("n = %d, want 2", p.Rules.N)
	case p.Rules.FirstMS == nil || *p.Rules.FirstMS != 107:
		t.Errorf("first = %v, want 107", p.Rules.FirstMS)
	case p.Rules.P50MS == nil || *p.Rules.P50MS != 107:
		t.Errorf("the median of an arrived and an open node is the arrived one's: %v", p.Rules.P50MS)
	case p.Rules.LastMS != nil:
		t.Errorf("last = %v although a node is missing", *p.Rules.LastMS)
	case p.Rules.AtLeastMS == nil || *p.Rules.AtLeastMS != 1459:
		t.Errorf("at least = %v, want 1459: the watermark's distance from the origin", p.Rules.AtLeastMS)
	case len(p.Rules.Missing) != 1 || p.Rules.Missing[0] != "node-2":
		t.Errorf("missing = %v", p.Rules.Missing)
	case p.EndMS != nil:
		t.Errorf("an open path has ended after %v", *p.EndMS)
	}
}

func TestQuantilesAreNearestRankAndUnknownAmongTheMissing(t *testing.T) {
	var lags []time.Duration
	for i := 1; i <= 150; i++ {
		lags = append(lags, time.Duration(i)*time.Millisecond)
	}
	for _, c := range []struct {
		n    int
		q    float64
		want float64 // 0: unknown
	}{
		{150, 0, 1}, {150, 0.5, 75}, {150, 0.99, 149}, {150, 1, 150},
		{200, 0.5, 100}, {200, 0.75, 150}, {200, 0.76, 0}, {200, 1, 0}, {0, 0.5, 0},
	} {
		have := lags
		if c.n == 0 {
			have = nil
		}
		got := quantile(have, c.n, c.q)
		if (got == nil) != (c.want == 0) || got != nil && *got != c.want {
			t.Errorf("quantile %v of %d with 150 known: %v, want %v", c.q, c.n, got, c.want)
		}
	}
}

func TestNoP99UnderAHundredNodes(t *testing.T) {
	s := addition()
	p := s.Services[0].Paths[0]
	p.Rules, p.Status = nil, timeline.StatusArrived
	for i := range 99 {
		p.Rules = append(p.Rules, arrived(node("n"+string(rune('a'+i))), 2541, 2550, 2600+i))
	}
	if r := Build(s, nil).Services[0].Paths[0].Rules; r.P99MS != nil {
		t.Errorf("p99 of 99 nodes = %v, want none", *r.P99MS)
	}
	p.Rules = append(p.Rules, arrived(node("last"), 2541, 2550, 2700))
	if r := Build(s, nil).Services[0].Paths[0].Rules; r.P99MS == nil {
		t.Error("no p99 with 100 nodes")
	}
}

func TestUnknownIsNullInTheDocument(t *testing.T) {
	b, err := json.Marshal(Build(addition(), nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"schema":"kconverge.report/v1"`, `"as_of":"2026-03-01T12:04:14.53Z"`, `"endpoints":null`, `"last_ms":null`,
		`"missing":["node-2"]`, `"findings":[]`, `"to":null`, `"ready":null`, `"from_termination":null`,
		`"claimed_at":"2026-03-01T12:04:13Z"`, `"slices":{"want":1,"have":1,"agree":true}`,
		`"claimed":["started"]`,
	} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s is not in\n%s", part, b)
		}
	}
}

func TestTheWaterfallReadsLikeThePath(t *testing.T) {
	s := addition()
	s.Services[0].Paths[0].Endpoint.Pod = "web-\x1b[31m7d9c-x7k2p\u202e"
	var b strings.Builder
	if err := Build(s, nil).WriteText(&b, TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("control characters of the cluster reach the terminal: %q", got)
	}
	lines := strings.Split(got, "\n")
	for i, line := range lines {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d cells wide: %q", n, line)
		}
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	// From the first moment to now are 4541 ms on 46 cells, of which 45 steps.
	want := []string{
		"lab lab, as of 12:04:14.530",
		"",
		"default/web converging pods 1 slices 1 endpoints 1 rules 1 0 of 1 nodes 2/2",
		"",
		"+ web-[31m7d9c-x7k2p 10.244.3.5 on node-2 pod ready by scale origin 12:04:13.071 open",
		"created ▏",
		"scheduled 31 ms ▏",
		"started ~0 s ━━━━ claimed",
		"ready ~2 s " + strings.Repeat("━", 21),
		"slice 9.0 ms ▏",
		"node-1 98 ms ━",
		"node-2 not yet " + strings.Repeat("━", 20) + "▸",
		"",
		"gap rules/node-2 from 12:04:13.530 still open receive buffer overrun",
		"",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatIsNotSeenHasNoCounts(t *testing.T) {
	s := addition()
	svc := s.Services[0]
	svc.Endpoints = nil
	svc.Rules.All()[1].Changes = []timeline.PlaneChange{{At: at(0), Knowledge: timeline.Blind}}
	svc.Slices.Changes = append(svc.Slices.Changes, timeline.PlaneChange{At: at(3000), Knowledge: timeline.InGap, Want: 1, Have: 1})
	svc.Coverage = timeline.Coverage{Expected: []string{"node-1", "node-2"}, Seen: []string{"node-1"}, Blind: []string{"node-2"}}
	r := Build(s, nil)
	p := r.Services[0].Planes
	if p.Endpoints != nil || len(p.Rules) != 1 || p.Slices == nil || !p.Slices.Gap {
		t.Errorf("planes %+v: want no endpoints, the rules of node-1 only, and slices in a gap", p)
	}
	var b strings.Builder
	if err := r.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	svc.Coverage.BlindWhy = map[string]string{"node-2": "kube-proxy runs in IPVS \x1b[1mmode"}
	svc.Coverage.BlindPlanes = map[timeline.PlaneID]string{{Kind: timeline.PlanePods}: "forbidden: ask for \x1b[1mit"}
	b.Reset()
	if err := Build(s, nil).WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Gaps = append(s.Gaps, timeline.Gap{Source: collect.SourcePods, From: at(3000), Why: "broken"})
	if p := Build(s, nil).Services[0].Planes.Pods; p == nil || !p.Gap || p.Have != 1 {
		t.Errorf("pods in a gap: %+v, want the 1 that was known", p)
	}
	if !strings.Contains(b.String(), "pods not seen") || !strings.Contains(b.String(), "  pods are not seen: forbidden: ask for [1mit\n") {
		t.Errorf("the reason is not told:\n%s", b.String())
	}
	if want := "  rules of node-2 are not seen: kube-proxy runs in IPVS [1mmode\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	if want := "slices 1?  endpoints not seen  rules 1  nodes 1/2, blind: node-2"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

func TestASupersededHopHasNoTime(t *testing.T) {
	s := addition()
	s.Services[0].Paths[0].Rules[1].Status = timeline.StatusSuperseded
	var b strings.Builder
	if err := Build(s, nil).WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "node-2") && strings.Contains(line, "superseded") {
			if strings.Contains(line, " ms") || strings.Contains(line, " s ") {
				t.Errorf("a time where nothing arrived: %s", line)
			}
			return
		}
	}
	t.Errorf("no line for node-2 in\n%s", b.String())
}

func TestAnArrivalInAnIntervalIsAtMostThatLate(t *testing.T) {
	s := addition()
	p := s.Services[0].Paths[0]
	p.Rules, p.Status = p.Rules[:1], timeline.StatusArrived
	p.Rules[0].NotBefore = at(2560)
	for ascii, want := range map[bool]string{false: "≤", true: "<="} {
		var b strings.Builder
		if err := Build(s, nil).WriteText(&b, TextOptions{ASCII: ascii}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "12:04:13.071  "+want+"107 ms "+map[bool]string{false: "±", true: "+-"}[ascii]+"1.0 ms") || !strings.Contains(b.String(), " "+want+"98 ms") {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// TestOnlyTheLastArrivalMakesTheWholeAtMost: when the last arrival is exact, so is the
// whole, whatever is known of those before it.
func TestOnlyTheLastArrivalMakesTheWholeAtMost(t *testing.T) {
	for last, loose := range map[int]bool{2600: true, 2700: false} {
		s := addition()
		p := s.Services[0].Paths[0]
		p.Rules[0].NotBefore, p.Status = at(2560), timeline.StatusArrived
		p.Rules[1] = arrived(node("node-2"), 2541, 2550, last)
		if got := Build(s, nil).Services[0].Paths[0].atMost(); got != loose {
			t.Errorf("node-1 arrives up to 2648, node-2 at %d: at most %v", last, got)
		}
	}
}

func TestNodesOfAPoolAreToldApart(t *testing.T) {
	s := addition()
	p := s.Services[0].Paths[0]
	p.Rules[0].Plane.Node, p.Rules[1].Plane.Node = "gke-production-default-pool-1f3a-0001", "gke-production-default-pool-1f3a-0002"
	for width, names := range map[int][]string{
		100: {"~-pool-1f3a-0001 ", "~-pool-1f3a-0002 "},
		140: {" gke-production-default-pool-1f3a-0001 ", " gke-production-default-pool-1f3a-0002 "},
	} {
		var b strings.Builder
		if err := Build(s, nil).WriteText(&b, TextOptions{Width: width, ASCII: true}); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(b.String(), name) {
				t.Errorf("width %d: no %q in\n%s", width, name, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if n := len(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d cells wide: %q", n, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("not ASCII: %q", line)
			}
		}
	}
}
