package ui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// Model is the root of the screen. It belongs to Bubble Tea's goroutine.
type Model struct {
	o    Options
	ctx  context.Context
	feed <-chan *timeline.Snapshot
	keys *keyMap

	w, h  int
	look  look
	mouse bool

	snap  *timeline.Snapshot
	shape shape
	now   time.Time
	ended bool
	focus view.Focus

	views  map[view.ID]view.View
	shown  view.ID
	last   view.ID // where esc leads from Path
	layer  layer   // help, palette or prompt over the view, or nil
	typing view.Typer
	// touched: a key was pressed, or the first Services have come.
	touched bool
	said    string // the answer to the last action
	bad     bool   // said is an error
	saidAt  time.Time
	busy    int // actions under way

	ticking bool
	every   time.Duration // of the running tick
	tickN   int

	// found is what was found in judged, or in a snapshot shortly before; judging
	// while another one is being looked at.
	found   *view.Found
	judged  *timeline.Snapshot
	judging bool
	// judgeTook is how long the last judgement of many Services took.
	judgeTook time.Duration

	dirty  bool
	frame  string // as text, without a terminal
	screen *draw.Screen
	out    *terminal // nil in tests and for recordings of the screen
	tabs   []tab     // of the last frame, for the mouse
	bar    replayBar
}

// New makes the root model without a feed, as tests use it: snapshots come as
// messages made by Show. It fails on a theme, key or focus that does not exist.
func New(o Options) (*Model, error) {
	o.fill()
	keys, err := newKeyMap(o.Keys)
	if err != nil {
		return nil, err
	}
	look, err := newLook(&o)
	if err != nil {
		return nil, err
	}
	m := &Model{
		o: o, ctx: context.Background(), keys: keys, look: look, mouse: !o.NoMouse,
		views: map[view.ID]view.View{
			view.Services: view.NewServices(), view.Timeline: view.NewTimeline(), view.Path: view.NewPath(),
			view.Nodes: view.NewNodes(), view.Engine: view.NewEngine(), view.Events: view.NewEvents(),
			view.Findings: view.NewFindings(),
		},
		shown: view.Services, last: view.Timeline, now: o.Clock.Now(), dirty: true,
	}
	if ns, name, ok := strings.Cut(o.Focus, "/"); ok {
		m.focus = view.Focus{Namespace: ns, Service: name}
		m.shown = view.Timeline
	}
	return m, nil
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.schedule()}
	if m.feed != nil {
		cmds = append(cmds, m.next())
	}
	return tea.Batch(cmds...)
}

// paint draws a frame on the terminal when there is something to show and it is time
// for one; else it asks for being called again when it is.
func (m *Model) paint() tea.Cmd {
	if m.out == nil || !m.dirty || m.out.waiting {
		return nil
	}
	now := time.Now() // not the model's: a terminal takes so many frames a real second
	if d := m.out.wait(now); d > 0 {
		m.out.waiting = true
		return tea.Tick(d, func(time.Time) tea.Msg { return frameMsg{} })
	}
	m.draw()
	m.dirty = false
	m.out.setMouse(m.mouse)
	m.screen = m.out.show(m.screen, now)
	return nil
}

// View implements tea.Model. It is the frame as text where there is no terminal that
// paint draws it on.
func (m *Model) View() tea.View {
	if m.out != nil {
		return tea.View{}
	}
	if m.dirty {
		m.draw()
		m.frame, m.dirty = m.screen.Render(), false
	}
	v := tea.NewView(m.frame)
	v.AltScreen = true
	v.WindowTitle = "kconverge"
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// Frame draws the screen as it is now and returns its cells.
func (m *Model) Frame() *draw.Screen {
	m.draw()
	return m.screen
}

// context makes what views may read.
func (m *Model) context() *view.Context {
	c := &view.Context{
		Snap: m.snap, Now: m.now, Loc: m.now.Location(), Focus: &m.focus,
		Title: m.o.Title, Waiting: m.o.Waiting, Hint: m.hint(), Keys: m.keys.first, Found: m.found,
	}
	if m.snap != nil {
		c.Health = view.HealthOf(m.snap, m.recorded())
	}
	return c
}

// hint is the line to try elsewhere, until something has changed.
func (m *Model) hint() string {
	if m.snap != nil {
		for _, s := range m.snap.Services {
			for _, e := range s.Marks {
				if e.Kind == "action" {
					return ""
				}
			}
		}
	}
	return m.o.Hint
}

// advance moves the model's time: to the snapshot's, or on with the clock while
// a live source runs. Every frame does it first, so that all of its parts speak
// of the same now.
func (m *Model) advance() {
	now := m.o.Clock.Now()
	switch {
	case m.snap != nil && (m.ended || m.recorded()):
		m.now = m.snap.Now.In(now.Location())
		return
	case m.snap != nil && m.snap.Now.After(now):
		now = m.snap.Now.In(now.Location())
	case m.recorded():
		return // nothing is known yet of the time of what was recorded
	}
	if now.After(m.now) {
		m.now = now
	}
}

// recorded tells that time is what the Snapshots say, not the clock.
func (m *Model) recorded() bool {
	return m.o.Recorded || m.snap != nil && m.snap.Session.Kind == "recording"
}

// look is the theme and the glyphs, and where they come from.
type look struct {
	fixed   *theme.Theme // chosen by the user or by NO_COLOR
	profile *theme.Theme // forced by what the terminal can show
	light   bool
	glyphs  *draw.Glyphs
}

func newLook(o *Options) (look, error) {
	l := look{glyphs: &draw.Unicode}
	t, err := theme.ByName(o.Theme)
	if err != nil {
		return l, err
	}
	l.fixed = t
	if environ(o.Environ, "NO_COLOR") != "" {
		l.fixed = &theme.Plain
	}
	if o.ASCII || environ(o.Environ, "TERM") == "dumb" {
		l.glyphs = &draw.ASCII
	}
	return l, nil
}

// environ finds a variable; the last one counts.
func environ(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// asks tells whether the terminal's background matters.
func (l *look) asks() bool {
	return l.fixed == nil || l.fixed == &theme.ANSI || l.fixed == &theme.HighContrast
}

func (l *look) theme() *theme.Theme {
	switch {
	case l.fixed == &theme.ANSI && l.light, l.fixed == nil && l.profile == &theme.ANSI && l.light:
		return &theme.ANSILight
	case l.fixed == &theme.HighContrast && l.light:
		return &theme.HighContrastLight
	case l.fixed != nil:
		return l.fixed
	case l.profile != nil:
		return l.profile
	case l.light:
		return &theme.Light
	}
	return &theme.Dark
}
