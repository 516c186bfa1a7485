//go:build unix

package ui_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// terminal is a pseudo terminal with an emulator at its other end, on which Run
// shows the screen.
type terminal struct {
	t        testing.TB
	pty, tty *os.File
	mu       sync.Mutex
	emu      *vt.Emulator
	changed  chan struct{}
	feed     chan *timeline.Snapshot
	cancel   context.CancelFunc
	done     chan error
	before   *term.State
	// late closes just before the test's own deadline, so that a test that
	// hangs says on what.
	late <-chan struct{}
}

func startTerminal(t testing.TB, w, h int, change func(*ui.Options)) *terminal {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, pty: p, tty: tty, emu: vt.NewEmulator(w, h), changed: make(chan struct{}, 1), feed: make(chan *timeline.Snapshot, 1), done: make(chan error, 1)}
	x.size(w, h)
	if x.before, err = term.GetState(tty.Fd()); err != nil {
		t.Fatal(err)
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { // what the program writes
		buf := make([]byte, 64<<10)
		for {
			n, err := p.Read(buf)
			if n > 0 {
				x.mu.Lock()
				_, _ = x.emu.Write(buf[:n])
				x.mu.Unlock()
				select {
				case x.changed <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	})
	pumps.Go(func() { // what the terminal answers
		_, _ = io.Copy(p, x.emu)
	})
	ctx, cancel := context.WithCancel(t.Context())
	x.cancel = cancel
	x.late = t.Context().Done()
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if when, ok := d.Deadline(); ok {
			late, stop := context.WithDeadline(t.Context(), when.Add(-5*time.Second))
			t.Cleanup(stop)
			x.late = late.Done()
		}
	}
	o := options(&clock{t: lanestest.Start})
	o.Input, o.Output, o.Theme = tty, tty, "auto"
	o.Environ = []string{"TERM=xterm-256color", "COLORTERM=truecolor"}
	if change != nil {
		change(&o)
	}
	go func() { x.done <- ui.Run(ctx, x.feed, o) }()
	t.Cleanup(func() {
		cancel()
		// Its own Close races with Read: closing the pipe ends Read as well.
		_ = x.emu.InputPipe().(io.Closer).Close()
		_ = tty.Close()
		_ = p.Close()
		pumps.Wait()
	})
	return x
}

func (x *terminal) size(w, h int) {
	if err := pty.Setsize(x.pty, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.emu.String()
}

// wait returns once the emulator shows all of the texts.
func (x *terminal) wait(texts ...string) {
	x.t.Helper()
	x.until(strings.Join(texts, ", "), func(got string) bool {
		for _, s := range texts {
			if !strings.Contains(got, s) {
				return false
			}
		}
		return true
	})
}

// until returns once what the emulator shows is right.
func (x *terminal) until(what string, right func(string) bool) {
	x.t.Helper()
	for {
		got := x.text()
		if right(got) {
			return
		}
		select {
		case <-x.changed:
		case err := <-x.done:
			x.t.Fatalf("the screen ended with %v while %s was waited for; it showed\n%s", err, what, got)
		case <-x.late:
			x.t.Fatalf("%s never came; the screen shows\n%s", what, got)
		}
	}
}

func (x *terminal) keys(s string) {
	x.t.Helper()
	if _, err := x.pty.Write([]byte(s)); err != nil {
		x.t.Fatal(err)
	}
}

// ended returns what Run returned and checks that the terminal is as it was.
func (x *terminal) ended() error {
	x.t.Helper()
	err := <-x.done
	after, serr := term.GetState(x.tty.Fd())
	if serr != nil {
		x.t.Fatal(serr)
	}
	if *after != *x.before {
		x.t.Error("the terminal's state is not what it was")
	}
	return err
}

func TestOnATerminalTheFirstFrameComesBeforeTheFeed(t *testing.T) {
	x := startTerminal(t, 120, 40, nil)
	x.wait("kconverge", "waiting for the first events of lab v1.37.2", "? help")
	x.keys("q")
	if err := x.ended(); err != nil {
		t.Error(err)
	}
	x.until("the screen that was there before", func(string) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.emu.IsAltScreen()
	})
}

func TestOnATerminalAJourneyByKeys(t *testing.T) {
	x := startTerminal(t, 120, 40, nil)
	x.feed <- lanestest.Converging()
	x.wait("node-3", "7  +2 stale !", "converging")
	x.keys("\x1b[D\x1b[D\x1b[D") // left
	x.wait("paused", "at 12:04:18.625")
	x.keys("\r")
	x.wait("[3 Path]", "not arrived")
	x.keys("p")
	x.wait("change 4 of 5")
	x.keys("?")
	x.wait("help: Path")
	x.keys("\x1b")
	x.wait("change 4 of 5")
	x.keys(":events\r")
	x.wait("[6 Events]", "newest first")
	x.keys("\x03")
	if err := x.ended(); err != nil {
		t.Error(err)
	}
}

func TestOnATerminalASnapshotChangesCells(t *testing.T) {
	x := startTerminal(t, 120, 40, nil)
	x.feed <- lanestest.Web(4 * time.Second).Snapshot()
	x.wait("pods 4", "converged")
	for _, step := range []struct {
		at    time.Duration
		shows string
	}{{4600 * time.Millisecond, "−1 missing"}, {5700 * time.Millisecond, "node-3 (3 additions)"}, {7600 * time.Millisecond, "rules 7 7 7"}, {9700 * time.Millisecond, "! risk"}} {
		x.feed <- lanestest.Web(step.at).Snapshot()
		x.wait(step.shows)
	}
	close(x.feed)
	x.wait("source ended")
	x.cancel()
	if err := x.ended(); err != nil {
		t.Error(err)
	}
}

func TestOnATerminalResizingRedraws(t *testing.T) {
	x := startTerminal(t, 120, 40, nil)
	x.feed <- lanestest.Converging()
	x.wait("[2 Timeline]", "rules: kernel (3 netns)")
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 50}, {80, 24}} {
		x.mu.Lock()
		x.emu.Resize(size[0], size[1])
		x.mu.Unlock()
		x.size(size[0], size[1])
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		if size[0] == 40 {
			x.wait("needs 48 x 14", "this is 40 x 10")
		} else {
			// The rules are as wide as the screen, and nothing is wider.
			x.until("a frame of the new width", func(got string) bool {
				widest := 0
				for _, l := range strings.Split(got, "\n") {
					widest = max(widest, ansi.StringWidthWc(strings.TrimRight(l, " ")))
				}
				return widest == size[0] && strings.Contains(got, "/cell")
			})
		}
	}
	x.keys("q")
	if err := x.ended(); err != nil {
		t.Error(err)
	}
}

func TestAThemeThatDoesNotExistIsAnErrorAndNothingIsDrawn(t *testing.T) {
	o := options(&clock{})
	o.Theme = "pink"
	if err := ui.Run(t.Context(), nil, o); err == nil || !strings.Contains(err.Error(), "pink") || errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// BenchmarkSnapshotToCells measures from handing over a snapshot to the changed
// cells on the emulator.
func BenchmarkSnapshotToCells(b *testing.B) {
	x := startTerminal(b, 200, 50, nil)
	a, c := lanestest.Web(9700*time.Millisecond).Snapshot(), lanestest.Web(7600*time.Millisecond).Snapshot()
	x.feed <- c
	x.wait("rules 7 7 7")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if i%2 == 0 {
			x.feed <- a
			x.wait("! risk")
		} else {
			x.feed <- c
			x.wait("rules 7 7 7")
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
