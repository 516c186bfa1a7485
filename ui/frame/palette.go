package frame

import (
	"cmp"
	"image"
	"image/color"
	"slices"
)

// paletted gives the picture in at most 256 colours: the most frequent ones, and for
// the others, which are shades at the edges of characters, the nearest of those. A
// file of it is a quarter as large.
func paletted(img *image.RGBA) *image.Paletted {
	count := map[color.RGBA]int{}
	for i := 0; i < len(img.Pix); i += 4 {
		count[color.RGBA{img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3]}]++
	}
	colours := make([]color.RGBA, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	// The order is total, so that the same screen gives the same file.
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := make(color.Palette, min(len(colours), 256))
	for i := range palette {
		palette[i] = colours[i]
	}
	nearest := make(map[color.RGBA]uint8, len(colours))
	for i, c := range colours {
		if i < len(palette) {
			nearest[c] = uint8(i)
		} else {
			nearest[c] = uint8(palette.Index(c))
		}
	}
	out := image.NewPaletted(img.Bounds(), palette)
	for i := range out.Pix {
		p := img.Pix[4*i:]
		out.Pix[i] = nearest[color.RGBA{p[0], p[1], p[2], p[3]}]
	}
	return out
}
