package lanes

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Options say what part of a Service's history to draw, and how.
type Options struct {
	// Cols is the width of the lanes, in columns.
	Cols int
	// To is the right edge, Cell the time a column stands for.
	To   time.Time
	Cell time.Duration
	// Now is the latest time that anything can be said about; lanes end
	// there. Zero means the Snapshot's.
	Now time.Time
	// Cursor is the instant that the right-hand column speaks of; zero means
	// Now.
	Cursor time.Time
	// FoldQuiet leaves out long stretches in which nothing happened.
	FoldQuiet bool
	// UnfoldPods gives pods that did not change in the window a row each.
	UnfoldPods bool
	// MaxPods is how many pods get a row each, so that the nodes stay in view
	// where there is little room; 0 means all, less than 0 none. UnfoldPods
	// overrides it.
	MaxPods int
	// MaxNodes is the number of nodes above which only groups and the slowest
	// are shown; 0 means 12.
	MaxNodes int
	// AllNodes gives each node its row whatever their number.
	AllNodes bool
	// Location is the time zone of the axis; nil means UTC.
	Location *time.Location
}

// builder carries what all rows of one picture need.
type builder struct {
	o     Options
	snap  *timeline.Snapshot
	svc   *timeline.Service
	scale *Scale
	// provisional is the first column beyond the watermark, last the last
	// column that has anything to say.
	provisional, last int
	blank             []Cell // an empty lane
	room              *room
}

// fill puts what is not set to what it stands for.
func (o *Options) fill(snap *timeline.Snapshot) {
	if o.Now.IsZero() {
		o.Now = snap.Now
	}
	if o.Cursor.IsZero() {
		o.Cursor = o.Now
	}
	if o.MaxNodes <= 0 {
		o.MaxNodes = 12
	}
	if o.To.IsZero() {
		o.To = AlignEnd(o.Now, max(o.Cell, 1))
	}
}

// ScaleOf is the scale of the picture that Build would make. It costs much less.
func ScaleOf(snap *timeline.Snapshot, svc *timeline.Service, o Options) *Scale {
	o.fill(snap)
	if o.FoldQuiet {
		return foldedScale(snap, svc, o)
	}
	return NewScale(o.To, o.Cell, o.Cols, nil)
}

// Build makes the picture of one Service. snap and svc are only read.
func Build(snap *timeline.Snapshot, svc *timeline.Service, o Options) *Picture {
	o.fill(snap)
	b := &builder{o: o, snap: snap, svc: svc, scale: ScaleOf(snap, svc, o), room: rooms.Get().(*room)}
	defer b.room.leave()
	b.provisional = 0
	if !snap.Watermark.IsZero() {
		// The cell of the watermark itself holds vouched time.
		b.provisional = b.scale.Col(snap.Watermark) + 1
	}
	b.last = b.scale.Col(o.Now)
	p := &Picture{Service: svc, Scale: b.scale, Axis: NewAxis(b.scale, o.Location), Cursor: o.Cursor, CursorCol: b.scale.Col(o.Cursor)}
	for _, g := range b.scale.Segments {
		p.Quiet = p.Quiet || g.Folded
	}
	if p.CursorCol >= b.scale.Cols {
		p.CursorCol = -1
	}

	p.Rows = append(p.Rows, b.actions())
	p.Rows = append(p.Rows, b.faults()...)
	p.Rows = append(p.Rows, b.episodes(), b.wanted())
	p.Rows = append(p.Rows, b.pods()...)
	if svc.Slices != nil {
		p.Rows = append(p.Rows, b.plane(svc.Slices, RowSlices, fmt.Sprintf("slices (%d)", len(svc.SliceList))))
	}
	if svc.Endpoints != nil {
		p.Rows = append(p.Rows, b.plane(svc.Endpoints, RowEndpoints, "endpoints v1"))
	}
	if svc.RoutedByProxy {
		p.Rows = append(p.Rows, b.nodes()...)
	} else {
		p.Rows = append(p.Rows, b.noRules())
	}
	p.Rows = append(p.Rows, b.connections()...)
	if snap.Reconciler != nil {
		p.Rows = append(p.Rows, b.reconciler())
	}
	return p
}

// noRules is the row of a Service that gets none, and why.
func (b *builder) noRules() Row {
	r := Row{Key: "rules", Kind: RowNodeGroup, Label: "rules", Right: "none", Tone: Dim, Cells: b.cells()}
	o := b.overlay(r.Cells)
	s := cut("none: "+printable(b.svc.WhyNot), b.scale.Cols-4)
	for col := 1; col < b.scale.Cols; col++ {
		if o.fits(col, utf8.RuneCountInString(s), 0) {
			o.put(col, s, MarkText)
			break
		}
	}
	r.Texts = o.texts()
	return r
}

// cells makes an empty lane, with the folded columns marked.
func (b *builder) cells() []Cell {
	if b.blank == nil {
		b.blank = make([]Cell, b.scale.Cols)
		for _, g := range b.scale.Segments {
			if g.Folded {
				for c := g.Col; c < g.Col+g.Cols; c++ {
					b.blank[c].Class, b.blank[c].Fold = Folded, true
				}
			}
		}
	}
	return slices.Clone(b.blank)
}

