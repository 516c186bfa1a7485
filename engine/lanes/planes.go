package lanes

import (
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// classOf says what a stretch of a plane's history means.
func classOf(c *timeline.PlaneChange) Class {
	switch {
	case c.Knowledge == timeline.Blind:
		return Blind
	case c.Knowledge == timeline.InGap:
		return InGap
	case c.Stopped > 0:
		return Stale
	case !c.Agrees():
		return Behind
	}
	return Agrees
}

// plane is the lane of one plane: slices, endpoints or one node's rules.
func (b *builder) plane(p *timeline.Plane, kind RowKind, label string) Row {
	r := Row{Key: p.ID.String(), Kind: kind, Label: label, Cells: b.cells()}
	b.past(r.Cells, p.Past)
	// A busy plane has very many changes, and few of them are in the picture.
	first := inForce(len(p.Changes), b.scale.From(), func(i int) time.Time { return p.Changes[i].At })
	b.stretches(r.Cells, p.Changes[first:])
	o := b.overlay(r.Cells)
	b.room.have = haveCounts(append(b.room.have[:0], pastCounts(p.Past)...), p.Changes, b.scale.From())
	b.counts(o, b.room.have)
	b.lags(o, p)
	b.staleTimes(o, p, first)
	r.Texts = o.texts()
	if c, ok := p.At(b.o.Cursor); ok {
		r.Right, r.Short, r.Tone = stateText(c)
	} else if c, ok := p.Past.At(b.o.Cursor); ok {
		r.Right, r.Short, r.Tone = pastState(c)
	}
	return r
}

// stretches paints what changes mean from each until the next. Where many of them
// share a column, that is looked for once.
func (b *builder) stretches(cells []Cell, changes []timeline.PlaneChange) {
	var column Interval // in which the stretch before ended
	col := -1
	for i := range changes {
		c, to := &changes[i], b.o.Now
		if i+1 < len(changes) && changes[i+1].At.Before(to) {
			to = changes[i+1].At
		}
		if !c.At.Before(to) {
			continue
		}
		if col >= 0 && !to.After(column.To) && !c.At.Before(column.From) {
			b.touch(cells, col, classOf(c), false)
			continue
		}
		b.paint(cells, c.At, to, classOf(c), false)
		if col = b.scale.Col(to.Add(-1)); col >= b.scale.Cols {
			return
		}
		if col >= 0 {
			column = b.scale.Span(col)
		}
	}
}

// haveCounts appends how many endpoints the plane had, as far as it was known, from
// what was so just before a moment on.
func haveCounts(out []timeline.Count, changes []timeline.PlaneChange, from time.Time) []timeline.Count {
	past := len(out)
	first := inForce(len(changes), from.Add(-1), func(i int) time.Time { return changes[i].At })
	for first > 0 && changes[first].Knowledge != timeline.Known {
		first--
	}
	for i := first; i < len(changes); i++ {
		c := &changes[i]
		if c.Knowledge != timeline.Known {
			continue
		}
		if n := len(out); n > past && out[n-1].At.Equal(c.At) {
			out[n-1].N = c.Have
			continue
		}
		out = append(out, timeline.Count{At: c.At, N: c.Have})
	}
	return out
}

// lags writes how long arrivals took behind the cell in which they happened:
// first those after which the plane agreed with everything, then the others,
// where there is room. Lags that are shorter than a cell would say what the
// lane cannot show; the table has them.
func (b *builder) lags(o *overlay, p *timeline.Plane) {
	for _, settled := range []bool{true, false} {
		for i := len(p.Arrivals) - 1; i >= 0; i-- {
			a := &p.Arrivals[i]
			if a.At.Before(b.scale.From()) {
				break
			}
			if a.Settled != settled || a.Lag < b.o.Cell || a.Lag < 10*time.Millisecond || a.At.After(b.o.Now) {
				continue
			}
			col, limit := b.scale.Col(a.At), b.scale.Cols+1
			if col >= b.scale.Cols {
				continue
			}
			if i+1 < len(p.Arrivals) {
				limit = b.scale.Col(p.Arrivals[i+1].At)
			}
			o.lag(col, limit, a.Lag)
		}
	}
}

// staleTimes writes into each long stretch of stale cells how long it lasted. Nothing
// before the first of the plane's changes is in the picture.
func (b *builder) staleTimes(o *overlay, p *timeline.Plane, first int) {
	// But it may be the middle of one.
	for first > 0 && classOf(&p.Changes[first]) == Stale && classOf(&p.Changes[first-1]) == Stale {
		first--
	}
	for i := first; i < len(p.Changes); i++ {
		if classOf(&p.Changes[i]) != Stale {
			continue
		}
		from, to := p.Changes[i].At, b.o.Now
		for ; i < len(p.Changes) && classOf(&p.Changes[i]) == Stale; i++ {
			to = b.o.Now
			if i+1 < len(p.Changes) {
				to = p.Changes[i+1].At
			}
		}
		if x, y, ok := b.scale.columns(from, to); ok {
			o.centred(x, y+1, " "+strings.ReplaceAll(Age(to.Sub(from)), " ", "")+" ", 2, StaleText)
		}
	}
}

// stateText is a plane's state in a few characters: "5 =", "7  +2 stale !", and
// in fewer: "7 +2 !".
func stateText(c timeline.PlaneChange) (long, short string, tone Tone) {
	switch c.Knowledge {
	case timeline.Blind:
		return "?  blind", "? blind", Dim
	case timeline.InGap:
		return strconv.Itoa(c.Have) + "  gap ?", strconv.Itoa(c.Have) + " gap ?", Warn
	}
	if c.Agrees() {
		return strconv.Itoa(c.Have) + " =", strconv.Itoa(c.Have) + " =", Good
	}
	var words, signs []string
	add := func(n int, sign, word string) {
		if n > 0 {
			signs = append(signs, sign+strconv.Itoa(n))
			words = append(words, sign+strconv.Itoa(n)+" "+word)
		}
	}
	add(c.Missing, Minus, "missing")
	add(c.Stale, "+", "stale")
	add(c.Unexpected, "+", "unexpected")
	add(c.Changed, "~", "changed")
	long, short = strconv.Itoa(c.Have)+"  "+strings.Join(words, " "), strconv.Itoa(c.Have)+" "+strings.Join(signs, "")
	if c.Stopped > 0 || c.Unexpected > 0 {
		return long + " !", short + " !", Bad
	}
	return long, short, Warn
}
