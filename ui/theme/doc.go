// Package theme holds what the screen may look like: a handful of roles with a
// meaning each, and palettes that give every role a style: dark, light, both with high contrast, the
// terminal's own 16 colours, and none at all. No status is told by colour
// alone, so every palette is complete. It imports only colour types.
//
// Start with theme.go.
package theme
