// Package frame turns a drawn Screen into a picture: an SVG document with a
// monospaced font. It is used for documentation and for looking at frames
// without a terminal. It imports ui/draw and ui/theme only.
package frame
