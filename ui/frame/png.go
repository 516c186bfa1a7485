package frame

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"sync"

	"github.com/go-fonts/dejavu/dejavusansmono"
	"github.com/go-fonts/dejavu/dejavusansmonobold"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	screen "github.com/kconverge/kconverge/ui/draw"
)

// Cell size in pixels: that of DejaVu Sans Mono at pngFont, whose lines then join.
const (
	pngFont       = 16
	pngW, pngH    = 10, 19
	pngMargin     = 12
	pngAscent     = 15
	mostPNGPixels = 200_000_000
)

// fonts are the two weights.
type fonts struct{ regular, bold face }

type face struct {
	font.Face
	has func(rune) bool
}

// loadFonts reads them once. Faces are not for several goroutines at once.
var loadFonts = sync.OnceValues(func() (*[2]*opentype.Font, error) {
	var out [2]*opentype.Font
	for i, ttf := range [][]byte{dejavusansmono.TTF, dejavusansmonobold.TTF} {
		f, err := opentype.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("the font: %w", err)
		}
		out[i] = f
	}
	return &out, nil
})

func newFonts() (*fonts, error) {
	parsed, err := loadFonts()
	if err != nil {
		return nil, err
	}
	var out fonts
	for i, to := range []*face{&out.regular, &out.bold} {
		f := parsed[i]
		if to.Face, err = opentype.NewFace(f, &opentype.FaceOptions{Size: pngFont, DPI: 72, Hinting: font.HintingFull}); err != nil {
			return nil, fmt.Errorf("the font: %w", err)
		}
		to.has = func(r rune) bool { n, err := f.GlyphIndex(nil, r); return err == nil && n != 0 }
	}
	return &out, nil
}

// PNG writes the screen as a picture. Characters that the font lacks are drawn as a box.
func PNG(w io.Writer, s *screen.Screen, c Colors) error {
	width, height := s.Width()*pngW+2*pngMargin, s.Height()*pngH+2*pngMargin
	if width*height > mostPNGPixels {
		return fmt.Errorf("a picture of %d x %d pixels is too large: export less time, or fewer Services", width, height)
	}
	f, err := newFonts()
	if err != nil {
		return err
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(c.Background), image.Point{}, draw.Src)
	for y := range s.Height() {
		for x := range s.Width() {
			pngCell(img, f, s, x, y, c)
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, paletted(img))
}

func pngCell(img *image.RGBA, f *fonts, s *screen.Screen, x, y int, c Colors) {
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
	px, py := pngMargin+x*pngW, pngMargin+y*pngH
	box := image.Rect(px, py, px+pngW*w, py+pngH)
	behind := c.Background
	if bg != nil {
		draw.Draw(img, box, image.NewUniform(bg), image.Point{}, draw.Src)
		behind = bg
	}
	if text == " " {
		return
	}
	if st.Faint {
		fg = between(fg, behind, 0.4)
	}
	if st.Underline {
		draw.Draw(img, image.Rect(px, py+pngH-2, box.Max.X, py+pngH-1), image.NewUniform(fg), image.Point{}, draw.Src)
	}
	r := []rune(text)[0]
	if shape(img, box, r, fg) {
		return
	}
	of := f.regular
	if st.Bold && f.bold.has(r) {
		of = f.bold
	}
	if !of.has(r) {
		outline(img, box.Inset(2), fg)
		return
	}
	d := font.Drawer{Dst: clip{img, box}, Src: image.NewUniform(fg), Face: of.Face, Dot: fixed.P(px, py+pngAscent)}
	if adv, ok := of.GlyphAdvance(r); ok {
		d.Dot.X += (fixed.I(pngW*w) - adv) / 2
	}
	d.DrawString(string(r))
}

// clip keeps a glyph inside its cell.
type clip struct {
	*image.RGBA
	r image.Rectangle
}

func (c clip) Bounds() image.Rectangle { return c.r }

func outline(img *image.RGBA, r image.Rectangle, c color.Color) {
	u := image.NewUniform(c)
	for _, e := range []image.Rectangle{
		image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+1), image.Rect(r.Min.X, r.Max.Y-1, r.Max.X, r.Max.Y),
		image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Max.Y), image.Rect(r.Max.X-1, r.Min.Y, r.Max.X, r.Max.Y),
	} {
		draw.Draw(img, e, u, image.Point{}, draw.Src)
	}
}

// shape draws what should join from cell to cell: lines, and blocks. False for others.
func shape(img *image.RGBA, r image.Rectangle, c rune, fg color.Color) bool {
	u := image.NewUniform(fg)
	fill := func(x0, y0, x1, y1 int) {
		draw.Draw(img, image.Rect(r.Min.X+x0, r.Min.Y+y0, r.Min.X+x1, r.Min.Y+y1), u, image.Point{}, draw.Src)
	}
	w, mid := r.Dx(), pngH/2
	dash := func(n, thick int) {
		for i := range n {
			fill(i*w/n, mid-thick/2, i*w/n+max(1, w/n-2), mid-thick/2+thick)
		}
	}
	switch c {
	case '━':
		fill(0, mid-1, w, mid+2)
	case '─':
		fill(0, mid, w, mid+1)
	case '═':
		fill(0, mid-2, w, mid-1)
		fill(0, mid+1, w, mid+2)
	case '╍':
		dash(2, 3)
	case '╌':
		dash(2, 1)
	case '┅':
		dash(3, 3)
	case '┄':
		dash(3, 1)
	case '┈':
		dash(4, 1)
	case '│':
		fill(w/2, 0, w/2+1, pngH)
	case '┊':
		for y := 0; y < pngH; y += 5 {
			fill(w/2, y, w/2+1, y+2)
		}
	case '├', '┤', '┼', '┬', '┴':
		left, right, up, down := c != '├', c != '┤', c != '┬', c != '┴'
		if left {
			fill(0, mid, w/2, mid+1)
		}
		if right {
			fill(w/2, mid, w, mid+1)
		}
		if up {
			fill(w/2, 0, w/2+1, mid+1)
		}
		if down {
			fill(w/2, mid, w/2+1, pngH)
		}
	case '█':
		fill(0, 0, w, pngH)
	case '▓':
		fill(0, 3, w, pngH-3)
		for y := 3; y < pngH-3; y++ {
			for x := y % 4; x < w; x += 4 {
				img.Set(r.Min.X+x, r.Min.Y+y, between(fg, color.Black, 0.5))
			}
		}
	case '╱':
		for y := 0; y < pngH; y++ {
			x := int(math.Round(float64(pngH-1-y) * float64(w-1) / float64(pngH-1)))
			fill(x, y, min(x+2, w), y+1)
		}
	default:
		return false
	}
	return true
}

// between mixes two colours: share of b, the rest a.
func between(a, b color.Color, share float64) color.Color {
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	mix := func(x, y uint32) uint8 { return uint8((float64(x)*(1-share) + float64(y)*share) / 257) }
	return color.RGBA{mix(r1, r2), mix(g1, g2), mix(b1, b2), 0xff}
}
