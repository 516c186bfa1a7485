package ui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// layer is what lies over the view and takes the keys.
type layer interface {
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
	draw(s *draw.Screen, r draw.Rect)
}

// box paints a frame with a title and returns its inside.
func box(s *draw.Screen, r draw.Rect, w, h int, title string) draw.Rect {
	if r.Dx()-w < 12 {
		w = r.Dx() // no slivers of the view beside it
	}
	h = min(h, r.Dy())
	b := draw.Box(r.Min.X+(r.Dx()-w)/2, r.Min.Y+(r.Dy()-h)/3, w, h)
	s.Clear(b)
	top, bottom := [3]string{"╭", "─", "╮"}, [3]string{"╰", "─", "╯"}
	if s.Glyphs.Name == "ascii" {
		top, bottom = [3]string{"+", "-", "+"}, top
		bottom = top
	}
	s.Glyph(b.Min.X, b.Min.Y, theme.Accent, top[0])
	s.Repeat(b.Min.X+1, b.Min.Y, w-2, theme.Accent, top[1])
	s.Glyph(b.Max.X-1, b.Min.Y, theme.Accent, top[2])
	for y := b.Min.Y + 1; y < b.Max.Y-1; y++ {
		s.Glyph(b.Min.X, y, theme.Accent, s.Glyphs.V)
		s.Glyph(b.Max.X-1, y, theme.Accent, s.Glyphs.V)
	}
	s.Glyph(b.Min.X, b.Max.Y-1, theme.Accent, bottom[0])
	s.Repeat(b.Min.X+1, b.Max.Y-1, w-2, theme.Accent, bottom[1])
	s.Glyph(b.Max.X-1, b.Max.Y-1, theme.Accent, bottom[2])
	s.TextIn(b.Min.X+2, b.Min.Y, w-4, theme.Strong, " "+title+" ")
	return draw.Box(b.Min.X+2, b.Min.Y+1, w-4, h-2)
}

// prompt asks for a line or a yes.
type prompt struct {
	title, note, text string
	number            bool
	line              bool // any text
	fresh             bool // the next character replaces the text
	enter             func(*Model, string) tea.Cmd
}

func (p *prompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		m.layer = nil
		return nil
	case "enter":
		m.layer = nil
		return p.enter(m, strings.TrimSpace(p.text))
	}
	if p.line {
		s := p.text
		if p.fresh && k.Text != "" {
			s = ""
		}
		if next, ok := editLine(s, k); ok {
			p.text, p.fresh = next, false
		}
		return nil
	}
	if !p.number {
		return nil
	}
	n, _ := strconv.Atoi(p.text)
	switch k.String() {
	case "up", "+":
		p.text = strconv.Itoa(n + 1)
	case "down", "-":
		p.text = strconv.Itoa(max(0, n-1))
	default:
		if k.Text != "" && strings.Trim(k.Text, "0123456789") != "" || len(p.text) >= 4 && !p.fresh && k.Text != "" {
			return nil
		}
		s := p.text
		if p.fresh && k.Text != "" {
			s = ""
		}
		if next, ok := editLine(s, k); ok {
			p.text = next
		}
	}
	p.fresh = false
	return nil
}

func (p *prompt) draw(s *draw.Screen, r draw.Rect) {
	w := max(draw.Width(p.note)+4, draw.Width(draw.Clean(p.title))+8, 40)
	h := 3
	if p.number || p.line {
		h = 5
	}
	in := box(s, r, w, h, p.title)
	y := in.Min.Y
	if p.number || p.line {
		x := s.Text(in.Min.X, y, theme.Accent, "> ")
		role := theme.Strong
		if p.fresh {
			role = theme.Selected
		}
		x = s.Text(x, y, role, p.text)
		s.Glyph(x, y, theme.Accent, s.Glyphs.Caret)
		y += 2
	}
	s.TextIn(in.Min.X, y, in.Dx(), theme.Dim, p.note)
}
