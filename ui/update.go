package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// saidFor is how long an answer stands in the last line while time moves.
const saidFor = 8 * time.Second

// Messages of our own.
type (
	snapshotMsg struct{ snap *timeline.Snapshot }
	endedMsg    struct{}
	tickMsg     struct{ n int }
	movedMsg    struct{} // the replay did what it was told
	frameMsg    struct{} // it is time for a frame that had to wait
	doneMsg     struct {
		text string
		err  error
	}
)

// Show makes the message that shows a snapshot.
func Show(s *timeline.Snapshot) tea.Msg { return snapshotMsg{s} }

// Ended makes the message that says that the source has ended.
func Ended() tea.Msg { return endedMsg{} }

// Update implements tea.Model. Each kind of message has its own function; keys
// become actions (keys.go) and actions functions (actions.go).
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg.(type) {
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseClickMsg, tea.MouseWheelMsg:
		if m.dirty && m.out != nil {
			m.draw() // what is chosen follows from what was drawn, and a frame may be due yet
		}
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if m.out != nil {
			if msg.Width <= 0 {
				break // from Bubble Tea, which does not know the terminal
			}
			m.out.forget()
		}
		m.w, m.h, m.dirty = msg.Width, msg.Height, true
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseClickMsg:
		cmd = m.click(tea.Mouse(msg))
	case tea.MouseWheelMsg:
		cmd = m.wheel(tea.Mouse(msg))
	case tea.BackgroundColorMsg:
		m.look.light, m.dirty = !msg.IsDark(), true
	case tea.ColorProfileMsg:
		m.profile(msg.Profile)
	case snapshotMsg:
		cmd = m.snapshot(msg.snap)
	case endedMsg:
		m.ended, m.dirty = true, true
	case tickMsg:
		m.tick(msg)
	case doneMsg:
		m.done(msg)
	case movedMsg:
		m.dirty = true
	case foundMsg:
		m.take(msg)
	case frameMsg:
		m.out.waiting = false
	case tea.ModeReportMsg:
		if m.out != nil && msg.Mode == ansi.ModeSynchronizedOutput && msg.Value == ansi.ModeReset {
			m.out.sync = true
		}
	}
	return m, tea.Batch(cmd, m.judge(), m.schedule(), m.paint())
}

// snapshot takes a new snapshot. One in which only time has moved waits for the
// next tick.
func (m *Model) snapshot(s *timeline.Snapshot) tea.Cmd {
	first := m.snap == nil
	m.snap = s
	m.openOnly()
	if changed := m.shape.changes(s); first || changed || m.recorded() {
		m.dirty = true
	}
	if m.feed == nil {
		return nil
	}
	return m.next()
}

// openOnly opens the Timeline of the only Service there is, once, when no other
// was asked for and nobody has touched a key.
func (m *Model) openOnly() {
	if m.touched || m.focus.Service != "" || len(m.snap.Services) == 0 {
		return
	}
	m.touched = true
	if len(m.snap.Services) == 1 {
		m.show(view.Timeline)
	}
}

// next waits for the feed's next snapshot.
func (m *Model) next() tea.Cmd {
	feed, done := m.feed, m.ctx.Done()
	return func() tea.Msg {
		select {
		case s, ok := <-feed:
			if !ok {
				return endedMsg{}
			}
			return snapshotMsg{s}
		case <-done:
			return nil
		}
	}
}

// interval is how often the screen wants to be drawn although nothing arrives:
// once a second for the clock and the ages, or as often as the view wants.
func (m *Model) interval() time.Duration {
	if m.ended || m.snap == nil || m.recorded() {
		return 0
	}
	if v, ok := m.views[m.shown].(view.Mover); ok {
		if d := v.Every(m.context()); d > 0 {
			return min(d, time.Second)
		}
	}
	return time.Second
}

// schedule starts a tick when one is wanted and none is running, or when it
// should come sooner than the running one.
func (m *Model) schedule() tea.Cmd {
	d := m.interval()
	if d == 0 || m.ticking && m.every <= d {
		return nil
	}
	m.tickN++
	m.ticking, m.every = true, d
	n := m.tickN
	return tea.Tick(d, func(time.Time) tea.Msg { return tickMsg{n} })
}

func (m *Model) tick(t tickMsg) {
	if t.n != m.tickN {
		return // replaced by a sooner one
	}
	m.ticking = false
	if m.interval() > 0 {
		drawn := m.now
		m.advance()
		if m.busy == 0 && m.said != "" && m.now.Sub(m.saidAt) > saidFor {
			m.said, m.dirty = "", true
		}
		// Snapshots that come one after the other move the picture already.
		if d := m.now.Sub(drawn); m.every >= time.Second || d >= m.every {
			m.dirty = true
		}
	}
}

// profile follows what the terminal can show.
func (m *Model) profile(p colorprofile.Profile) {
	m.dirty = true
	if m.out != nil {
		m.out.rend.SetColorProfile(p)
	}
	switch p {
	case colorprofile.ANSI:
		m.look.profile = &theme.ANSI
	case colorprofile.ASCII, colorprofile.NoTTY:
		m.look.profile = &theme.Plain
	default:
		m.look.profile = nil
	}
}

func (m *Model) click(e tea.Mouse) tea.Cmd {
	if e.Button != tea.MouseLeft || m.layer != nil {
		return nil
	}
	m.dirty = true
	if m.o.Replay != nil && e.Y == m.h-2 {
		return m.clickReplay(e.X)
	}
	if e.Y == 1 {
		for _, t := range m.tabs {
			if e.X >= t.x && e.X < t.x+t.w {
				m.show(t.id)
			}
		}
		return nil
	}
	if v, ok := m.views[m.shown].(view.Clicker); ok {
		return m.answer(v.Click(e.X, e.Y, m.context()))
	}
	return nil
}

func (m *Model) wheel(e tea.Mouse) tea.Cmd {
	up := e.Button == tea.MouseWheelUp
	if m.layer != nil || !up && e.Button != tea.MouseWheelDown {
		return nil
	}
	m.dirty = true
	if v, ok := m.views[m.shown].(view.Wheeler); ok {
		return m.answer(v.Wheel(up, m.context()))
	}
	a := view.Down
	if up {
		a = view.Up
	}
	return m.do(a)
}
