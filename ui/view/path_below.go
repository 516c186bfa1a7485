package view

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// drawBelow paints the nodes by lateness and, beside them, what happened until
// the last of them followed.
func (v *PathView) drawBelow(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, w *lanes.Waterfall) {
	bottom := r.Dy() > len(w.Nodes)+6
	if bottom {
		r.Max.Y--
		s.Repeat(r.Min.X, r.Max.Y, r.Dx(), theme.Line, s.Glyphs.H)
	}
	left := r
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), "nodes, by lateness", "")
	if r.Dx() >= stackBelow {
		split := r.Min.X + r.Dx()/2
		left.Max.X = split
		s.Glyph(split, r.Min.Y, theme.Line, s.Glyphs.TDown)
		for y := r.Min.Y + 1; y < r.Max.Y; y++ {
			s.Glyph(split, y, theme.Line, s.Glyphs.V)
		}
		if bottom {
			s.Glyph(split, r.Max.Y, theme.Line, s.Glyphs.TUp)
		}
		v.drawBeside(s, draw.Box(split+1, r.Min.Y, r.Max.X-split-1, r.Dy()), c, svc, w)
	}
	left.Min.Y++
	y := drawLateness(s, left, c, w) + 1
	if left.Max.Y-y >= 4 {
		left.Min.Y = y
		drawNeighbours(s, left, c, svc, w.Path)
	}
}

// drawNeighbours lists the changes around the one that is shown.
func drawNeighbours(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, p *timeline.Path) {
	at := 0
	for i, q := range svc.Paths {
		if q == p {
			at = i
		}
	}
	x, y := r.Min.X+1, r.Min.Y
	s.Text(x, y, theme.Dim, "changes")
	s.Right(r.Max.X-1, y, theme.Dim, "to the last node")
	h := r.Max.Y - y - 1
	first := max(0, min(at-h/2, len(svc.Paths)-h))
	for i := first; i < len(svc.Paths) && y+1 < r.Max.Y; i++ {
		y++
		drawPathLine(s, draw.Box(x, y, r.Max.X-1-x, 1), c, svc, svc.Paths[i], i == at)
	}
}

// drawLateness returns the line after its last.
func drawLateness(s *draw.Screen, r draw.Rect, c *Context, w *lanes.Waterfall) int {
	x, y := r.Min.X+1, r.Min.Y
	nameW := max(8, min(20, r.Dx()-51))
	at, after, errX, gen := x+nameW+1, x+nameW+26, x+nameW+36, x+nameW+47
	if len(w.Nodes) == 0 {
		text := "no node had to follow this change"
		if w.Open {
			text = "nothing is there yet that the nodes could follow"
		}
		s.TextIn(x, y, r.Dx()-2, theme.Dim, text)
		return y + 1
	}
	s.Text(at, y, theme.Dim, "arrival")
	s.Right(after, y, theme.Dim, "after slice")
	if errX < r.Max.X {
		s.Right(errX, y, theme.Dim, "error")
	}
	if gen < r.Max.X {
		s.Right(gen, y, theme.Dim, "generation")
	}
	y++
	room := r.Max.Y - y
	if room > len(w.Nodes)+1 {
		room = len(w.Nodes)
	} else {
		room--
	}
	for i := range w.Nodes[:min(len(w.Nodes), max(0, room))] {
		h := w.Nodes[i]
		s.NameIn(x, y, nameW, theme.Text, h.Plane.Node)
		switch h.Status {
		case timeline.StatusOpen:
			s.Text(at, y, theme.Warn, "not yet")
			s.Right(after, y, theme.Warn, ">"+lanes.Duration(c.Now.Sub(h.Step)))
		case timeline.StatusArrived:
			s.Text(at, y, theme.Text, h.At.In(c.Loc).Format("15:04:05.000"))
			s.Right(after, y, theme.Strong, lanes.AtMost(&h, h.FromStep))
			if errX < r.Max.X {
				s.Right(errX, y, theme.Dim, lanes.HopError(&h))
			}
			if gen < r.Max.X && h.Generation > 0 {
				s.Right(gen, y, theme.Dim, fmt.Sprint(h.Generation))
			}
		default:
			t, tone := lanes.HopText(h, w.Path.Origin.At, c.Now)
			s.TextIn(at, y, r.Max.X-at-1, draw.ToneRole(tone), t)
		}
		y++
	}
	if y < r.Max.Y-1 {
		y++
	}
	if y < r.Max.Y {
		text := w.Quantiles(c.Now)
		for _, less := range [][2]string{{"  missing 0", ""}, {"median", "p50"}, {"  ", " "}} {
			if draw.Width(text) > r.Dx()-2 {
				text = strings.ReplaceAll(text, less[0], less[1])
			}
		}
		s.TextIn(x, y, r.Dx()-2, theme.Text, text)
	}
	for _, line := range Wrap(officialText(w.Nodes, c.Loc), r.Dx()-2) {
		if y+1 < r.Max.Y && line != "" {
			y++
			s.TextIn(x, y, r.Dx()-2, theme.Dim, line)
		}
	}
	return y + 1
}
