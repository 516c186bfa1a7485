package lanes

import (
	"sort"
	"time"
)

// FoldCols is how many columns a stretch of folded time takes.
const FoldCols = 2

// Interval is a stretch of time, From inclusive, To exclusive.
type Interval struct{ From, To time.Time }

// Segment is a stretch of time on consecutive columns. A folded one stands for
// its whole time in FoldCols columns.
type Segment struct {
	Interval
	Col, Cols int
	Folded    bool
}

// part is where, from its start, column k of a folded segment begins.
func (g *Segment) part(k int) time.Duration {
	return g.To.Sub(g.From) / time.Duration(g.Cols) * time.Duration(k)
}

// Scale maps time to columns. Every column that is not folded stands for the
// same time, Cell.
type Scale struct {
	Segments []Segment // by time, without holes
	Cell     time.Duration
	Cols     int
}

// NewScale makes a scale of cols columns (at least one) that ends at to. Quiet
// stretches, sorted and not overlapping, are folded; the columns so gained
// reach further back. The first segment's start is the left edge.
func NewScale(to time.Time, cell time.Duration, cols int, quiet []Interval) *Scale {
	cols, cell = max(cols, 1), max(cell, 1)
	s := &Scale{Cell: cell, Cols: cols}
	left, end := cols, to
	var segs []Segment // from the right
	show := func(n int) {
		from := end.Add(-time.Duration(n) * cell)
		segs = append(segs, Segment{Interval: Interval{from, end}, Col: left - n, Cols: n})
		left, end = left-n, from
	}
	for i := len(quiet) - 1; i >= 0 && left > FoldCols; i-- {
		q := quiet[i]
		if !q.From.Before(end) {
			continue
		}
		if q.To.After(end) {
			q.To = end
		}
		// Whole columns only: what is folded is a little less than what is
		// quiet, never more.
		n := int((end.Sub(q.To) + cell - 1) / cell)
		if n > left-FoldCols {
			break
		}
		if n > 0 {
			show(n)
		}
		k := (end.Sub(q.From)) / cell
		if k <= FoldCols {
			continue
		}
		from := end.Add(-k * cell)
		segs = append(segs, Segment{Interval: Interval{from, end}, Col: left - FoldCols, Cols: FoldCols, Folded: true})
		left, end = left-FoldCols, from
	}
	if left > 0 {
		show(left)
	}
	for i := len(segs) - 1; i >= 0; i-- {
		s.Segments = append(s.Segments, segs[i])
	}
	return s
}

// From is the time at the left edge.
func (s *Scale) From() time.Time { return s.Segments[0].From }

// To is the time at the right edge.
func (s *Scale) To() time.Time { return s.Segments[len(s.Segments)-1].To }

// Visible is the time on columns that are not folded.
func (s *Scale) Visible() time.Duration {
	var d time.Duration
	for _, g := range s.Segments {
		if !g.Folded {
			d += g.To.Sub(g.From)
		}
	}
	return d
}

// Col is the column of t: below 0 before the left edge, Cols or more from the
// right edge on.
func (s *Scale) Col(t time.Time) int {
	if t.Before(s.From()) {
		return -1
	}
	if !t.Before(s.To()) {
		return s.Cols
	}
	i, last := 0, len(s.Segments)-1
	for i < last { // a picture asks this very often
		if m := (i + last) / 2; t.Before(s.Segments[m].To) {
			last = m
		} else {
			i = m + 1
		}
	}
	g := &s.Segments[i]
	d := t.Sub(g.From)
	if g.Folded {
		k := g.Cols - 1
		for k > 0 && d < g.part(k) {
			k--
		}
		return g.Col + k
	}
	return g.Col + min(int(d/s.Cell), g.Cols-1)
}

// folded tells whether column col stands for folded time.
func (s *Scale) folded(col int) bool {
	for _, g := range s.Segments {
		if g.Folded && col >= g.Col && col < g.Col+g.Cols {
			return true
		}
	}
	return false
}

// Span is the time that column col stands for. Columns outside are
// extrapolated.
func (s *Scale) Span(col int) Interval {
	if col < 0 {
		f := s.From().Add(time.Duration(col) * s.Cell)
		return Interval{f, f.Add(s.Cell)}
	}
	if col >= s.Cols {
		f := s.To().Add(time.Duration(col-s.Cols) * s.Cell)
		return Interval{f, f.Add(s.Cell)}
	}
	i := sort.Search(len(s.Segments), func(i int) bool { return col < s.Segments[i].Col+s.Segments[i].Cols })
	g := &s.Segments[i]
	if g.Folded {
		k := col - g.Col
		return Interval{g.From.Add(g.part(k)), g.From.Add(g.part(k + 1))}
	}
	f := g.From.Add(time.Duration(col-g.Col) * s.Cell)
	return Interval{f, f.Add(s.Cell)}
}

// columns gives the columns that [from, to) touches, clipped to the picture; ok
// is false when it touches none. An interval narrower than a cell touches one.
func (s *Scale) columns(from, to time.Time) (a, b int, ok bool) {
	if !from.Before(to) || !to.After(s.From()) || !from.Before(s.To()) {
		return 0, 0, false
	}
	a = max(s.Col(from), 0)
	b = s.Cols - 1
	if to.Before(s.To()) {
		b = s.Col(to.Add(-1))
	}
	return a, max(a, b), true
}

// cells are the lengths of time a column may stand for when zooming.
var cells = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 125 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// CellFor is the shortest round cell that shows at least span on cols columns.
func CellFor(span time.Duration, cols int) time.Duration {
	for _, c := range cells {
		if c*time.Duration(max(cols, 1)) >= span {
			return c
		}
	}
	return cells[len(cells)-1]
}

// Zoom returns the next shorter (in) or longer cell.
func Zoom(cell time.Duration, in bool) time.Duration {
	if in {
		for i := len(cells) - 1; i >= 0; i-- {
			if cells[i] < cell {
				return cells[i]
			}
		}
		return cells[0]
	}
	for _, c := range cells {
		if c > cell {
			return c
		}
	}
	return cells[len(cells)-1]
}

// AlignEnd is the right edge of a picture that shows t in its last columns: a
// whole number of cells, so that the picture does not shimmer as time moves.
func AlignEnd(t time.Time, cell time.Duration) time.Time {
	return t.Truncate(cell).Add(cell)
}
