package lanes_test

import (
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// drawPicture draws a story and a picture of it.
func drawPicture(t *rapid.T) (*timeline.Snapshot, *timeline.Service, *lanes.Picture, lanes.Options) {
	snap := lanestest.Random(t).Snapshot()
	svc := snap.Services[0]
	cols := rapid.IntRange(1, 200).Draw(t, "cols")
	cell := lanes.CellFor(time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(30*24*time.Hour)).Draw(t, "span")), cols)
	o := lanes.Options{
		Cols: cols, Cell: cell, Now: snap.Now, FoldQuiet: rapid.Bool().Draw(t, "fold"), UnfoldPods: rapid.Bool().Draw(t, "unfold"),
		To:     snap.Now.Add(-time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "back"))),
		Cursor: snap.Now,
	}
	if rapid.Bool().Draw(t, "groups") {
		o.MaxNodes = 2
	}
	return snap, svc, lanes.Build(snap, svc, o), o
}

func planeOf(svc *timeline.Service, r lanes.Row) *timeline.Plane {
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
		if p.ID.String() == r.Key {
			return p
		}
	}
	return nil
}

func covered(r lanes.Row) []bool {
	out := make([]bool, len(r.Cells))
	for _, t := range r.Texts {
		for c := t.Col; c < t.Col+utf8.RuneCountInString(t.Text); c++ {
			out[c] = true
		}
	}
	return out
}

func TestADifferenceHoweverShortHasACellThatShowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, svc, pic, o := drawPicture(t)
		for _, r := range pic.Rows {
			p := planeOf(svc, r)
			if p == nil {
				continue
			}
			hidden := covered(r)
			for i, c := range p.Changes {
				from, to := c.At, o.Now
				if i+1 < len(p.Changes) {
					to = p.Changes[i+1].At
				}
				if c.Agrees() || !from.Before(to) {
					continue
				}
				a, b := pic.Scale.Col(from), pic.Scale.Col(to.Add(-1))
				if b < 0 || a >= pic.Scale.Cols {
					continue
				}
				a, b = max(a, 0), min(b, pic.Scale.Cols-1)
				// The run of cells that holds it must show at least one.
				for a > 0 && r.Cells[a-1].Class == r.Cells[a].Class {
					a--
				}
				for b+1 < len(r.Cells) && r.Cells[b+1].Class == r.Cells[b].Class {
					b++
				}
				seen := false
				for k := a; k <= b; k++ {
					seen = seen || r.Cells[k].Class.Difference() && !hidden[k]
				}
				if !seen {
					t.Fatalf("%s: the difference of %v..%v is not to be seen in columns %d..%d", r.Key, from, to, a, b)
				}
			}
		}
	})
}

func TestACellShowsADifferenceOnlyWhereThereWasOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, svc, pic, o := drawPicture(t)
		for _, r := range pic.Rows {
			p := planeOf(svc, r)
			if p == nil {
				continue
			}
			for col, cell := range r.Cells {
				if !cell.Class.Difference() {
					continue
				}
				span, true_ := pic.Scale.Span(col), false
				for i, c := range p.Changes {
					to := o.Now
					if i+1 < len(p.Changes) {
						to = p.Changes[i+1].At
					}
					true_ = true_ || !c.Agrees() && c.At.Before(span.To) && to.After(span.From)
				}
				if !true_ {
					t.Fatalf("%s: column %d shows a difference that never was", r.Key, col)
				}
			}
		}
	})
}

func TestTextsNeverOverlapAndStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _, pic, _ := drawPicture(t)
		for _, r := range pic.Rows {
			end := 0
			if len(r.Cells) != pic.Scale.Cols {
				t.Fatalf("%s has %d cells of %d", r.Key, len(r.Cells), pic.Scale.Cols)
			}
			for _, x := range r.Texts {
				if x.Col < end {
					t.Fatalf("%s: %q at %d overlaps the text before, which ends at %d", r.Key, x.Text, x.Col, end)
				}
				end = x.Col + utf8.RuneCountInString(x.Text)
			}
			if end > len(r.Cells) {
				t.Fatalf("%s: texts end at %d of %d", r.Key, end, len(r.Cells))
			}
		}
	})
}

func TestNumbersNeverTouchAndAreTrueWhereTheyStand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, svc, pic, o := drawPicture(t)
		for _, r := range pic.Rows {
			p, end := planeOf(svc, r), -1
			if p == nil {
				continue
			}
			for _, x := range r.Texts {
				if x.Kind != lanes.CountText {
					end = -1
					continue
				}
				if x.Col <= end {
					t.Fatalf("%s: %q at %d touches the number before", r.Key, x.Text, x.Col)
				}
				end = x.Col + len(x.Text)
				n, err := strconv.Atoi(x.Text)
				if err != nil {
					t.Fatal(err)
				}
				span, ok := pic.Scale.Span(x.Col), false
				for i, c := range p.Changes {
					to := o.Now.Add(1)
					if i+1 < len(p.Changes) {
						to = p.Changes[i+1].At
					}
					ok = ok || c.Have == n && c.At.Before(span.To) && to.After(span.From)
				}
				if !ok {
					t.Fatalf("%s: %d stands at column %d, where it was never so", r.Key, n, x.Col)
				}
			}
		}
	})
}

