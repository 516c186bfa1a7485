package draw

import (
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/kconverge/kconverge/ui/theme"
)

// Cells is what a terminal emulator shows. A nil cell is a blank one.
type Cells interface {
	CellAt(x, y int) *uv.Cell
}

// Capture copies w by h cells of a terminal, so that what a program really drew
// on it can be made into a picture.
func Capture(from Cells, w, h int, t *theme.Theme) *Screen {
	s := NewScreen(w, h, t, &Unicode)
	for y := range s.Height() {
		s.wide[y] = true // or else of styles that no role has
		for x := range s.Width() {
			if c := from.CellAt(x, y); c != nil && c.Width > 0 {
				s.buf.Line(y).Set(x, c.Clone())
			}
		}
	}
	return s
}
