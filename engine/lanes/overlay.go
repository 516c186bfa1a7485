package lanes

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// overlay places texts over a lane. Texts never overlap, stay inside, and of
// each run of cells that show a difference at least one stays uncovered.
type overlay struct {
	cells    []Cell
	prepared bool
	used     []bool  // covered by a text
	runs     []int32 // run number of each cell, 0 outside differences
	free     []int32 // uncovered cells of each run
	out      []Text
}

// overlay readies the builder's overlay for cells, which may still be painted until the
// first text is placed. It is good until the next lane's.
func (b *builder) overlay(cells []Cell) *overlay {
	o := &b.room.overlay
	o.cells, o.prepared, o.out = cells, false, o.out[:0]
	return o
}

func (o *overlay) prepare() {
	if o.prepared {
		return
	}
	o.prepared = true
	n := len(o.cells)
	o.used, o.runs, o.free = slices.Grow(o.used[:0], n)[:n], slices.Grow(o.runs[:0], n)[:n], append(o.free[:0], 0)
	clear(o.used)
	clear(o.runs)
	for i, c := range o.cells {
		if !c.Class.Difference() {
			continue
		}
		if i == 0 || o.cells[i-1].Class != c.Class {
			o.free = append(o.free, 0)
		}
		o.runs[i] = int32(len(o.free) - 1)
		o.free[len(o.free)-1]++
	}
}

// fits tells whether a text of w columns may stand at col with gap free columns
// on either side.
func (o *overlay) fits(col, w, gap int) bool {
	o.prepare()
	if col < 0 || col+w > len(o.cells) {
		return false
	}
	for i := max(0, col-gap); i < min(len(o.cells), col+w+gap); i++ {
		if o.used[i] {
			return false
		}
	}
	covered := int32(0) // of the run that goes on
	for i := col; i < col+w; i++ {
		if o.cells[i].Fold {
			return false
		}
		switch r := o.runs[i]; {
		case r == 0:
			covered = 0
			continue
		case i > col && o.runs[i-1] == r:
			covered++
		default:
			covered = 1
		}
		if o.free[o.runs[i]] <= covered {
			return false
		}
	}
	return true
}

func (o *overlay) put(col int, s string, k TextKind) {
	w := utf8.RuneCountInString(s)
	for i := col; i < col+w; i++ {
		o.used[i] = true
		if r := o.runs[i]; r > 0 {
			o.free[r]--
		}
	}
	o.out = append(o.out, Text{Col: col, Text: s, Kind: k})
}

// count writes n into the first column from col on, and before until, where it
// fits with a column between it and any other text.
func (o *overlay) count(col, until, n int) bool {
	s := strconv.Itoa(n)
	for c := col; c < until; c++ {
		if o.fits(c, len(s), 1) {
			o.put(c, s, CountText)
			return true
		}
	}
	return false
}

// takeBack removes the last text when it stands at from or later.
func (o *overlay) takeBack(from int) bool {
	if len(o.out) == 0 {
		return false
	}
	t := o.out[len(o.out)-1]
	if t.Col < from {
		return false
	}
	o.out = o.out[:len(o.out)-1]
	for i := t.Col; i < t.Col+utf8.RuneCountInString(t.Text); i++ {
		o.used[i] = false
		if r := o.runs[i]; r > 0 {
			o.free[r]++
		}
	}
	return true
}

// lag writes a duration behind col: " 0.98s " with a cell of lane between the
// count and it, or directly behind when there is less room. limit is the first
// column it must not reach.
func (o *overlay) lag(col, limit int, d time.Duration) {
	o.prepare()
	for col < len(o.used) && o.used[col] {
		col++
	}
	const least = 2 // a space and a digit; where there is no room the words are not made
	if col+least >= limit || col+least > len(o.used) {
		return
	}
	s := TightDuration(d)
	for _, try := range []struct {
		text string
		at   int
	}{{" " + s + " ", col + 1}, {" " + s + " ", col}, {" " + s, col}} {
		w := utf8.RuneCountInString(try.text)
		if try.at+w < limit && o.fits(try.at, w, 0) {
			o.put(try.at, try.text, LagText)
			return
		}
	}
}

// centred writes s in the middle of [from, to), when at least pad cells of the
// lane stay visible on both sides.
func (o *overlay) centred(from, to int, s string, pad int, k TextKind) bool {
	w := utf8.RuneCountInString(s)
	if to-from < w+2*pad {
		return false
	}
	at := from + (to-from-w)/2
	if !o.fits(at, w, 0) {
		return false
	}
	o.put(at, s, k)
	return true
}

// texts are the texts placed, by column.
func (o *overlay) texts() []Text {
	if len(o.out) == 0 {
		return nil
	}
	slices.SortFunc(o.out, func(x, y Text) int { return x.Col - y.Col })
	return slices.Clone(o.out)
}
