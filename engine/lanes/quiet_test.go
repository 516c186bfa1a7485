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
	o := newOverlay(r.Cells)
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
		b := &builder{o: o, snap: snap, svc: svc, provisional: 1 << 20}
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
	type x struct{ at, n int64 }
	order := func(a, b x) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) }
	for range 500 {
		list := make([]x, r.IntN(300))
		width := []int64{1, 5, 1000, 1 << 40}[r.IntN(4)]
		for i := range list {
			list[i] = x{r.Int64N(width) - width/2, r.Int64N(4)}
		}
		want := slices.Clone(list)
		slices.SortFunc(want, order)
		sortByTime(list, func(c *x) int64 { return c.at }, order)
		if !slices.Equal(list, want) {
			t.Fatalf("%v\nbut\n%v", list, want)
		}
	}
}
