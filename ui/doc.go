// Package ui is the terminal interface: the root model that owns the views, the
// key map, the palette and the prompts, and Run, which shows Snapshots until the
// user quits.
//
// It reads timeline.Snapshots and engine/lanes Pictures and never a source; what
// a person may change goes through Actions. Views stand in ui/view, painting in
// ui/draw, colours in ui/theme, frames as SVG and PNG in ui/frame, whole
// recordings as asciicasts in ui/cast.
//
// Start with options.go, then model.go and update.go.
package ui
