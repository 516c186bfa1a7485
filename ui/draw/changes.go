package draw

import (
	"slices"

	uv "github.com/charmbracelet/ultraviolet"
)

// Buffer is what was painted, for ultraviolet's renderer. It belongs to the Screen.
func (s *Screen) Buffer() *uv.Buffer { return s.buf }

// SameLine tells whether a line looks the same on another Screen of the same size.
func (s *Screen) SameLine(y int, o *Screen) bool {
	a, b := s.buf.Line(y), o.buf.Line(y)
	if s.Theme != o.Theme || s.wide[y] || o.wide[y] {
		return slices.EqualFunc(a, b, func(x, y uv.Cell) bool { return x.Equal(&y) })
	}
	from, to := y*len(a), (y+1)*len(a)
	if !slices.Equal(s.roles[from:to], o.roles[from:to]) {
		return false
	}
	for x := range a {
		if a[x].Content != b[x].Content {
			return false
		}
	}
	return true
}
