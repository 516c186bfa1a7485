// Package lanes decides what a timeline picture shows: which rows there are,
// what every cell of them means, which texts are laid over them, where the
// ticks of the axis stand, and what was true at the instant under the cursor.
//
// It is pure: a Snapshot, a window and a width go in, a Picture of meanings
// comes out. It knows no terminal, no colour and no glyph, so that the screen,
// the SVG and the HTML export draw the same picture. It may import
// engine/timeline and collect.
//
// Start with picture.go (what comes out), then build.go (how). scale.go maps
// time to columns, also across folded quiet time; ticks.go places the axis. past.go
// draws what is claimed of the time before anything was observed.
package lanes
