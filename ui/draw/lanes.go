package draw

import (
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/ui/theme"
)

// LaneLayout is where the parts of a timeline stand: labels, a line, the lanes,
// a line, the state at the cursor.
type LaneLayout struct {
	X, Label, Cols, State int
}

// Lanes is the first column of the lanes.
func (l LaneLayout) Lanes() int { return l.X + l.Label + 1 }

// Right is the first column of the states.
func (l LaneLayout) Right() int { return l.Lanes() + l.Cols + 1 }

// LayoutLanes divides w columns: labels and states grow with the screen, most of
// it belongs to the lanes.
func LayoutLanes(x, w int) LaneLayout {
	l := LaneLayout{X: x}
	switch {
	case w < 60:
		l.Label, l.State = 10, 7
	case w < 84:
		l.Label, l.State = 14, 11
	case w < 110:
		l.Label, l.State = 16, 15
	case w < 160:
		l.Label, l.State = 19, 18
	default:
		l.Label, l.State = 26, 26
	}
	l.Cols = max(w-l.Label-l.State-2, 1)
	return l
}

// Axis paints the two lines of the axis at y. at is what stands above the
// states: the instant they speak of.
func (s *Screen) Axis(l LaneLayout, y int, p *lanes.Picture, at string) {
	g := s.Glyphs
	x0 := l.Lanes()
	// The label has the room that the first tick or fold leaves.
	s.Text(l.X+1, y, theme.Dim, Cut(s.clean(p.Axis.Date+" "+p.Axis.Zone), l.Label-2, g))
	s.Glyph(x0-1, y, theme.Line, g.V)
	s.Glyph(x0+l.Cols, y, theme.Line, g.V)
	s.TextIn(l.Right()+1, y, l.State-1, theme.Accent, at)

	s.Glyph(x0-1, y+1, theme.Line, g.AxisLeft)
	s.Repeat(x0, y+1, l.Cols, theme.Line, g.H)
	s.Glyph(x0+l.Cols, y+1, theme.Line, g.AxisRight)
	for _, f := range p.Axis.Folds {
		if f.Shown {
			s.Text(x0+f.Col, y, theme.Dim, g.Fold+" "+f.Label)
		}
		s.Repeat(x0+f.Col, y+1, f.Cols, theme.Dim, g.Fold)
	}
	for _, t := range p.Axis.Ticks {
		if t.Label == "" {
			s.Glyph(x0+t.Col, y+1, theme.Line, g.TickMinor)
			continue
		}
		s.Text(x0+t.Col, y, theme.Text, t.Label)
		s.Glyph(x0+t.Col, y+1, theme.Line, g.TickMajor)
	}
	if p.CursorCol >= 0 {
		s.Glyph(x0+p.CursorCol, y+1, theme.Accent, g.Cursor)
	}
}

// Lane paints one row at y.
func (s *Screen) Lane(l LaneLayout, y int, r *lanes.Row, cursor int, chosen bool) {
	g := s.Glyphs
	label := theme.Text
	indent := 1
	switch r.Kind {
	case lanes.RowPod, lanes.RowSteadyPods:
		label = theme.Dim
	}
	if r.Nested {
		indent = 3
		label = theme.Dim
	}
	if chosen {
		label = theme.Accent
		s.Glyph(l.X, y, theme.Accent, g.Chosen)
	}
	if r.Kind == lanes.RowPod || r.Kind == lanes.RowNode {
		s.NameIn(l.X+indent, y, l.Label-indent-1, label, r.Label)
	} else {
		text := r.Label
		if r.ShortLabel != "" && Width(s.clean(text)) > l.Label-indent-1 {
			text = r.ShortLabel
		}
		s.TextIn(l.X+indent, y, l.Label-indent-1, label, text)
	}
	x0 := l.Lanes()
	s.Glyph(x0-1, y, theme.Line, g.V)
	s.Glyph(x0+l.Cols, y, theme.Line, g.V)
	for i, c := range r.Cells {
		gl := g.glyph(c)
		role := cellRole(r.Kind, c)
		if c.Class == lanes.Blind && i%6 != 0 {
			gl = g.Nothing // a mark now and then is enough
		}
		if r.Kind == lanes.RowActions && c.Class == lanes.Point {
			gl, role = g.Action, theme.Accent
		}
		switch {
		case gl == " " && i != cursor:
			continue
		case gl == " ":
			gl, role = g.CursorLine, theme.Accent
		case i == cursor && !c.Class.Difference():
			role = theme.Accent
		}
		s.Glyph(x0+i, y, role, gl)
	}
	if r.Kind == lanes.RowEpisodes {
		s.openEnds(x0, y, r)
	}
	for _, t := range r.Texts {
		s.Text(x0+t.Col, y, textRole(r, t), t.Text)
	}
	state := r.Right
	if Width(s.clean(state)) > l.State-1 && r.Short != "" {
		state = r.Short
	}
	s.TextIn(l.Right()+1, y, l.State-1, toneRole(r.Tone), state)
}

// NoLane paints the edges of a line that is kept for a lane to come.
func (s *Screen) NoLane(l LaneLayout, y int) {
	s.Glyph(l.Lanes()-1, y, theme.Line, s.Glyphs.V)
	s.Glyph(l.Lanes()+l.Cols, y, theme.Line, s.Glyphs.V)
}

// openEnds marks the last cell of an episode that goes on.
func (s *Screen) openEnds(x0, y int, r *lanes.Row) {
	for i, c := range r.Cells {
		last := i+1 == len(r.Cells) || r.Cells[i+1].Class != lanes.Span
		if c.Class == lanes.Span && last && !c.Ends {
			s.Glyph(x0+i, y, theme.Warn, s.Glyphs.SpanOpen)
		}
	}
}

func cellRole(k lanes.RowKind, c lanes.Cell) theme.Role {
	switch c.Class {
	case lanes.Agrees:
		if k == lanes.RowWanted {
			return theme.Text
		}
		if c.Provisional {
			return theme.Tentative
		}
		return theme.Good
	case lanes.Had:
		return theme.Tentative
	case lanes.PodReady:
		if c.Provisional || c.Claimed {
			return theme.Tentative
		}
		return theme.Good
	case lanes.Behind, lanes.PodUnready, lanes.PodTerminating:
		return theme.Warn
	case lanes.Stale, lanes.Alert:
		return theme.Bad
	case lanes.InGap:
		return theme.Warn
	case lanes.Point:
		return theme.Text
	}
	return theme.Dim
}

// textRole gives a text the tone of what it lies on, so that nothing is lost
// under it.
func textRole(r *lanes.Row, t lanes.Text) theme.Role {
	switch t.Kind {
	case lanes.CountText:
		if t.Col < len(r.Cells) && r.Cells[t.Col].Claimed {
			return theme.Tentative
		}
		return theme.Strong
	case lanes.StaleText:
		return theme.Bad
	case lanes.MarkText:
		return theme.Text
	}
	return theme.Text
}

func toneRole(t lanes.Tone) theme.Role {
	switch t {
	case lanes.Dim:
		return theme.Dim
	case lanes.Good:
		return theme.Good
	case lanes.Warn:
		return theme.Warn
	case lanes.Bad:
		return theme.Bad
	}
	return theme.Text
}

// ToneRole is the role that a tone is drawn in.
func ToneRole(t lanes.Tone) theme.Role { return toneRole(t) }
