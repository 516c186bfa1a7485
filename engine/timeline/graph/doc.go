// Package graph turns a web of Go values into bytes and back: structs with their
// unexported fields, pointers (also in circles), maps, slices and interfaces. What
// two places shared before, they share again afterwards.
//
// A Writer writes a web several times while it changes, so that the bytes of what has not
// changed are mostly the same.
//
// It serves the checkpoints of engine/timeline, whose state is such a web, and knows
// nothing of it. The bytes are only good for programs whose types are laid out alike:
// Layout tells them apart.
//
// It may import the standard library alone. Start with Write and Read.
package graph
