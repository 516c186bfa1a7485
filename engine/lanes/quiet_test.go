package lanes

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// bursts is a Service whose slices change now and then, for a moment or for long, over
// an hour before now.
func bursts(r *rand.Rand, now time.Time) (*timeline.Snapshot, *timeline.Service) {
	p := &timeline.Plane{ID: timeline.PlaneID{Kind: timeline.PlaneSlices}}
	at := now.Add(-time.Hour)
	snap := &timeline.Snapshot{Now: now, First: at}
	for at.Before(now) {
		c := timeline.PlaneChange{At: at, Knowledge: timeline.Known, Want: 2, Have: 2}
		if r.IntN(3) == 0 {
			c.Have, c.Missing = 1, 1
		}
		p.Changes = append(p.Changes, c)
		at = at.Add(time.Duration(r.ExpFloat64() * float64([]time.Duration{50 * time.Millisecond, time.Second, 8 * time.Second, 10 * time.Minute}[r.IntN(4)])))
	}
	return snap, &timeline.Service{Slices: p}
}

func TestAScaleOfTheLatestPartIsThatOfTheWholeHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	folded := 0
	for n := range 3000 {
		snap, svc := bursts(r, now)
		o := Options{Cols: 1 + r.IntN(200), Cell: cells[r.IntN(12)], To: now.Add(-time.Duration(r.Int64N(int64(10*time.Minute))) * time.Duration(n%2))}
		want := NewScale(o.To, o.Cell, o.Cols, Quiet(snap, svc, o.To, o.Cell*time.Duration(o.Cols)))
		got := foldedScale(snap, svc, o)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%d: %d columns of %v to %v:\n%v\nof all:\n%v", n, o.Cols, o.Cell, o.To, fmt.Sprint(got.Segments), fmt.Sprint(want.Segments))
		}
		if len(want.Segments) > 1 {
			folded++
		}
	}
	if folded < 500 {
		t.Errorf("only %d scales had folds", folded)
	}
}

// plainRow is the lane of a plane, painted one change after the other.
func plainRow(b *builder, p *timeline.Plane) Row {
	r := Row{Cells: b.cells()}
	for i := range p.Changes {
		to := b.o.Now
		if i+1 < len(p.Changes) {
			to = p.Changes[i+1].At
		}
		b.paint(r.Cells, p.Changes[i].At, to, classOf(&p.Changes[i]), false)
	}
	o := b.overlay(r.Cells)
	var counts []timeline.Count
	for _, c := range p.Changes {
		if n := len(counts); n > 0 && counts[n-1].At.Equal(c.At) {
			counts[n-1].N = c.Have
			continue
		}
		counts = append(counts, timeline.Count{At: c.At, N: c.Have})
	}
	b.counts(o, counts)
	r.Texts = o.texts()
	return r
}

func TestALaneOfManyChangesShowsAllOfThem(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for n := range 1000 {
		snap, svc := bursts(r, now)
		o := Options{Cols: 1 + r.IntN(200), Cell: cells[r.IntN(12)], To: now.Add(-time.Duration(r.Int64N(int64(10*time.Minute))) * time.Duration(n%2)), FoldQuiet: n%3 > 0}
		o.Now = o.To.Add(-time.Duration(r.Int64N(int64(time.Minute))) * time.Duration(n%5/4))
		b := &builder{o: o, snap: snap, svc: svc, provisional: 1 << 20, room: new(room)}
		b.scale = NewScale(o.To, o.Cell, o.Cols, nil)
		if o.FoldQuiet {
			b.scale = foldedScale(snap, svc, o)
		}
		got, want := b.plane(svc.Slices, RowSlices, ""), plainRow(b, svc.Slices)
		if !reflect.DeepEqual(got.Cells, want.Cells) {
			t.Fatalf("%d: cells\n%v\nbut one after the other\n%v", n, got.Cells, want.Cells)
		}
		if fmt.Sprint(got.Texts) != fmt.Sprint(want.Texts) {
			t.Fatalf("%d: texts\n%v\nbut of all changes\n%v", n, got.Texts, want.Texts)
		}
	}
}

func TestWhatIsDealtOutByTimeIsSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var room room // that is used again
	for range 500 {
		list := make([]planeChange, r.IntN(300))
		width := []int64{1, 5, 1000, 1 << 40}[r.IntN(4)]
		for i := range list {
			list[i] = planeChange{r.Int64N(width) - width/2, r.Int32N(4), r.Int32N(4)}
		}
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b planeChange) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.plane, b.plane), cmp.Compare(a.place, b.place))
		})
		room.sortByTime(list)
		if !slices.Equal(list, want) {
			t.Fatalf("%v\nbut\n%v", list, want)
		}
	}
}

// plainQuiet is quiet time found from all stretches at once.
func plainQuiet(svc *timeline.Service, to time.Time, span time.Duration) (quiet []Interval) {
	all := []Interval{{to, to}}
	for _, p := range planesOf(svc) {
		for i := range p.Changes {
			x := Interval{p.Changes[i].At, p.Changes[i].At}
			if classOf(&p.Changes[i]).Difference() {
				if i+1 < len(p.Changes) {
					x.To = p.Changes[i+1].At
				} else if x.To.Before(to) {
					x.To = to
				}
			}
			all = append(all, x)
		}
	}
	for i := range all {
		all[i].From, all[i].To = all[i].From.Add(-pad(span)), all[i].To.Add(pad(span))
	}
	slices.SortFunc(all, func(a, b Interval) int { return a.From.Compare(b.From) })
	end := all[0].To
	for _, x := range all {
		if x.From.Sub(end) > long(span) {
			quiet = append(quiet, Interval{end, x.From})
		}
		if x.To.After(end) {
			end = x.To
		}
	}
	return quiet
}

func TestQuietTimeOfManyPlanesIsThatOfAllTheirChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for n := range 1000 {
		snap, svc := bursts(r, now)
		planes := []*timeline.Plane{svc.Slices}
		for range r.IntN(5) {
			_, more := bursts(r, now)
			planes = append(planes, more.Slices)
		}
		svc.Rules = timeline.PlanesOf(planes[1:]...)
		to, span := now.Add(-time.Duration(r.Int64N(int64(10*time.Minute)))*time.Duration(n%2)), time.Duration(1+r.IntN(200))*cells[r.IntN(12)]
		snap.First = time.Time{} // nothing is said of a beginning
		if got, want := Quiet(snap, svc, to, span), plainQuiet(svc, to, span); !slices.Equal(got, want) {
			t.Fatalf("%d: to %v, span %v\n%v\nbut of all\n%v", n, to, span, got, want)
		}
	}
}
