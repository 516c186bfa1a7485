package ui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

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
	opts := []tea.ProgramOption{
		tea.WithFPS(m.o.FPS), tea.WithEnvironment(m.o.Environ), tea.WithoutSignalHandler(),
	}
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		opts = append(opts, tea.WithOutput(o.Output))
	}
	if environ(m.o.Environ, "NO_COLOR") != "" {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	p := tea.NewProgram(m, opts...)
	// Quitting, unlike a context of its own, waits until nothing reads the
	// terminal any more.
	defer context.AfterFunc(ctx, p.Quit)()
	if _, err := p.Run(); err != nil {
		return fmt.Errorf("the screen stopped: %w", err)
	}
	return nil
}
