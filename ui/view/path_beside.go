package view

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// chosen is the bar that the cursor is on, or nil.
func (v *PathView) chosen(w *lanes.Waterfall) *lanes.Bar {
	if v.hops.at < 0 || v.hops.at >= len(w.Bars) {
		return nil
	}
	return &w.Bars[v.hops.at]
}

// spreads are the hops to compare with those of the other changes: the chosen one,
// then the nodes, the latest first; most at most.
func (v *PathView) spreads(w *lanes.Waterfall, most int) []lanes.Spread {
	var out []lanes.Spread
	add := func(b *lanes.Bar) {
		if x, ok := w.Spread(b); ok && len(out) < most {
			out = append(out, x)
		}
	}
	chosen := v.chosen(w)
	if chosen != nil {
		add(chosen)
	}
	for i := range w.Nodes[:min(len(w.Nodes), most)] {
		for k := range w.Bars {
			if b := &w.Bars[k]; b != chosen && b.Node == w.Nodes[i].Plane.Node {
				add(b)
			}
		}
	}
	return out
}

// drawBeside paints how the hops compare with those of other changes and, below,
// what happened meanwhile. The first line of r is on a rule.
func (v *PathView) drawBeside(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, w *lanes.Waterfall) {
	if list := v.spreads(w, max(1, min(r.Dy()/4, 8))); len(list) > 0 && r.Dy() >= 9 {
		n := len(list[0].Others)
		for i := range list {
			n = max(n, len(list[i].Others))
		}
		s.TextIn(r.Min.X+1, r.Min.Y, r.Dx()-2, theme.Text, fmt.Sprintf(" against %s of %s ", lanes.Plural(n, "other "+opWord(w.Path.Op)), s.Clean(svc.Name)))
		used := v.drawSpreads(s, draw.Box(r.Min.X, r.Min.Y+1, r.Dx(), r.Dy()-1), list, n)
		r.Min.Y += used + 1
		s.Repeat(r.Min.X, r.Min.Y, r.Dx(), theme.Line, s.Glyphs.H)
		s.Glyph(r.Min.X-1, r.Min.Y, theme.Line, s.Glyphs.AxisRight)
	}
	v.drawStory(s, r, c, svc, w)
}

func opWord(o timeline.Op) string {
	switch o {
	case timeline.OpAdd:
		return "addition"
	case timeline.OpRemove:
		return "removal"
	}
	return "change"
}

// drawSpreads paints an axis and a histogram for each hop, and returns the lines used.
// usualN is of how many others a row is that does not say so.
func (v *PathView) drawSpreads(s *draw.Screen, r draw.Rect, list []lanes.Spread, usualN int) int {
	var longest time.Duration
	most := 0
	for i := range list {
		longest = max(longest, list[i].Longest())
		most = max(most, draw.Width(spreadText(&list[i], usualN)))
	}
	labelW := min(14, r.Dx()/5)
	x := r.Min.X + 1 + labelW + 1
	cols := r.Max.X - x - most - 2
	if cols < 8 {
		return 0
	}
	scale := newRuler(longest, cols, v.log)
	y := r.Min.Y
	for _, t := range scale.ticks {
		s.Text(x+t.col, y, theme.Dim, t.label)
	}
	s.Right(r.Max.X-1, y, theme.Dim, scale.name())
	for i := range list {
		y++
		if y >= r.Max.Y {
			break
		}
		drawSpread(s, draw.Box(r.Min.X+1, y, r.Dx()-2, 1), x, scale, &list[i], labelW, usualN)
	}
	return y + 1 - r.Min.Y
}

// drawSpread paints one histogram: the others as levels, this change as a mark.
func drawSpread(s *draw.Screen, r draw.Rect, x int, scale ruler, d *lanes.Spread, labelW, usualN int) {
	y := r.Min.Y
	s.NameIn(r.Min.X, y, labelW, theme.Text, d.Label)
	for i, n := range d.Levels(scale.cols, len(s.Glyphs.Levels), scale.col) {
		if n > 0 {
			s.Glyph(x+i, y, theme.Dim, s.Glyphs.Levels[n-1])
		}
	}
	role := theme.Good
	if d.This > d.Median()*3/2 {
		role = theme.Warn
	}
	s.Glyph(x+scale.col(d.This), y, role, s.Glyphs.This)
	s.Right(r.Max.X, y, theme.Text, spreadText(d, usualN))
}

// spreadText puts a histogram into numbers.
func spreadText(d *lanes.Spread, usualN int) string {
	this := lanes.Duration(d.This)
	switch {
	case d.Open:
		this = ">" + this
	case d.AtMost:
		this = "≤" + this
	}
	t := "this " + this + "  p50 " + lanes.Duration(d.Median())
	if n := len(d.Others); n != usualN {
		t += fmt.Sprintf(" n=%d", n)
	}
	return t
}

// drawStory lists what is known to have happened during the chosen hop, or since the
// origin, and what the change has cost.
func (v *PathView) drawStory(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, w *lanes.Waterfall) {
	p, b := w.Path, v.chosen(w)
	from, to, _ := w.Window(b)
	title := " what happened in these " + lanes.Duration(to.Sub(from)) + " "
	if b != nil && b.Took > 0 {
		title = " what happened in the " + lanes.Duration(to.Sub(from)) + " of " + s.Clean(b.Label) + " "
	}
	s.TextIn(r.Min.X+1, r.Min.Y, r.Dx()-2, theme.Text, title)
	y := r.Min.Y + 1
	story := w.Story(b)
	room := r.Max.Y - y
	for i, l := range story {
		if i == room-1 && len(story) > room {
			s.TextIn(r.Min.X+15, y, r.Dx()-16, theme.Dim, fmt.Sprintf("%d more", len(story)-i))
			return
		}
		s.Text(r.Min.X+1, y, theme.Dim, l.At.In(c.Loc).Format("15:04:05.000"))
		s.TextIn(r.Min.X+15, y, r.Dx()-16, draw.ToneRole(l.Tone), l.Text)
		y++
	}
	if len(story) == 0 && room > 0 {
		s.TextIn(r.Min.X+1, y, r.Dx()-2, theme.Dim, "nothing that is known")
		y++
	}
	cost := lanes.UnroutedText(svc, p, c.Now)
	if p.Op == timeline.OpRemove {
		cost = lanes.AdviceText(svc)
	}
	if lines := Wrap(cost, r.Dx()-2); cost != "" && y+len(lines) < r.Max.Y {
		y++
		for _, l := range lines {
			s.TextIn(r.Min.X+1, y, r.Dx()-2, theme.Text, l)
			y++
		}
		y--
	}
	if d := p.Origin; !d.Claimed.IsZero() && y+1 < r.Max.Y {
		y++
		s.TextIn(r.Min.X+1, y, r.Dx()-2, theme.Dim, "the object claims "+d.Claimed.In(c.Loc).Format("15:04:05")+" (±1 s, another clock)")
	}
}

// drawOneSpread compares the chosen hop, or the last node's, in one line, where there
// is no room for more.
func (v *PathView) drawOneSpread(s *draw.Screen, r draw.Rect, w *lanes.Waterfall) {
	list := v.spreads(w, 1)
	if len(list) == 0 {
		return
	}
	d := &list[0]
	text := spreadText(d, 0)
	x := r.Min.X + 16
	if cols := r.Max.X - x - draw.Width(text) - 3; cols >= 8 {
		drawSpread(s, draw.Box(r.Min.X+1, r.Min.Y, r.Dx()-2, 1), x, newRuler(d.Longest(), cols, v.log), d, 14, 0)
	}
}
