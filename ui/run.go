package ui

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/term"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Run shows what the feed brings until the user quits or ctx ends; then it
// returns nil. The first frame is drawn at once, before any snapshot. The feed
// should be latest-wins with at most about ten snapshots a second; when it is
// closed the screen stays and says so. Signals are the caller's: cancel ctx.
func Run(ctx context.Context, feed <-chan *timeline.Snapshot, o Options) error {
	m, err := New(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.ctx, m.feed = ctx, feed
	in, out := m.o.Input, m.o.Output
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		out = os.Stdout
	}
	restore, err := raw(in)
	if err != nil {
		return fmt.Errorf("the screen cannot be started: %w", err)
	}
	defer restore()
	profile := colorprofile.Detect(out, m.o.Environ)
	if environ(m.o.Environ, "NO_COLOR") != "" {
		profile = colorprofile.ASCII
	}
	m.profile(profile)
	m.out = newTerminal(out, &m.o, profile)
	// Before the size is read: what changes it from now on is heard of.
	resized := make(chan os.Signal, 1)
	uv.NotifyWinch(resized)
	defer signal.Stop(resized)
	m.w, m.h, _ = size(out)
	m.out.enter(m.o.Environ, m.look.asks())
	defer m.out.leave()
	m.paint()

	// Of Bubble Tea's output nothing is used: the ticker that would send it once a
	// second is the slowest that there is.
	// Without a renderer it knows no size, and says so at any time after it began: given
	// one, it would say that after it has changed.
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutRenderer(), tea.WithFPS(1),
		tea.WithEnvironment(m.o.Environ), tea.WithColorProfile(profile), tea.WithoutSignalHandler())
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-resized:
			}
			if w, h, ok := size(out); ok {
				p.Send(tea.WindowSizeMsg{Width: w, Height: h})
			}
		}
	}()
	// Quitting, unlike a context of its own, waits until nothing reads the
	// terminal any more.
	defer context.AfterFunc(ctx, p.Quit)()
	if _, err := p.Run(); err != nil {
		return fmt.Errorf("the screen stopped: %w", err)
	}
	return nil
}

// raw lets a terminal pass on each key as it is pressed, until restore is called.
func raw(in io.Reader) (restore func(), err error) {
	f, ok := in.(term.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return func() {}, nil
	}
	was, err := term.MakeRaw(f.Fd())
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(f.Fd(), was) }, nil
}

// size is that of a terminal in cells, if it tells.
func size(out io.Writer) (w, h int, ok bool) {
	f, ok := out.(term.File)
	if !ok {
		return 0, 0, false
	}
	w, h, err := term.GetSize(f.Fd())
	return w, h, err == nil && w > 0 && h > 0
}