// paint lays a class over the cells of [from, to), where a higher class stays, and
// over folded time what was not quiet.
// What lies after Now is left out.
func (b *builder) paint(cells []Cell, from, to time.Time, c Class, claimed bool) {
	if to.IsZero() || to.After(b.o.Now) {
		to = b.o.Now
	}
	i, j, ok := b.scale.columns(from, to)
	if !ok {
		return
	}
	for ; i <= j; i++ {
		b.touch(cells, i, c, claimed)
	}
}

// touch lays a class over one cell, as paint does.
func (b *builder) touch(cells []Cell, i int, c Class, claimed bool) {
	if cells[i].Class == Folded && !c.Difference() && c != InGap {
		return
	}
	if cells[i].Class == Folded || c > cells[i].Class {
		cells[i].Class, cells[i].Claimed = c, claimed
	}
	cells[i].Provisional = i >= b.provisional
}

// inView tells whether t has a column and has been reached.
func (b *builder) inView(t time.Time) bool {
	c := b.scale.Col(t)
	return c >= 0 && c < b.scale.Cols && !t.After(b.o.Now)
}

// wanted is the lane of how many endpoints should be routable.
func (b *builder) wanted() Row {
	r := Row{Key: "wanted", Kind: RowWanted, Label: "wanted", Cells: b.cells()}
	o := b.overlay(r.Cells)
	left := b.scale.From()
	if b.o.Cursor.Before(left) {
		left = b.o.Cursor
	}
	// What came before what stood at the left edge is not in the picture.
	list := b.svc.Wanted[inForce(len(b.svc.Wanted), left.Add(-1), func(i int) time.Time { return b.svc.Wanted[i].At }):]
	for i, c := range list {
		to := b.o.Now
		if i+1 < len(list) {
			to = list[i+1].At
		}
		b.paint(r.Cells, c.At, to, Agrees, false)
	}
	if n, ok := valueAt(list, b.o.Cursor); ok {
		r.Right = strconv.Itoa(n)
	}
	if dualStack(b.svc) {
		r.Label = "wanted v4+v6"
		four, six := wantedFamilies(b.svc, b.o.Cursor)
		if r.Right == strconv.Itoa(four+six) && four+six > 0 {
			r.Right += fmt.Sprintf(": %d+%d", four, six)
		}
	}
	b.counts(o, list)
	r.Texts = o.texts()
	return r
}

// countSlack is how many columns after its change a count may stand, as long as
// it is still true there.
const countSlack = 2

// counts writes a step function's values where they change and at the left edge
// of each stretch of visible time. Two numbers never touch, or they would read
// as one: a later one moves a little to the right, and where that does not help
// the earlier one gives way.
func (b *builder) counts(o *overlay, counts []timeline.Count) {
	type entry struct{ col, n int }
	list := make([]entry, 0, 32)
	for _, g := range b.scale.Segments {
		if g.Folded || g.Cols <= 3 || g.From.After(b.o.Now) {
			continue
		}
		// What changes in the first columns is written there anyway.
		n, ok := valueAt(counts, g.From.Add(-1))
		if later, _ := valueAt(counts, b.scale.Span(g.Col+1).To); ok && later == n {
			list = append(list, entry{g.Col + 1, n})
		}
	}
	changes := len(list)
	for i, c := range counts {
		if i > 0 && counts[i-1].N == c.N || c.At.After(b.o.Now) {
			continue
		}
		col := b.scale.Col(c.At)
		if col < 0 || col >= b.scale.Cols || b.scale.folded(col) {
			continue
		}
		if n := len(list); n > changes && list[n-1].col == col {
			list[n-1].n = c.N // of those in one column only the last is true behind it
			continue
		}
		list = append(list, entry{col, c.N})
	}
	slices.SortStableFunc(list, func(x, y entry) int { return x.col - y.col })
	for i, e := range list {
		// Up to the column of the next change the value is true.
		until := min(e.col+countSlack+1, b.scale.Cols)
		if i+1 < len(list) {
			until = min(until, list[i+1].col)
		}
		if until <= e.col || e.n == unknown {
			continue // the next change is in the same column, or there is nothing to say
		}
		for !o.count(e.col, until, e.n) && o.takeBack(e.col-countSlack-1) {
		}
	}
}

// inForce is the place of the last of n changes, sorted by time, at t or before it; 0
// when there is none. What comes before it is over by t.
func inForce(n int, t time.Time, at func(int) time.Time) int {
	return max(0, sort.Search(n, func(i int) bool { return at(i).After(t) })-1)
}

// valueAt is the value of a step function at t; ok is false before the first.
func valueAt(counts []timeline.Count, t time.Time) (n int, ok bool) {
	i := sort.Search(len(counts), func(i int) bool { return counts[i].At.After(t) })
	if i == 0 {
		return 0, false
	}
	return counts[i-1].N, true
}
