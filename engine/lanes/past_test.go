package lanes_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// randomPasts gives planes a past, until their first change.
func randomPasts(t *rapid.T, svc *timeline.Service) {
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
		if len(p.Changes) == 0 || rapid.Bool().Draw(t, "no past") {
			continue
		}
		past := &timeline.Past{Until: p.Changes[0].At}
		at := past.Until
		for range rapid.IntRange(1, 5).Draw(t, "claims") {
			at = at.Add(-time.Duration(rapid.Int64Range(1, int64(5*time.Second)).Draw(t, "before")))
			c := timeline.PastChange{At: at, Kind: rapid.SampledFrom([]timeline.PastKind{timeline.PastHad, timeline.PastExisted, timeline.PastGap}).Draw(t, "kind")}
			if c.Kind == timeline.PastHad {
				c.Have, c.Note = rapid.IntRange(0, 12).Draw(t, "have"), "generation 7"
			}
			past.Changes = append([]timeline.PastChange{c}, past.Changes...)
		}
		p.Past = past
	}
}

// TestWhatIsClaimedIsDrawnHollowAndChangesNothingElse: the cells before a plane's
// first change tell its past, never a difference or an agreement; all others, and
// the state at a cursor that is later, are as without it.
func TestWhatIsClaimedIsDrawnHollowAndChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap := lanestest.Random(t).Snapshot()
		svc := snap.Services[0]
		cols := rapid.IntRange(1, 160).Draw(t, "cols")
		o := lanes.Options{Cols: cols, Cell: lanes.CellFor(time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Minute)).Draw(t, "span")), cols), UnfoldPods: true, AllNodes: true}
		without := lanes.Build(snap, svc, o)
		randomPasts(t, svc)
		with := lanes.Build(snap, svc, o)
		if len(with.Rows) != len(without.Rows) {
			t.Fatalf("%d rows, %d without a past", len(with.Rows), len(without.Rows))
		}
		for i, r := range with.Rows {
			was := without.Rows[i]
			if r.Right != was.Right || r.Tone != was.Tone {
				t.Fatalf("%s: %q now, %q without a past", r.Key, r.Right, was.Right)
			}
			p := planeOf(svc, r)
			begins := -1
			if p != nil && p.Past != nil {
				begins = with.Scale.Col(p.Past.Until)
			}
			for k, c := range r.Cells {
				switch {
				case k > begins || k == begins && !c.Claimed:
					if c != was.Cells[k] {
						t.Fatalf("%s: cell %d is %+v, without a past %+v", r.Key, k, c, was.Cells[k])
					}
				case c.Class == lanes.Empty:
				case !c.Claimed || c.Class != lanes.Had && c.Class != lanes.Existed && c.Class != lanes.InGap:
					t.Fatalf("%s: cell %d of the past is %+v", r.Key, k, c)
				}
			}
		}
	})
}

func quietPicture() (*timeline.Service, *lanes.Picture) {
	snap := lanestest.Quiet()
	return snap.Services[0], lanes.Build(snap, snap.Services[0], lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true})
}

// TestTheFirstPictureOfAQuietClusterShowsItsLastChange: what lies between is
// folded, the gap in a log that lies there shows in the fold, and that a log
// begins takes no room.
func TestTheFirstPictureOfAQuietClusterShowsItsLastChange(t *testing.T) {
	svc, pic := quietPicture()
	for _, p := range []*timeline.Plane{svc.Slices, svc.Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: "node-3"})} {
		last := p.Past.Changes[len(p.Past.Changes)-1].At
		col := pic.Scale.Col(last)
		r := pic.Rows[pic.Row(p.ID.String())]
		if col < 1 || r.Cells[col].Class != lanes.Had || r.Cells[col].Fold {
			t.Fatalf("%s: column %d of its last change: %+v", p.ID, col, r.Cells[max(col, 0)])
		}
	}
	begin, gap := svc.Rules.All()[0].Past.Changes[0].At, svc.Rules.All()[0].Past.Changes[1].At
	r := pic.Rows[pic.Row("rules@node-1")]
	if c := r.Cells[pic.Scale.Col(begin)]; !c.Fold {
		t.Errorf("the beginning of a log is not folded: %+v", c)
	}
	if c := r.Cells[pic.Scale.Col(gap)]; !c.Fold || c.Class != lanes.InGap {
		t.Errorf("the gap in a fold is %+v", c)
	}
	for _, r := range pic.Rows {
		for _, x := range r.Texts {
			for k := x.Col; k < x.Col+len([]rune(x.Text)); k++ {
				if r.Cells[k].Fold {
					t.Errorf("%s: %q stands on folded time", r.Key, x.Text)
				}
			}
		}
	}
	if got := r.Cells[pic.Scale.Col(svc.Slices.Past.Changes[1].At)].Class; got != lanes.Empty {
		t.Errorf("before its log node-1 is %v", got)
	}
}

