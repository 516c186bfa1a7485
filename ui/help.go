package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// help shows what the keys do, made from the key map.
type help struct {
	title string
	lines []helpLine
	hint  string // the line to try in another terminal, or ""
	first int
	h     int
}

type helpLine struct {
	group      bool
	keys, text string
	role       theme.Role
}

var groups = []string{view.GroupMove, view.GroupTime, view.GroupLanes, view.GroupLab, view.GroupPlay, view.GroupView, view.GroupOther}

func newHelp(m *Model) *help {
	h := &help{title: "help: " + m.views[m.shown].Title(), hint: m.o.Hint}
	offered := map[view.Action]bool{}
	for _, a := range m.views[m.shown].Offers() {
		offered[a] = true
	}
	for _, g := range groups {
		title := g
		if g == view.GroupPlay && m.o.Replay == nil {
			continue
		}
		if g == view.GroupLab && m.o.Replay != nil {
			continue
		}
		if g == view.GroupLab && m.o.Actions == nil {
			title += " (not here: " + m.o.NoActions + ")"
		}
		h.lines = append(h.lines, helpLine{group: true, text: title, role: theme.Strong})
		for _, i := range view.Actions {
			if i.Group != g || i.Action == view.CopyHint && m.o.Hint == "" {
				continue
			}
			role := theme.Dim
			if offered[i.Action] || i.Action == view.CopyHint {
				role = theme.Text
			}
			h.lines = append(h.lines, helpLine{keys: m.keys.all(i.Action), text: i.Help, role: role})
		}
		h.lines = append(h.lines, helpLine{})
	}
	return h
}

func (h *help) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch m.keys.byKey[k.String()] {
	case view.Quit:
		if k.String() == "ctrl+c" {
			return tea.Quit
		}
		m.layer = nil
	case view.Back, view.Help:
		m.layer = nil
	case view.Down:
		h.first++
	case view.Up:
		h.first--
	case view.PageDown:
		h.first += h.h - 1
	case view.PageUp:
		h.first -= h.h - 1
	case view.Top:
		h.first = 0
	case view.Bottom:
		h.first = len(h.lines)
	}
	return nil
}

func (h *help) draw(s *draw.Screen, r draw.Rect) {
	two := r.Dx() >= 100
	rows := len(h.lines)
	if two {
		rows = (len(h.lines) + 1) / 2
		// A column does not begin in the middle of a group.
		for rows < len(h.lines) && !h.lines[rows].group {
			rows++
		}
	}
	w := 62
	if two {
		w = 116
	}
	var foot []string
	if h.hint != "" {
		foot = append([]string{"from another terminal:"}, view.Wrap(draw.Clean(h.hint), min(w, r.Dx())-4)...)
	}
	in := box(s, r, w, rows+2+len(foot), h.title)
	for i, l := range foot {
		role := theme.Accent
		if i == 0 {
			role = theme.Dim
		}
		s.TextIn(in.Min.X, in.Max.Y-len(foot)+i, in.Dx(), role, l)
	}
	in.Max.Y -= len(foot)
	h.h = in.Dy()
	h.first = max(0, min(h.first, rows-h.h))
	colW := in.Dx()
	if two {
		colW = in.Dx() / 2
	}
	for i, l := range h.lines {
		x, y := in.Min.X, in.Min.Y+i-h.first
		if two && i >= rows {
			x, y = in.Min.X+colW+1, in.Min.Y+i-rows-h.first
		}
		if y < in.Min.Y || y >= in.Max.Y {
			continue
		}
		if l.group {
			s.TextIn(x, y, colW-1, theme.Strong, l.text)
			continue
		}
		s.TextIn(x+1, y, 14, theme.Accent, l.keys)
		s.TextIn(x+16, y, colW-17, l.role, l.text)
	}
	if rows > in.Dy() {
		s.Right(in.Max.X, in.Max.Y+len(foot), theme.Dim, " ↑↓ more ")
	}
}
