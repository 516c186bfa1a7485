package draw

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/kconverge/kconverge/ui/theme"
)

// noRole is the role of a cell that nothing was put in.
const noRole = theme.Role(len(theme.Theme{}.Styles))

// Render gives the frame with its escape sequences, lines separated by "\n". It is what
// ultraviolet gives, which compares two styles for each cell; a Screen knows their roles.
func (s *Screen) Render() string {
	var b strings.Builder
	b.Grow(s.rendered + s.rendered/8)
	for y, line := range s.buf.Lines {
		if y > 0 {
			b.WriteByte('\n')
		}
		if s.wide[y] {
			b.WriteString(uv.TrimSpace(uv.Lines{line}.Render()))
			continue
		}
		s.renderLine(&b, line, s.roles[y*len(line):(y+1)*len(line)])
	}
	s.rendered = b.Len()
	return b.String()
}

// renderLine writes a line of narrow characters without the blanks at its end.
func (s *Screen) renderLine(b *strings.Builder, line uv.Line, roles []theme.Role) {
	pen, blanks := noRole, 0
	for x := range line {
		role := roles[x]
		if role == noRole || line[x].Content == " " && s.styles[role].IsZero() {
			b.WriteString(s.turn(pen, noRole))
			pen = noRole
			blanks++
			continue
		}
		for ; blanks > 0; blanks-- {
			b.WriteByte(' ')
		}
		if role != pen {
			b.WriteString(s.turn(pen, role))
			pen = role
		}
		b.WriteString(line[x].Content)
	}
	b.WriteString(s.turn(pen, noRole))
}

// turn is the escape sequence between the styles of two roles.
func (s *Screen) turn(from, to theme.Role) string {
	if from == to {
		return ""
	}
	t := &s.turns[from][to]
	if t.known {
		return t.seq
	}
	var pen, style uv.Style
	if from != noRole {
		pen = s.styles[from]
	}
	if to != noRole {
		style = s.styles[to]
	}
	switch {
	case style.Equal(&pen):
	case style.IsZero():
		t.seq = ansi.ResetStyle
	default:
		t.seq = style.Diff(&pen)
	}
	t.known = true
	return t.seq
}

// turn is what Screen.turn found.
type turn struct {
	seq   string
	known bool
}