func TestTheInstantTableSaysWhatIsClaimed(t *testing.T) {
	svc := lanestest.Quiet().Services[0]
	table := func(at time.Time) string {
		var out []string
		for _, r := range lanes.Instant(svc, at) {
			if r.Diff == "=" || r.Tone == lanes.Good || r.Tone == lanes.Bad {
				t.Errorf("%s differs or agrees in what is claimed: %+v", r.Plane, r)
			}
			out = append(out, strings.TrimRight(strings.Join([]string{r.Plane, r.Set, r.Diff, r.Note}, "|"), "|"))
		}
		return strings.Join(out, "\n")
	}
	rules := svc.Rules.All()[0].Past.Changes
	for _, tt := range []struct {
		name string
		at   time.Time
		want string
	}{
		{"before the last write", svc.Slices.Past.Changes[1].At.Add(-time.Second), `wanted|·|not seen yet
slices|?|existed, claimed ±1 s by the server's clock
endpoints v1|?|existed, claimed ±1 s by the server's clock
node-1|·|not seen yet
node-2|·|not seen yet
node-3|3|claimed or earlier by its log`},
		{"in the gap", rules[1].At, `wanted|·|not seen yet
slices|4|claimed ±1 s by the server's clock|web-bx4wq
endpoints v1|4|claimed ±1 s by the server's clock
node-1|?|not known: a gap in the agent's log
node-2|4|claimed ±12 ms by its log
node-3|4|claimed or earlier by its log|generation 79`},
	} {
		if got := table(tt.at); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if title, _ := lanes.InstantTitle(lanestest.Quiet(), svc, svc.Slices.Past.Changes[0].At, time.UTC); title != "at Nov 26 12:03:58.000" {
		t.Errorf("title %q", title)
	}
	// From the first list on it is what was observed.
	for _, r := range lanes.Instant(svc, svc.Slices.Past.Until)[1:] {
		if r.Diff != "=" {
			t.Errorf("%s: %+v", r.Plane, r)
		}
	}
}

// TestOfManyNodesTheGroupsTellHowManyClaim: with too many nodes for a row each,
// the past shows in the rows of the groups.
func TestOfManyNodesTheGroupsTellHowManyClaim(t *testing.T) {
	snap := lanestest.Quiet()
	svc := snap.Services[0]
	pic := lanes.Build(snap, svc, lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, FoldQuiet: true, MaxNodes: 2})
	changed := svc.Rules.All()[2].Past.Changes[1].At // only node-3 tells of it
	col, before := pic.Scale.Col(changed), pic.Scale.Col(svc.Rules.All()[0].Past.Until)-1
	for key, want := range map[string][2]lanes.Class{"nodes/first node": {lanes.Had, lanes.Had}, "nodes/half the nodes": {lanes.Empty, lanes.Had}, "nodes/all 3 nodes": {lanes.Empty, lanes.Had}} {
		i := pic.Row(key)
		if i < 0 {
			t.Fatalf("no row %s", key)
		}
		if got := [2]lanes.Class{pic.Rows[i].Cells[col].Class, pic.Rows[i].Cells[before].Class}; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}

func TestBeforeSaysWhenEachPlaneChangedLast(t *testing.T) {
	snap := lanestest.Quiet()
	svc := snap.Services[0]
	svc.Endpoints.Past.Changes = svc.Endpoints.Past.Changes[:1]
	text := func(room int) (out []string) {
		for _, l := range lanes.Before(svc, snap.Now, time.UTC, room) {
			out = append(out, l.Label+": "+l.Text)
		}
		return out
	}
	want := []string{
		"slices: 11:16:58 ±1 s, 47m12s ago",
		"endpoints v1: not known, exists since Nov 26 12:03:58 ±1 s",
		"node-1: not since 11:58:58, a gap before",
		"node-2: not since 11:53:58 ±12 ms",
		"node-3: by 11:16:59, 47m11s ago",
	}
	if got := text(9); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if got := text(2); len(got) != 2 {
		t.Errorf("%d lines in the room of 2", len(got))
	}
	svc.Rules.All()[0].Past.Changes = svc.Rules.All()[0].Past.Changes[:2]
	if got := text(3)[2]; got != "node-1: not known: a gap since 11:57:58" {
		t.Error(got)
	}
}
