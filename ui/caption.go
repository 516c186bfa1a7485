package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// captionLines is how many lines a caption may have, beside its rule.
const captionLines = 3

// narration is what a script tells now, nil when none does.
func (m *Model) narration() *collect.Narration {
	if m.snap == nil {
		return nil
	}
	return m.snap.Narration
}

// captionRows are the lines of the caption for a width, none without a narration or
// where the screen is too low for both.
func (m *Model) captionRows(w, h int) []string {
	n := m.narration()
	if n == nil || n.Text == "" || h < 20 {
		return nil
	}
	text := n.Text
	if n.Verdict != "" {
		mark := m.screen.Glyphs.Alert + " not met: "
		if n.Verdict == "met" {
			mark = "met: "
		}
		text = mark + text
	}
	return wrap(m.screen.Clean(text), w, captionLines, m.screen.Glyphs)
}

// wrap breaks a text between words into at most so many lines of a width.
func wrap(text string, w, most int, g *draw.Glyphs) (out []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case draw.Width(line)+1+draw.Width(word) <= w:
			line += " " + word
		default:
			out = append(out, line)
			line = word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	if len(out) > most {
		out[most-1] = draw.Cut(strings.Join(out[most-1:], " "), w, g)
		out = out[:most]
	}
	for i := range out {
		out[i] = draw.Cut(out[i], w, g)
	}
	return out
}

// drawCaption paints what a script tells below the view, and gives how many lines that
// took.
func (m *Model) drawCaption(s *draw.Screen, bottom int) int {
	rows := m.captionRows(s.Width()-4, s.Height())
	if len(rows) == 0 {
		return 0
	}
	n := m.narration()
	title, right := n.Scenario, ""
	if n.Chapter != "" {
		title = n.Chapter
	}
	if n.Waiting && m.o.Next != nil {
		right = m.keys.first(view.Pause) + " goes on"
		if n.Next != "" {
			right += ": " + n.Next
		}
	}
	y := bottom - len(rows)
	s.Rule(0, y-1, s.Width(), title, right)
	role := theme.Strong
	switch n.Verdict {
	case "met":
		role = theme.Good
	case "not met":
		role = theme.Bad
	}
	for i, row := range rows {
		s.Text(2, y+i, role, row)
	}
	return len(rows) + 1
}

// goOn lets a script that waits go on; false when none does. What comes is to be seen, so
// that a picture that was stopped follows again.
func (m *Model) goOn() (tea.Cmd, bool) {
	n := m.narration()
	if m.o.Next == nil || n == nil || !n.Waiting {
		return nil, false
	}
	if v, ok := m.views[view.Timeline].(*view.TimelineView); ok {
		v.FollowNow()
	}
	next := m.o.Next
	return func() tea.Msg { next(); return movedMsg{} }, true
}
