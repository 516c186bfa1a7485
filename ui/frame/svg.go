package frame

import (
	"bufio"
	"fmt"
	"html"
	"image/color"
	"io"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// Cell size and font size in SVG units.
const (
	cellW, cellH = 9.6, 20.0
	fontSize     = 16
	margin       = 12.0
)

// Colors are those of the terminal that the picture pretends to be.
type Colors struct{ Text, Background color.Color }

// DarkColors and LightColors are usual ones.
var (
	DarkColors  = Colors{color.RGBA{0xd7, 0xda, 0xe0, 0xff}, color.RGBA{0x16, 0x18, 0x1d, 0xff}}
	LightColors = Colors{color.RGBA{0x24, 0x29, 0x2f, 0xff}, color.RGBA{0xfa, 0xfa, 0xfa, 0xff}}
)

// SVG writes the screen as an SVG document.
func SVG(w io.Writer, s *draw.Screen, c Colors) error {
	b := bufio.NewWriter(w)
	width, height := float64(s.Width())*cellW+2*margin, float64(s.Height())*cellH+2*margin
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="%d" xml:space="preserve">`+"\n", width, height, fontSize)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", hex(c.Background))
	for y := 0; y < s.Height(); y++ {
		for x := 0; x < s.Width(); x++ {
			cell(b, s, x, y, c)
		}
	}
	fmt.Fprintln(b, `</svg>`)
	return b.Flush()
}

func cell(b *bufio.Writer, s *draw.Screen, x, y int, c Colors) {
	text, w, st := s.At(x, y)
	if w == 0 || text == "" {
		return
	}
	fg, bg := st.Fg, st.Bg
	if fg == nil {
		fg = c.Text
	}
	if st.Invert {
		if bg == nil {
			bg = c.Background
		}
		fg, bg = bg, fg
	}
	px, py := margin+float64(x)*cellW, margin+float64(y)*cellH
	if bg != nil {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, px, py, cellW*float64(w), cellH, hex(bg))
	}
	if text == " " {
		return
	}
	extra := ""
	if st.Bold {
		extra += ` font-weight="bold"`
	}
	if st.Faint {
		extra += ` opacity="0.6"`
	}
	if st.Underline {
		extra += ` text-decoration="underline"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s"%s>%s</text>`+"\n", px, py+cellH*0.75, hex(fg), extra, html.EscapeString(text))
}

func hex(c color.Color) string {
	r, g, bl, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, bl>>8)
}

// ColorsFor are the colours of a terminal that a theme is made for.
func ColorsFor(t *theme.Theme) Colors {
	if t.Name == theme.Light.Name {
		return LightColors
	}
	return DarkColors
}
