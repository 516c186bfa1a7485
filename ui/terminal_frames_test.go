package ui

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// Only what differs from the last frame is sent: whatever the frames were, the terminal
// shows the last one, cell by cell.
func TestATerminalShowsTheLastFrameWhateverCameBefore(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		w, h := 60, 16
		emu := vt.NewEmulator(w, h)
		go func() { _, _ = io.Copy(io.Discard, emu) }() // what it answers
		x := newTerminal(emu, &Options{FPS: 60, Environ: []string{"TERM=xterm-256color"}}, colorprofile.TrueColor)
		x.enter(nil, false)
		s, look := draw.NewScreen(w, h, &theme.Dark, &draw.Unicode), &theme.Dark
		var rows []string // of the last frame
		for frame := range 60 {
			switch r.IntN(12) {
			case 0:
				w, h = 50+r.IntN(20), 14+r.IntN(8)
				emu.Resize(w, h)
				x.forget()
				rows = nil
			case 1:
				look = []*theme.Theme{&theme.Dark, &theme.Light}[r.IntN(2)]
			case 2:
				x.forget()
			}
			if s.Width() != w || s.Height() != h || s.Theme != look {
				s = draw.NewScreen(w, h, look, &draw.Unicode)
			}
			s.Reset()
			rows = otherRows(r, rows, h)
			for y, row := range rows {
				s.Text(0, y, theme.Role(r.IntN(2)), row)
			}
			want := s.String()
			s = x.show(s, time.Time{})
			if got := trimmed(emu.String()); got != trimmed(want) {
				t.Fatalf("seed %d, frame %d: the terminal shows\n%s\nand not\n%s", seed, frame, got, want)
			}
		}
		x.leave()
		_ = emu.InputPipe().(io.Closer).Close()
	}
}

// otherRows are rows like those before: the same, moved up or down, or a few of them others.
func otherRows(r *rand.Rand, rows []string, h int) []string {
	row := func() string {
		return strings.Repeat([]string{"━", "╌ ", "ab", "漢", "  "}[r.IntN(5)], r.IntN(20)) + []string{"", "x", "●●"}[r.IntN(3)]
	}
	if len(rows) == 0 {
		for range h {
			rows = append(rows, row())
		}
		return rows
	}
	switch r.IntN(4) {
	case 0:
		rows = append([]string{row()}, rows[:h-1]...)
	case 1:
		rows = append(rows[1:h:h], row())
	case 2:
		for range r.IntN(4) {
			rows[r.IntN(h)] = row()
		}
	}
	return rows
}

func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
