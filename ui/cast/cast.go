package cast

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// Reel shows the moments of a recording one after the other (engine/live's Reel).
type Reel interface {
	// To shows all that was observed up to a time.
	To(t time.Time) (*timeline.Snapshot, error)
	// Next is when the next event was observed; false at the end.
	Next() (time.Time, bool)
}

// Sizes that a screen may have, in cells.
const (
	MinWidth, MinHeight = 48, 14
	MaxSize             = 500
)

// Options say what is shown and how.
type Options struct {
	Width, Height int
	// Speed is the number of recorded seconds that pass in one; 0 means 1.
	Speed float64
	// FPS is the most frames a second; 0 means 10.
	FPS int
	// From and To limit it; zero means the recording's first event, and its end.
	From, To time.Time
	Location *time.Location
	// Screen is what the screen is told besides: title, focus, theme.
	Screen ui.Options
}

// idleLimit is the most seconds that a player should wait between two frames: the
// screen's own clock tells how long it was.
const idleLimit = 3

// clock is the recording's.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

var _ collect.Clock = (*clock)(nil)

// Write writes the asciicast.
func Write(w io.Writer, reel Reel, o Options) error {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	if o.FPS <= 0 {
		o.FPS = 10
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	snap, err := reel.To(o.From)
	if err != nil {
		return err
	}
	if o.From.IsZero() { // nothing is shown yet
		at, more := reel.Next()
		if !more {
			return fmt.Errorf("the recording is empty")
		}
		o.From = at
		if snap, err = reel.To(at); err != nil {
			return err
		}
	}
	c := &caster{o: o, out: bufio.NewWriter(w), clock: &clock{o.From.In(o.Location)}, told: map[string]bool{}}
	o.Screen.Clock, o.Screen.Recorded, o.Screen.Replay, o.Screen.NoActions = c.clock, true, nil, "this is a recording"
	if c.m, err = ui.New(o.Screen); err != nil {
		return err
	}
	c.header()
	c.update(tea.WindowSizeMsg{Width: o.Width, Height: o.Height})
	c.markers(snap, false) // those from before are none
	c.show(o.From, snap)
	for {
		at, more := reel.Next()
		if !more || !o.To.IsZero() && at.After(o.To) {
			break
		}
		if due := c.at.Add(time.Duration(float64(time.Second) * o.Speed / float64(o.FPS))); at.Before(due) {
			at = due
		}
		if !o.To.IsZero() && at.After(o.To) {
			at = o.To
		}
		if snap, err = reel.To(at); err != nil {
			return err
		}
		c.markers(snap, true)
		c.show(at, snap)
	}
	c.json([]any{c.last, "o", fmt.Sprintf("\x1b[m\x1b[%d;1H\x1b[?25h", o.Height)})
	if c.err != nil {
		return c.err
	}
	return c.out.Flush()
}

// caster writes one asciicast.
type caster struct {
	o     Options
	out   *bufio.Writer
	clock *clock
	m     *ui.Model
	lines []string  // of the last frame
	at    time.Time // of the last frame
	last  float64   // the seconds of the last line written
	told  map[string]bool
	err   error
}

func (c *caster) json(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = c.out.Write(append(b, '\n'))
	}
	if c.err == nil {
		c.err = err
	}
}

func (c *caster) header() {
	c.json(map[string]any{
		"version": 2, "width": c.o.Width, "height": c.o.Height, "timestamp": c.o.From.Unix(), "title": collect.Plain(c.o.Screen.Title),
		"idle_time_limit": idleLimit, "env": map[string]string{"TERM": "xterm-256color"},
	})
	c.json([]any{0, "o", "\x1b[?25l\x1b[2J"})
}

// seconds is a moment of the recording in the cast, never before what is written already.
func (c *caster) seconds(t time.Time) float64 {
	s := float64(t.Sub(c.o.From).Microseconds()) / 1e6 / c.o.Speed
	c.last = max(c.last, s)
	return c.last
}

// update passes a message, and what becomes of it: a recording's screen starts nothing
// that waits.
func (c *caster) update(msg tea.Msg) {
	_, cmd := c.m.Update(msg)
	for _, m := range results(cmd) {
		c.update(m)
	}
}

func results(cmd tea.Cmd) []tea.Msg {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case nil:
		return nil
	case tea.BatchMsg:
		var out []tea.Msg
		for _, x := range msg {
			out = append(out, results(x)...)
		}
		return out
	default:
		return []tea.Msg{msg}
	}
}

// show draws a frame and writes the lines that are not as before.
func (c *caster) show(at time.Time, snap *timeline.Snapshot) {
	c.at, c.clock.now = at, snap.Now.In(c.o.Location)
	c.update(ui.Show(snap))
	lines := strings.Split(c.m.Frame().Render(), "\n")
	var b strings.Builder
	for y := range max(len(lines), len(c.lines)) {
		was, is := "", ""
		if y < len(c.lines) {
			was = c.lines[y]
		}
		if y < len(lines) {
			is = lines[y]
		}
		if was != is {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[m\x1b[2K%s", y+1, is)
		}
	}
	c.lines = lines
	if b.Len() > 0 {
		c.json([]any{c.seconds(at), "o", b.String()})
	}
}

// markers writes the starts and ends of episodes that are new; with write false it only
// notes them.
func (c *caster) markers(s *timeline.Snapshot, write bool) {
	mark := func(key string, at time.Time, text string) {
		if !c.told[key] {
			if c.told[key] = true; write {
				c.json([]any{c.seconds(at), "m", collect.Plain(text)})
			}
		}
	}
	for _, svc := range s.Services {
		name := svc.Namespace + "/" + svc.Name
		if f := c.o.Screen.Focus; f != "" && f != name {
			continue
		}
		for _, e := range svc.Episodes {
			key := fmt.Sprint(name, " ", e.Start.UnixNano())
			mark(key, e.Start, name+" begins to converge")
			if !e.End.IsZero() {
				mark(key+" end", e.End, name+" has converged: "+lanes.EpisodeText(e, s.Now))
			}
		}
	}
}
