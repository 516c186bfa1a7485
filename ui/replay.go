package ui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// replayActions move within a recording.
var replayActions map[view.Action]func(*Model) tea.Cmd

func init() {
	replayActions = map[view.Action]func(*Model) tea.Cmd{
		view.Pause:       (*Model).playOrPause,
		view.Faster:      func(m *Model) tea.Cmd { return m.speed(1) },
		view.Slower:      func(m *Model) tea.Cmd { return m.speed(-1) },
		view.NextEvent:   func(m *Model) tea.Cmd { return m.replay(func(r Replay) { r.Step(1) }) },
		view.PrevEvent:   func(m *Model) tea.Cmd { return m.replay(func(r Replay) { r.Step(-1) }) },
		view.NextStep:    func(m *Model) tea.Cmd { return m.replay(func(r Replay) { r.StepTo(live.StopStep) }) },
		view.PlayEpisode: func(m *Model) tea.Cmd { return m.replay(func(r Replay) { r.StepTo(live.StopEpisode) }) },
		view.ShowCursor:  (*Model).replayCursor,
		view.GoTo:        (*Model).askTime,
	}
}

// replay hands something to the replay, which may take its time, and lets the views
// follow what it shows.
func (m *Model) replay(do func(Replay)) tea.Cmd {
	if t, ok := m.views[view.Timeline].(*view.TimelineView); ok {
		t.FollowNow()
	}
	r := m.o.Replay
	return func() tea.Msg { do(r); return movedMsg{} }
}

func (m *Model) playOrPause() tea.Cmd {
	if m.o.Replay.Status().Playing {
		return m.replay(Replay.Pause)
	}
	return m.replay(Replay.Play)
}

func (m *Model) speed(by int) tea.Cmd {
	// The next one in that direction, also from a speed between two.
	at, there := slices.BinarySearch(live.Speeds, m.o.Replay.Status().Speed)
	if !there && by > 0 {
		at--
	}
	x := live.Speeds[max(0, min(len(live.Speeds)-1, at+by))]
	return m.replay(func(r Replay) { r.SetSpeed(x) })
}

// replayCursor shows what was known at the Timeline's cursor.
func (m *Model) replayCursor() tea.Cmd {
	t := m.views[view.Timeline].(*view.TimelineView).CursorTime()
	if t.IsZero() {
		m.say("move the cursor to a moment first")
		return nil
	}
	return m.replay(func(r Replay) { r.Seek(t) })
}

// askTime asks for a time to show.
func (m *Model) askTime() tea.Cmd {
	m.layer = &prompt{
		title: "show a time", line: true, note: "15:04:05 or +10s or -1m   ⏎ show it   esc leave",
		enter: func(m *Model, s string) tea.Cmd {
			t, err := parseMoment(s, m.o.Replay.Status(), m.now.Location())
			if err != nil {
				m.complain(err.Error())
				return nil
			}
			return m.replay(func(r Replay) { r.Seek(t) })
		},
	}
	return nil
}

// parseMoment reads a time of day, of the day that is shown or the one on which the
// recording has it, or a duration from the moment that is shown.
func parseMoment(s string, status live.ReplayStatus, loc *time.Location) (time.Time, error) {
	if d, err := time.ParseDuration(strings.ReplaceAll(s, " ", "")); err == nil && s != "" && strings.ContainsAny(s[:1], "+-") {
		return clip(status.At.Add(d), status), nil
	}
	for _, layout := range []string{"15:04:05.999999999", "15:04", time.RFC3339Nano, "2006-01-02 15:04:05"} {
		t, err := time.ParseInLocation(layout, s, loc)
		if err != nil {
			continue
		}
		if t.Year() != 0 {
			return clip(t, status), nil
		}
		y, mo, d := status.At.In(loc).Date()
		for _, day := range []int{0, -1, 1} {
			if at := time.Date(y, mo, d+day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc); !at.Before(status.From) && !at.After(status.To) {
				return at, nil
			}
		}
		return time.Time{}, fmt.Errorf("%s is not in the recording, which goes from %s to %s", s, status.From.In(loc).Format("15:04:05"), status.To.In(loc).Format("15:04:05"))
	}
	return time.Time{}, errors.New("write a time like 15:04:05, or +10s or -1m from here")
}

