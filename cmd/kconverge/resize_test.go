package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
)

// TestTheScreenHasTheTerminalsSize from the first frame on, and after each change of it.
func TestTheScreenHasTheTerminalsSize(t *testing.T) {
	h := newHome(t)
	x := newTerminal(100, 30)
	_, master, _ := h.startOnTerminal(t, 30, 100, x, "lab", "--nodes", "1", "--empty")
	go func() { _, _ = io.Copy(master, x.emu) }()
	filled := func(cols, rows int) func() bool {
		return func() bool {
			lines := strings.Split(strings.TrimRight(x.screen(), "\n"), "\n")
			// The head's time stands at the right end, the keys in the last row.
			return len(lines) == rows && utf8.RuneCountInString(strings.TrimRight(lines[0], " ")) >= cols-1 && strings.TrimSpace(lines[rows-1]) != ""
		}
	}
	eventually(t, "the first frames fill 100x30", filled(100, 30))
	for _, s := range [][2]int{{160, 45}, {80, 24}, {200, 50}} {
		x.mu.Lock()
		x.emu.Resize(s[0], s[1])
		x.mu.Unlock()
		if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(s[0]), Rows: uint16(s[1])}); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprint("the screen fills ", s), filled(s[0], s[1]))
	}
}
