package draw

import (
	"image"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"

	"github.com/kconverge/kconverge/ui/theme"
)

// Rect is a part of the screen in cells.
type Rect = image.Rectangle

// Box makes a Rect from its top left corner and size.
func Box(x, y, w, h int) Rect { return image.Rect(x, y, x+w, y+h) }

// Screen is a buffer of cells that views paint on. Whatever falls outside is
// left out. It belongs to one goroutine.
type Screen struct {
	Theme  *theme.Theme
	Glyphs *Glyphs
	buf    *uv.Buffer
	blank  uv.Line
	styles [len(theme.Theme{}.Styles)]uv.Style // by role
	roles  []theme.Role                        // by cell, of lines without wide characters
	wide   []bool                              // which lines have, or had, some
	turns  [len(theme.Theme{}.Styles) + 1][len(theme.Theme{}.Styles) + 1]turn
	// rendered is how long the last frame was.
	rendered int
}

// NewScreen makes a blank screen of w by h cells.
func NewScreen(w, h int, t *theme.Theme, g *Glyphs) *Screen {
	w, h = max(w, 1), max(h, 1)
	s := &Screen{Theme: t, Glyphs: g, buf: uv.NewBuffer(w, h), blank: uv.NewLine(w), roles: make([]theme.Role, w*h), wide: make([]bool, h)}
	for r := range t.Styles {
		s.styles[r] = toUV(t.Styles[r])
	}
	s.Reset()
	return s
}

// Reset makes the screen blank again: a frame costs no new buffer.
func (s *Screen) Reset() {
	for _, l := range s.buf.Lines {
		copy(l, s.blank)
	}
	clear(s.wide)
	for i := range s.roles {
		s.roles[i] = noRole
	}
}

func toUV(st theme.Style) uv.Style {
	out := uv.Style{Fg: st.Fg, Bg: st.Bg}
	if st.Bold {
		out.Attrs |= uv.AttrBold
	}
	if st.Faint {
		out.Attrs |= uv.AttrFaint
	}
	if st.Invert {
		out.Attrs |= uv.AttrReverse
	}
	if st.Underline {
		out.Underline = uv.UnderlineSingle
	}
	return out
}

// Width and Height of the screen in cells.
func (s *Screen) Width() int  { return s.buf.Width() }
func (s *Screen) Height() int { return s.buf.Height() }

// put sets one cell. gr is one character of width w.
func (s *Screen) put(x, y int, gr string, w int, role theme.Role) {
	if y < 0 || y >= s.buf.Height() || x < 0 || x+w > s.buf.Width() {
		return
	}
	line := s.buf.Line(y)
	c := uv.Cell{Content: gr, Width: w, Style: s.styles[role]}
	if w == 1 && line[x].Width == 1 {
		line[x] = c
		s.roles[y*len(line)+x] = role
		return
	}
	s.wide[y] = true
	line.Set(x, &c) // takes care of halves of wide characters
}

// Glyph sets the cell at x, y.
func (s *Screen) Glyph(x, y int, role theme.Role, g string) { s.put(x, y, g, 1, role) }

// Repeat sets n cells from x, y.
func (s *Screen) Repeat(x, y, n int, role theme.Role, g string) {
	for i := 0; i < n; i++ {
		s.put(x+i, y, g, 1, role)
	}
}

// Text writes cleaned text from x, y on and returns the column after it.
func (s *Screen) Text(x, y int, role theme.Role, text string) int {
	text = Clean(text)
	if s.Glyphs.Subst != nil {
		text = s.Glyphs.Subst.Replace(text)
	}
	for i := 0; i < len(text); {
		n, w := 1, 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(text[i:])
			w = runeWidth(r)
		}
		s.put(x, y, text[i:i+n], w, role)
		x, i = x+w, i+n
	}
	return x
}

// TextIn writes text in at most w columns, cut at its end, and returns the
// column after it.
func (s *Screen) TextIn(x, y, w int, role theme.Role, text string) int {
	return s.Text(x, y, role, Cut(s.clean(text), w, s.Glyphs))
}

// NameIn is TextIn for names, cut in their middle.
func (s *Screen) NameIn(x, y, w int, role theme.Role, text string) int {
	return s.Text(x, y, role, CutMiddle(s.clean(text), w, s.Glyphs))
}

// Right writes text so that it ends before column x, and returns its first
// column.
func (s *Screen) Right(x, y int, role theme.Role, text string) int {
	text = s.clean(text)
	x -= Width(text)
	s.Text(x, y, role, text)
	return x
}

// Clean is text as the screen would draw it: safe, and in its own characters.
func (s *Screen) Clean(text string) string { return s.clean(text) }

func (s *Screen) clean(text string) string {
	text = Clean(text)
	if s.Glyphs.Subst != nil {
		text = s.Glyphs.Subst.Replace(text)
	}
	return text
}

// Rule draws a horizontal line of w cells, with an optional title after its
// second cell and another, when there is room for both, before its end.
func (s *Screen) Rule(x, y, w int, title, right string) {
	s.Repeat(x, y, w, theme.Line, s.Glyphs.H)
	right = s.clean(right)
	// A title keeps at least a dozen columns.
	keep := min(Width(s.clean(title))+5, 16)
	if title == "" {
		keep = 0
	}
	if right != "" && Width(right)+6+keep <= w {
		s.Text(x+w-Width(right)-5, y, theme.Dim, " "+right+" ")
		w -= Width(right) + 6
	}
	if title != "" && w > 6 {
		s.Text(x+2, y, theme.Text, " "+Cut(s.clean(title), w-5, s.Glyphs)+" ")
	}
}

// Clear blanks a part of the screen.
func (s *Screen) Clear(r Rect) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			s.put(x, y, " ", 1, theme.Text)
		}
	}
}

// At tells what stands in a cell: the character ("" for the second half of a
// wide one), its width and style.
func (s *Screen) At(x, y int) (string, int, theme.Style) {
	c := s.buf.CellAt(x, y)
	if c == nil {
		return "", 0, theme.Style{}
	}
	return c.Content, c.Width, theme.Style{
		Fg: c.Style.Fg, Bg: c.Style.Bg,
		Bold: c.Style.Attrs&uv.AttrBold != 0, Faint: c.Style.Attrs&uv.AttrFaint != 0,
		Invert: c.Style.Attrs&uv.AttrReverse != 0, Underline: c.Style.Underline != uv.UnderlineNone,
	}
}

// String gives the frame as plain text.
func (s *Screen) String() string { return uv.TrimSpace(s.buf.String()) }
