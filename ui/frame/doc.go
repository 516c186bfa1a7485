// Package frame turns a drawn Screen into a picture: an SVG document with a monospaced
// font, or a PNG with one that is part of the program (DejaVu Sans Mono, through
// github.com/go-fonts/dejavu, whose licence allows that: a free one, by Bitstream and
// Tavmjong Bah, that only forbids to sell it by itself). Poster draws a time whole that
// a screen would scroll through. It imports ui/draw, ui/theme, engine/lanes and
// engine/report.
//
// Start with svg.go, then poster.go.
package frame