func TestNothingIsDrawnAfterNowAndWhatIsBeyondTheWatermarkIsProvisional(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap, _, pic, o := drawPicture(t)
		for _, r := range pic.Rows {
			for col, c := range r.Cells {
				span := pic.Scale.Span(col)
				if span.From.After(o.Now) && c.Class != lanes.Empty && c.Class != lanes.Folded {
					t.Fatalf("%s: column %d is after now and shows %d", r.Key, col, c.Class)
				}
				plane := c.Class == lanes.Agrees || c.Class.Difference()
				if plane && span.From.After(snap.Watermark) != c.Provisional {
					t.Fatalf("%s: column %d begins %v after the watermark, provisional %v", r.Key, col, span.From.Sub(snap.Watermark), c.Provisional)
				}
			}
		}
	})
}

func TestFoldedTimeHoldsNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, svc, pic, o := drawPicture(t)
		for _, g := range pic.Scale.Segments {
			if !g.Folded {
				continue
			}
			for _, p := range append([]*timeline.Plane{svc.Slices}, svc.Rules.All()...) {
				for i, c := range p.Changes {
					to := o.Now
					if i+1 < len(p.Changes) {
						to = p.Changes[i+1].At
					}
					if !c.Agrees() && c.At.Before(g.To) && to.After(g.From) && c.At.Before(to) {
						t.Fatalf("%s differs in %v..%v, which is folded", p.ID, c.At, to)
					}
				}
			}
		}
	})
}

func TestRowsStandInTheOrderOfTheMockUp(t *testing.T) {
	snap := lanestest.Converging()
	pic := lanes.Build(snap, snap.Services[0], lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true})
	var got []string
	for _, r := range pic.Rows {
		got = append(got, r.Label)
	}
	want := []string{"actions", "episodes", "wanted", "▸ 4 steady pods", "web-7d9c4b-x7k2p", "web-7d9c4b-p4d8c", "web-7d9c4b-9rjvn", "slices (1)", "endpoints v1", "node-1", "node-2", "node-3", "reconciler"}
	if len(got) != len(want) {
		t.Fatalf("rows %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %q, want %q", i, got[i], want[i])
		}
	}
	if r := pic.Rows[pic.Row("rules@node-3")]; r.Right != "7  +2 stale !" || r.Short != "7 +2 !" || r.Tone != lanes.Bad {
		t.Errorf("node-3 says %q, %q", r.Right, r.Short)
	}
	if r := pic.Rows[pic.Row("slices")]; r.Right != "5 =" {
		t.Errorf("slices say %q", r.Right)
	}
}

func TestSteadyPodsUnfold(t *testing.T) {
	snap := lanestest.Converging()
	o := lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true, UnfoldPods: true}
	pic := lanes.Build(snap, snap.Services[0], o)
	n := 0
	for _, r := range pic.Rows {
		if r.Kind == lanes.RowPod {
			n++
		}
	}
	if n != 7 {
		t.Errorf("%d pod lanes, want 7", n)
	}
}

