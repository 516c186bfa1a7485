package ui_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/ui"
)

// tape is a Replay that only writes down what it is told.
type tape struct {
	mu     sync.Mutex
	status live.ReplayStatus
	calls  []string
}

func (r *tape) did(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *tape) Status() live.ReplayStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *tape) Play()              { r.did("play") }
func (r *tape) Pause()             { r.did("pause") }
func (r *tape) SetSpeed(x float64) { r.did("speed %g", x) }
func (r *tape) Seek(t time.Time)   { r.did("seek %s", t.UTC().Format("15:04:05.000")) }
func (r *tape) Step(n int)         { r.did("step %d", n) }
func (r *tape) StepTo(s live.Stop) { r.did("step to %d", s) }
func (r *tape) told() (out string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.calls, "; ")
}
func (r *tape) set(playing bool) { r.mu.Lock(); defer r.mu.Unlock(); r.status.Playing = playing }
func (r *tape) forget()          { r.mu.Lock(); defer r.mu.Unlock(); r.calls = nil }

func taped(t *testing.T, w, h int) (*screen, *tape) {
	snap := lanestest.Converging()
	to := snap.Now.Truncate(time.Second)
	r := &tape{status: live.ReplayStatus{From: to.Add(-10 * time.Minute), To: to, At: to.Add(-5 * time.Minute), Speed: 1, Event: 1234, Events: 5678}}
	s := newScreen(t, w, h, func(o *ui.Options) { o.Recorded, o.Replay, o.NoActions = true, r, "this is a recording" }).show(snap)
	return s, r
}

// pressed presses keys and carries out what they ask for.
func (s *screen) pressed(keys ...string) {
	s.cmds = nil
	s.press(keys...)
	for _, c := range s.cmds {
		run(c)
	}
}

func TestKeysMoveWithinARecording(t *testing.T) {
	for _, c := range []struct {
		keys string
		want string
	}{
		{"space", "play"},
		{". ,", "step 1; step -1"},
		{"> <", "speed 2; speed 0.5"},
		{"N }", "step to 0; step to 1"},
		{"t + 1 m enter", "seek 12:00:19.000"},
		{"t - 3 0 s enter", "seek 11:58:49.000"},
		{"t - 3 h enter", "seek 11:54:19.000"}, // no further than its start
		{"t 1 1 : 5 7 : 0 0 . 5 enter", "seek 11:57:00.500"},
		{"t 0 9 : 0 0 enter", ""},
		{"t s o o n enter", ""},
		{"t 1 esc", ""},
		{"left left @", "seek 12:04:18.750"},
	} {
		s, r := taped(t, 120, 40)
		s.pressed(strings.Fields(c.keys)...)
		if got := r.told(); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
	}
	s, r := taped(t, 120, 40)
	r.set(true)
	if s.pressed("space"); r.told() != "pause" {
		t.Errorf("space while it plays: %q", r.told())
	}
	if s.pressed("t", "9", "enter"); !strings.Contains(s.text(), "write a time like 15:04:05") {
		t.Error(s.text())
	}
	if s.pressed("t", "0", "9", ":", "0", "0", "enter"); !strings.Contains(s.text(), "09:00 is not in the recording, which goes from 11:54:19 to 12:04:19") {
		t.Error(s.text())
	}
	s.pressed("@")
	s.pressed("f", "@")
	if !strings.Contains(s.text(), "move the cursor to a moment first") {
		t.Error(s.text())
	}
}

func TestTheReplaysLineShowsAndTakesMoments(t *testing.T) {
	for _, w := range []int{80, 120, 200} {
		s, r := taped(t, w, 30)
		lines := strings.Split(s.text(), "\n")
		bar := []rune(lines[28])
		if !strings.Contains(lines[28], "1x  11:59:19  11:54:19 ") || !strings.Contains(lines[28], "1234") || !strings.Contains(lines[28], " 12:04:19") {
			t.Fatalf("%d columns: %q", w, lines[28])
		}
		knob, first := strings.Index(lines[28], "●"), 0
		knob = len([]rune(lines[28][:knob]))
		for i, c := range bar {
			if c == '━' && first == 0 {
				first = i
			}
		}
		last := first
		for i := first; i < len(bar) && strings.ContainsRune("━●─", bar[i]); i++ {
			last = i
		}
		if mid := (first + last) / 2; knob < mid-1 || knob > mid+1 {
			t.Errorf("%d columns: halfway it stands at %d of %d to %d", w, knob, first, last)
		}
		click := func(x int) string {
			r.forget()
			s.cmds = nil
			s.send(tea.MouseClickMsg{X: x, Y: 28, Button: tea.MouseLeft})
			for _, c := range s.cmds {
				run(c)
			}
			return r.told()
		}
		for x, want := range map[int]string{first: "seek 11:54:19.000", last: "seek 12:04:19.000", 1: "play"} {
			if got := click(x); got != want {
				t.Errorf("%d columns: a click at %d: %q, want %q", w, x, got, want)
			}
		}
	}
}

func TestWithoutARecordingItsKeysAreNotOffered(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("?")
	if strings.Contains(s.text(), "play more slowly") {
		t.Error("help explains how to replay what is live")
	}
	s, _ = taped(t, 120, 48)
	if s.press("?"); !strings.Contains(s.text(), "play more slowly") || strings.Contains(s.text(), "scale what owns") {
		t.Error(s.text())
	}
}

func TestFramesOfReplays(t *testing.T) {
	for _, size := range sizes {
		s, _ := taped(t, size.w, size.h)
		golden(t, "replay-"+size.name, s.text())
	}
	s, _ := taped(t, 120, 40)
	golden(t, "replay-go-to-120x40", s.press("t", "1", "2").text())
}