func clip(t time.Time, s live.ReplayStatus) time.Time {
	switch {
	case t.Before(s.From):
		return s.From
	case t.After(s.To):
		return s.To
	}
	return t
}

// The bar between the two times of the replay's line, in the last frame.
type replayBar struct{ x, w int }

// drawReplay paints where the replay stands: whether it plays and how fast, the moment
// within the recording, and the event.
func (m *Model) drawReplay(s *draw.Screen, y int) {
	st := m.o.Replay.Status()
	w := s.Width()
	mark := s.Glyphs.Paused
	if st.Playing {
		mark = s.Glyphs.SpanOpen
	}
	layout := "15:04:05"
	if st.To.Sub(st.From) < 10*time.Minute && w >= 100 {
		layout = "15:04:05.000"
	}
	loc := m.now.Location()
	x := s.Text(1, y, theme.Accent, mark+" "+strconv.FormatFloat(st.Speed, 'f', -1, 64)+"x") + 2
	x = s.Text(x, y, theme.Strong, st.At.In(loc).Format(layout)) + 2
	right := fmt.Sprintf("event %d of %d", st.Event, st.Events)
	if w < 100 {
		right = fmt.Sprintf("%d/%d", st.Event, st.Events)
	}
	end := s.Right(w-1, y, theme.Dim, right) - 2
	from, to := st.From.In(loc).Format("15:04:05"), st.To.In(loc).Format("15:04:05")
	x = s.Text(x, y, theme.Dim, from) + 1
	end = s.Right(end, y, theme.Dim, to) - 1
	m.bar = replayBar{x, max(end-x, 0)}
	if m.bar.w < 4 {
		return
	}
	s.Repeat(x, y, m.bar.w, theme.Line, s.Glyphs.H)
	at := m.bar.col(st)
	s.Repeat(x, y, at, theme.Accent, s.Glyphs.Agrees)
	s.Glyph(x+at, y, theme.Accent, s.Glyphs.ReadyAt)
}

// col is where the moment that is shown stands on the bar.
func (b replayBar) col(st live.ReplayStatus) int {
	whole := st.To.Sub(st.From)
	if whole <= 0 {
		return b.w - 1
	}
	return max(0, min(b.w-1, int(float64(st.At.Sub(st.From))/float64(whole)*float64(b.w-1)+0.5)))
}

// clickReplay shows the moment of the bar that was clicked.
func (m *Model) clickReplay(x int) tea.Cmd {
	if m.bar.w < 4 || x < m.bar.x || x >= m.bar.x+m.bar.w {
		return m.playOrPause()
	}
	st := m.o.Replay.Status()
	t := st.From.Add(time.Duration(float64(st.To.Sub(st.From)) * float64(x-m.bar.x) / float64(m.bar.w-1)))
	return m.replay(func(r Replay) { r.Seek(t) })
}

// replayOffers are the keys that the last line shows first.
func (m *Model) replayOffers() []offer {
	var out []offer
	for _, o := range []struct {
		a, b view.Action
		text string
	}{{view.Pause, "", "play"}, {view.PrevEvent, view.NextEvent, "event"}, {view.Slower, view.Faster, "speed"}, {view.PlayEpisode, "", "next episode"}, {view.GoTo, "", "time"}} {
		keys := m.keys.first(o.a)
		if o.b != "" {
			keys += " " + m.keys.first(o.b)
		}
		out = append(out, offer{role: theme.Accent, keys: keys, text: o.text})
	}
	if m.o.Replay.Status().Playing {
		out[0].text = "pause"
	}
	return out
}
