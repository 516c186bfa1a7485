//go:build !linux

package main

// handTerminal is only there on Linux: elsewhere a command on a terminal runs in
// the background group and cannot read from it.
func handTerminal(int) (back func()) { return func() {} }
