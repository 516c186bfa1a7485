package ui_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// clock stands still until it is set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

const hint = "kubectl --kubeconfig ~/.kube/kconverge.yaml scale deployment/web --replicas=7"

// screen is a root model driven by messages, without a terminal.
type screen struct {
	t     *testing.T
	m     *ui.Model
	clock *clock
	cmds  []tea.Cmd
}

func options(c *clock) ui.Options {
	return ui.Options{Title: "lab v1.37.2", Namespace: "default", Focus: "default/web", Theme: "dark", Clock: c, Environ: []string{"TERM=xterm-256color"}, Hint: hint}
}

func newScreen(t *testing.T, w, h int, change func(*ui.Options)) *screen {
	t.Helper()
	s := &screen{t: t, clock: &clock{t: lanestest.Start}}
	o := options(s.clock)
	if change != nil {
		change(&o)
	}
	m, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.m = m
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

// send passes a message and draws.
func (s *screen) send(msgs ...tea.Msg) *screen {
	for _, msg := range msgs {
		_, cmd := s.m.Update(msg)
		s.cmds = append(s.cmds, cmd)
		s.m.View()
	}
	return s
}

// show passes a snapshot, at its own time.
func (s *screen) show(snap *timeline.Snapshot) *screen {
	s.clock.set(snap.Now)
	return s.send(ui.Show(snap))
}

var named = map[string]rune{
	"left": tea.KeyLeft, "right": tea.KeyRight, "up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape,
	"tab": tea.KeyTab, "space": tea.KeySpace, "backspace": tea.KeyBackspace, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
}

// press passes keys: names, or single characters.
func (s *screen) press(keys ...string) *screen {
	for _, k := range keys {
		if c, ok := named[k]; ok {
			msg := tea.KeyPressMsg{Code: c}
			if k == "space" {
				msg.Text = " "
			}
			s.send(msg)
			continue
		}
		if c, ok := strings.CutPrefix(k, "shift+"); ok {
			s.send(tea.KeyPressMsg{Code: named[c], Mod: tea.ModShift})
			continue
		}
		if len(k) > 5 && k[:5] == "ctrl+" {
			s.send(tea.KeyPressMsg{Code: rune(k[5]), Mod: tea.ModCtrl})
			continue
		}
		s.send(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
	}
	return s
}

func (s *screen) text() string { return s.m.Frame().String() }

// messages runs the commands so far and returns what they said. It needs a
// synctest bubble, in which ticks take no time.
func (s *screen) messages() []tea.Msg {
	var out []tea.Msg
	for _, c := range s.cmds {
		out = append(out, run(c)...)
	}
	s.cmds = nil
	return out
}

func run(c tea.Cmd) []tea.Msg {
	if c == nil {
		return nil
	}
	msg := c()
	b, ok := msg.(tea.BatchMsg)
	if !ok {
		return []tea.Msg{msg}
	}
	var out []tea.Msg
	for _, x := range b {
		out = append(out, run(x)...)
	}
	return out
}

// doer records actions.
type doer struct {
	mu    sync.Mutex
	calls []string
	fail  error
}

func (d *doer) did(s string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, s)
	return d.fail
}

func (d *doer) Scale(_ context.Context, ns, kind, name string, n int32) error {
	return d.did("scale " + kind + " " + ns + "/" + name + " " + string(rune('0'+n)))
}
func (d *doer) Restart(_ context.Context, ns, kind, name string) error {
	return d.did("restart " + kind + " " + ns + "/" + name)
}
func (d *doer) DeletePod(_ context.Context, ns, name string) error {
	return d.did("delete " + ns + "/" + name)
}

var errRefused = errors.New("the API server refused")
