package frame

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	screen "github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

func decoded(t *testing.T, s *screen.Screen, c Colors) *image.RGBA {
	t.Helper()
	var b bytes.Buffer
	if err := PNG(&b, s, c); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), img, image.Point{}, draw.Src)
	return out
}

// ink counts the pixels of a cell that are not the background.
func ink(img image.Image, x, y int, bg color.Color) (n int) {
	r, g, b, _ := bg.RGBA()
	for py := pngMargin + y*pngH; py < pngMargin+(y+1)*pngH; py++ {
		for px := pngMargin + x*pngW; px < pngMargin+(x+1)*pngW; px++ {
			if r2, g2, b2, _ := img.At(px, py).RGBA(); r != r2 || g != g2 || b != b2 {
				n++
			}
		}
	}
	return n
}

// TestEveryGlyphIsDrawnAndUnlikeTheOthers: by shape or by the font, in both weights, and
// never as the box of a character that is missing.
func TestEveryGlyphIsDrawnAndUnlikeTheOthers(t *testing.T) {
	f, err := newFonts()
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(screen.Unicode)
	drawn := map[string]string{}
	n := 0
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.String || v.Type().Field(i).Name == "Name" {
			continue
		}
		g := v.Field(i).String()
		r := []rune(g)[0]
		n++
		if !shape(image.NewRGBA(image.Rect(0, 0, pngW, pngH)), image.Rect(0, 0, pngW, pngH), r, color.White) && !f.regular.has(r) {
			t.Errorf("%s %q: neither a shape nor in the font", v.Type().Field(i).Name, g)
		}
		s := screen.NewScreen(1, 1, &theme.Dark, &screen.Unicode)
		s.Glyph(0, 0, theme.Text, g)
		img := decoded(t, s, DarkColors)
		if ink(img, 0, 0, DarkColors.Background) == 0 && g != " " {
			t.Errorf("%s %q: nothing is drawn", v.Type().Field(i).Name, g)
		}
		pix := string(img.Pix)
		if other, ok := drawn[pix]; ok && other != g {
			t.Errorf("%q looks like %q", g, other)
		}
		drawn[pix] = g
	}
	if n < 40 {
		t.Errorf("only %d glyphs", n)
	}
}

// TestAPictureShowsTextColoursAndWhatTheFontLacks.
func TestAPictureShowsTextColoursAndWhatTheFontLacks(t *testing.T) {
	s := screen.NewScreen(8, 2, &theme.Dark, &screen.Unicode)
	s.Text(0, 0, theme.Bad, "a中b")
	s.Text(0, 1, theme.Selected, "tab")
	img := decoded(t, s, DarkColors)
	if got, want := img.Bounds(), image.Rect(0, 0, 8*pngW+2*pngMargin, 2*pngH+2*pngMargin); got != want {
		t.Errorf("size %v, want %v", got, want)
	}
	for _, x := range []int{0, 1, 2, 3} {
		if ink(img, x, 0, DarkColors.Background) == 0 {
			t.Errorf("column %d is empty", x)
		}
	}
	if n := ink(img, 4, 0, DarkColors.Background); n != 0 {
		t.Errorf("a blank cell has %d pixels", n)
	}
	if n := ink(img, 1, 1, DarkColors.Background); n != pngW*pngH {
		t.Errorf("the background of a selected cell fills %d pixels", n)
	}
}

func TestAPictureThatIsTooLargeIsAnError(t *testing.T) {
	if err := PNG(&bytes.Buffer{}, screen.NewScreen(4000, 300, &theme.Dark, &screen.Unicode), DarkColors); err == nil {
		t.Error("no error")
	}
}

// TestAPaletteKeepsColours: frequent colours exactly, the rest nearly, and the same
// picture gives the same palette.
func TestAPaletteKeepsColours(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 100, 50))
	for y := range 50 {
		for x := range 100 {
			c := color.RGBA{uint8(x % 4 * 60), 20, 200, 255}
			if y < 5 { // 500 shades, each once
				c = color.RGBA{uint8(x), uint8(40 * y), uint8(2 * x), 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	got := paletted(img)
	for y := range 50 {
		for x := range 100 {
			a, b := img.RGBAAt(x, y), color.RGBAModel.Convert(got.At(x, y)).(color.RGBA)
			if y >= 5 && a != b {
				t.Fatalf("a frequent colour %v became %v", a, b)
			}
			if got.Palette.Convert(a) != got.At(x, y) {
				t.Fatalf("%v became %v, which is not the nearest", a, b)
			}
		}
	}
	if len(got.Palette) != 256 {
		t.Errorf("%d colours", len(got.Palette))
	}
	if diff := cmp.Diff(got.Palette, paletted(img).Palette); diff != "" {
		t.Errorf("another palette the second time: %s", diff)
	}
}