func TestAboveTwelveNodesGroupsAndTheSlowestAreShown(t *testing.T) {
	spec := lanestest.Web(10600 * time.Millisecond)
	spec.Nodes = nil
	for i := 0; i < 200; i++ {
		spec.Nodes = append(spec.Nodes, "node-"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	for i := range spec.Pods {
		for _, l := range []*lanestest.Lags{&spec.Pods[i].Add, &spec.Pods[i].Remove} {
			if l.Nodes == nil {
				continue
			}
			l.Nodes = map[string]time.Duration{}
			for k, n := range spec.Nodes {
				l.Nodes[n] = time.Duration(200+k) * time.Millisecond
			}
			l.Nodes["node-ac"] = 1900 * time.Millisecond
		}
	}
	snap := spec.Snapshot()
	pic := lanes.Build(snap, snap.Services[0], lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true})
	var groups, nodes []string
	for _, r := range pic.Rows {
		switch r.Kind {
		case lanes.RowNodeGroup:
			groups = append(groups, r.Label)
		case lanes.RowNode:
			nodes = append(nodes, r.Label)
		}
	}
	if len(groups) != 4 || groups[0] != "first node" || groups[3] != "all 200 nodes" {
		t.Errorf("groups %q", groups)
	}
	if len(nodes) != 4 || nodes[0] != "node-ac" {
		t.Errorf("slowest nodes %q, want node-ac first", nodes)
	}
	behind := func(label string) (n int) {
		for _, r := range pic.Rows {
			if r.Label == label {
				for _, c := range r.Cells {
					if c.Class.Difference() {
						n++
					}
				}
			}
		}
		return n
	}
	if a, b, c := behind("first node"), behind("half the nodes"), behind("all 200 nodes"); !(a < b && b < c) {
		t.Errorf("cells behind: first %d, half %d, all %d", a, b, c)
	}
}

func TestABlindNodeAndAGapAreToldApart(t *testing.T) {
	spec := lanestest.Web(10600 * time.Millisecond)
	spec.Blind = []string{"node-2"}
	snap := spec.Snapshot()
	svc := snap.Services[0]
	svc.Rules.All()[0].Changes = append(svc.Rules.All()[0].Changes, timeline.PlaneChange{At: snap.Now.Add(-time.Second), Knowledge: timeline.InGap, Have: 5})
	pic := lanes.Build(snap, svc, lanes.Options{Cols: 80, Cell: 125 * time.Millisecond})
	if r := pic.Rows[pic.Row("rules@node-2")]; r.Right != "?  blind" || r.Cells[60].Class != lanes.Blind {
		t.Errorf("node-2 says %q, cell %d", r.Right, r.Cells[60].Class)
	}
	if r := pic.Rows[pic.Row("rules@node-1")]; r.Right != "5  gap ?" || r.Cells[77].Class != lanes.InGap {
		t.Errorf("node-1 says %q, cell %d", r.Right, r.Cells[77].Class)
	}
}

func TestAServiceWithoutRulesSaysWhy(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	svc.RoutedByProxy, svc.WhyNot, svc.Rules = false, "headless: clients get the addresses from DNS", timeline.NodePlanes{}
	pic := lanes.Build(snap, svc, lanes.Options{Cols: 80, Cell: 125 * time.Millisecond})
	i := pic.Row("rules")
	if i < 0 || len(pic.Rows[i].Texts) != 1 || pic.Rows[i].Texts[0].Text != "none: headless: clients get the addresses from DNS" {
		t.Errorf("row %d of %+v", i, pic.Rows)
	}
}

func TestAboveTheirNumberPodsThatAreGoneOrSettledFirstShareARow(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	o := lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true, MaxPods: 2}
	pic := lanes.Build(snap, svc, o)
	var got []string
	for _, r := range pic.Rows {
		if r.Kind == lanes.RowPod || r.Kind == lanes.RowSteadyPods {
			got = append(got, r.Label+" "+r.Right)
		}
	}
	want := []string{"▸ 5 pods 4 ready, 1 gone", "web-7d9c4b-p4d8c gone", "web-7d9c4b-9rjvn ready"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, want %q", got, want)
	}
	folded := pic.Rows[pic.Row("pods/steady")]
	if c := folded.Cells[pic.Scale.Col(at(3500))]; c.Class != lanes.PodStarting {
		t.Errorf("while one of the folded pods starts, its row shows %d", c.Class)
	}
	o.MaxPods = -1
	all := lanes.Build(snap, svc, o)
	if r := all.Rows[all.Row("pods/steady")]; r.Label != "▸ 7 pods" || r.Right != "5 ready, 2 gone" || r.Short != "5, 2 gone" || len(all.Rows) != len(pic.Rows)-2 {
		t.Errorf("without room for any: %q, %q or %q, %d rows", r.Label, r.Right, r.Short, len(all.Rows))
	}
	o.UnfoldPods, o.MaxPods = true, 2
	if n := len(lanes.Build(snap, svc, o).Rows); n != len(pic.Rows)+5 {
		t.Errorf("unfolded %d rows, folded %d", n, len(pic.Rows))
	}
}

func TestAFlagAtTheEdgeKeepsItsLabelWhereThereIsRoomBeforeIt(t *testing.T) {
	snap := lanestest.Converging()
	texts := func(now time.Duration) []string {
		var out []string
		pic := lanes.Build(snap, snap.Services[0], lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, Now: lanestest.Start.Add(now), FoldQuiet: true})
		row := pic.Rows[pic.Row("actions")]
		for _, x := range row.Texts {
			out = append(out, x.Text)
			for i := x.Col; i < x.Col+utf8.RuneCountInString(x.Text); i++ {
				if row.Cells[i].Class == lanes.Point {
					t.Errorf("%q covers a flag", x.Text)
				}
			}
		}
		return out
	}
	// Its flag stands in the last columns, the other one far to the left.
	if got := texts(8400 * time.Millisecond); len(got) != 2 || got[0] != "scale web 4→7" || got[1] != "scale web 7→5" {
		t.Errorf("%q", got)
	}
}
