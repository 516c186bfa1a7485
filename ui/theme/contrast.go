package theme

import (
	"image/color"
	"math"
)

// DarkBackgrounds and LightBackgrounds are backgrounds that terminals usually
// have, which Dark and Light must be legible on.
var (
	DarkBackgrounds  = []color.Color{rgb(0x000000), rgb(0x1e1e1e), rgb(0x16181d), rgb(0x282a36), rgb(0x002b36), rgb(0x282c34)}
	LightBackgrounds = []color.Color{rgb(0xffffff), rgb(0xfafafa), rgb(0xfdf6e3), rgb(0xeff1f5)}
)

// Contrast is the contrast ratio of two colours by WCAG 2.1, from 1 to 21.
func Contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}

// luminance is the relative luminance by WCAG 2.1.
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	lin := func(v uint32) float64 {
		f := float64(v) / 0xffff
		if f <= 0.03928 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(r) + 0.7152*lin(g) + 0.0722*lin(b)
}
