// Command screenshots makes the pictures of the README: it runs the real program
// on a pseudo terminal, presses keys as a person would, lets a terminal emulator
// keep the cells, and writes what stands there as SVG and PNG.
//
//	go run ./ui/screenshots -program bin/kconverge -out testdata/screenshots
//
// It may import ui/draw, ui/frame and ui/theme, and nothing of collect or engine:
// what it shows is what the program drew. Start with main.go, then story.go.
package main
