package view

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// columns of the table of hops.
type hopColumns struct {
	label, took, share, usual, bars, barsW int
}

func columnsFor(x, w int) hopColumns {
	c := hopColumns{label: x + 1}
	labelW := 22
	if w < 100 {
		labelW = 18
	}
	c.took = x + labelW + 9
	c.share = c.took + 7
	c.usual = c.share
	if w >= 100 {
		c.usual = c.share + 14
	}
	c.bars = c.usual + 3
	c.barsW = x + w - c.bars - 1
	return c
}

// drawHops paints the waterfall and returns the next line.
func (v *PathView) drawHops(s *draw.Screen, r draw.Rect, c *Context, w *lanes.Waterfall) int {
	col := columnsFor(r.Min.X, r.Dx())
	y := r.Min.Y
	scale := newRuler(w.Total, col.barsW, v.log)
	s.Repeat(r.Min.X, y, r.Dx(), theme.Line, s.Glyphs.H)
	y++
	s.Text(col.label, y, theme.Dim, "hop")
	s.Right(col.took, y, theme.Dim, "took")
	s.Right(col.share, y, theme.Dim, "share")
	beside := v.beside(c, w.Path)
	if col.usual > col.share {
		title := "usual p50"
		if beside != nil {
			title = "at " + beside.Origin.At.In(c.Loc).Format("15:04:05")
		}
		s.Right(col.usual, y, theme.Dim, title)
	}
	s.Repeat(r.Min.X, y+1, r.Dx(), theme.Line, s.Glyphs.H)
	s.Glyph(col.bars-1, y+1, theme.Line, s.Glyphs.TickMajor)
	for _, t := range scale.ticks {
		s.Text(col.bars-1+t.col, y, theme.Dim, t.label)
		s.Glyph(col.bars-1+t.col, y+1, theme.Line, s.Glyphs.TickMajor)
	}
	if n := len(scale.ticks); n > 0 && scale.ticks[n-1].col+len(scale.ticks[n-1].label)+len(scale.name())+1 < col.barsW {
		s.Right(col.bars-1+col.barsW, y, theme.Dim, scale.name())
	}
	y += 2
	v.n = len(w.Bars)
	v.h = max(1, min(v.n, r.Max.Y-y))
	v.hops.fit(v.n, v.h)
	for i := 0; i < v.h; i++ {
		v.drawHop(s, y, col, scale, c, w, v.hops.first+i, beside)
		y++
	}
	return y
}

func (v *PathView) drawHop(s *draw.Screen, y int, col hopColumns, scale ruler, c *Context, w *lanes.Waterfall, i int, beside *timeline.Path) {
	b := w.Bars[i]
	label := b.Label
	switch {
	case b.Depth == 2:
		label = "   " + label
	case b.Kind == lanes.BarAfter:
		label = "  " + label
	case b.Depth == 1:
		label = "│  " + label
	case i > 0 && lastOnWay(w.Bars, i):
		label = "└ " + label
	case i > 0:
		label = "├ " + label
	}
	role := theme.Text
	if b.Depth > 0 {
		role = theme.Dim
	}
	if i == v.hops.at {
		role = theme.Accent
		s.Glyph(col.label-1, y, theme.Accent, s.Glyphs.Chosen)
	}
	if b.Depth == 2 {
		s.NameIn(col.label, y, col.took-col.label-9, role, label)
	} else {
		s.TextIn(col.label, y, col.took-col.label-9, role, label)
	}
	took := lanes.Duration(b.Took)
	if b.Kind == lanes.BarPoint || b.Kind == lanes.BarClaimed {
		took = ""
	}
	switch {
	case b.Kind == lanes.BarOpen:
		took = ">" + took
	case b.AtMost:
		took = "≤" + took
	}
	s.Right(col.took, y, theme.Strong, took)
	if b.Share >= 0 && b.Kind != lanes.BarPoint {
		s.Right(col.share, y, theme.Text, fmt.Sprintf("%d %%", b.Share))
	}
	if col.usual > col.share {
		if took, ok := usualOrKept(w, &b, beside); ok {
			s.Right(col.usual, y, theme.Dim, lanes.Duration(took))
		}
	}
	drawBar(s, y, col, scale, c, w, b)
}

func lastOnWay(bars []lanes.Bar, i int) bool {
	for _, b := range bars[i+1:] {
		if b.Depth == 0 {
			return false
		}
	}
	return true
}

func drawBar(s *draw.Screen, y int, col hopColumns, scale ruler, c *Context, w *lanes.Waterfall, b lanes.Bar) {
	g := s.Glyphs
	if b.Kind == lanes.BarClaimed {
		s.TextIn(col.bars-1, y, col.barsW, theme.Dim, b.Note)
		return
	}
	// How the pod ended lies beyond the scale, which is that of the change.
	x0 := min(scale.col(b.From.Sub(w.From)), col.barsW-1)
	x1 := scale.col(b.To.Sub(w.From))
	glyph, role := g.Work, theme.Good
	switch b.Kind {
	case lanes.BarPoint, lanes.BarUnknown:
		glyph, role = "▏", theme.Dim
	case lanes.BarProbe:
		glyph, role = g.Wait, theme.Warn
	case lanes.BarNode:
		glyph, role = g.Work, theme.Good
		if b.Depth == 0 {
			glyph, role = g.Span, theme.Dim
		}
	case lanes.BarSlowest:
		glyph, role = g.Bar, theme.Warn
	case lanes.BarOpen:
		glyph, role = g.Behind, theme.Warn
	case lanes.BarAfter:
		glyph, role = g.Span, theme.Dim
	}
	if g.Name == "ascii" && glyph == "▏" {
		glyph = "|"
	}
	n := max(1, x1-x0)
	n = min(n, col.barsW-x0)
	s.Repeat(col.bars-1+x0, y, n, role, glyph)
	if b.Kind == lanes.BarOpen {
		s.Glyph(col.bars-1+x0+n-1, y, role, g.SpanOpen)
	}
	note := b.Note
	if (b.Kind == lanes.BarPoint || b.Kind == lanes.BarAfter) && note == "" {
		note = b.To.In(c.Loc).Format("15:04:05.000")
	}
	if note == "" {
		return
	}
	noteRole := theme.Dim
	if strings.HasSuffix(note, "!") {
		noteRole = theme.Warn
	}
	end := col.bars - 1 + col.barsW
	at := col.bars - 1 + x0 + n + 1
	for ; note != ""; note = shorter(note) {
		switch need := draw.Width(draw.Clean(note)); {
		case at+need <= end:
			s.Text(at, y, noteRole, note)
			return
		case x0 > need+2:
			s.Right(col.bars-1+x0-1, y, noteRole, note)
			return
		case n > need+4:
			s.Text(col.bars-1+x0+2, y, noteRole, " "+note+" ")
			return
		}
	}
}

// shorter leaves out the first thing that a note says; the empty string when it says
// but one.
func shorter(note string) string {
	for _, sep := range []string{", ", "  "} {
		if _, rest, ok := strings.Cut(note, sep); ok {
			return rest
		}
	}
	return ""
}
