package view

import (
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// timeMarks are up to two moments that a person wants the time between of.
type timeMarks []time.Time

var markNames = [...]string{"A", "B"}

// markTime marks the moment under the cursor; where there are two marks already it
// takes them away.
func (v *TimelineView) markTime(_ *Context, _ *timeline.Service) Request {
	if len(v.marks) == len(markNames) {
		v.marks = nil
		return Request{Handled: true, Say: "marks taken away"}
	}
	v.marks = append(v.marks, v.pic.Cursor)
	if len(v.marks) == len(markNames) {
		return Request{Handled: true, Say: v.marks.text(v.pic.Cursor)}
	}
	return Request{Handled: true, Say: "marked A; move, and mark B"}
}

// text is the time between the marks, or between the first one and the cursor, from
// the earlier to the later.
func (m timeMarks) text(cursor time.Time) string {
	first, second := "A", "B"
	var d time.Duration
	switch len(m) {
	case 0:
		return ""
	case 1:
		second, d = "here", cursor.Sub(m[0])
	default:
		d = m[1].Sub(m[0])
	}
	if d < 0 {
		first, second, d = second, first, -d
	}
	return first + " to " + second + " " + lanes.Duration(d)
}

// draw paints the marks on the line under the axis, as far as they are in view.
func (m timeMarks) draw(s *draw.Screen, l draw.LaneLayout, y int, pic *lanes.Picture) {
	for i, t := range m {
		if col := pic.Scale.Col(t); col >= 0 && col < l.Cols {
			s.Glyph(l.Lanes()+col, y, theme.Selected, markNames[i])
		}
	}
}
