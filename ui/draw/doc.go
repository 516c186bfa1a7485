// Package draw paints into a buffer of cells: text that is cleaned and cut by
// its display width, rules, and the lanes and axis of an engine/lanes Picture,
// with a Unicode or an ASCII set of glyphs. It is the only package of the
// screen that knows the cell buffer underneath (ultraviolet); views speak to a
// Screen in roles and rectangles.
//
// Start with screen.go, then lanes.go.
package draw
