//go:build unix

package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/ui/view"
)

// sequences are what a terminal sends for keys that are no character.
var sequences = map[string]string{
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "pgup": "\x1b[5~", "pgdown": "\x1b[6~",
	"shift+left": "\x1b[1;2D", "shift+right": "\x1b[1;2C", "shift+tab": "\x1b[Z", "tab": "\t", "enter": "\r", "space": " ", "esc": "\x1b",
}

func sequence(key string) string {
	if s, ok := sequences[key]; ok {
		return s
	}
	if c, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return string(c[0] & 0x1f)
	}
	return key
}

// TestOnATerminalEveryActionHasAKeyThatWorks: what the terminal sends for the first
// key of each action does what the action is for, on the emulator.
func TestOnATerminalEveryActionHasAKeyThatWorks(t *testing.T) {
	for _, i := range view.Actions {
		d, ok := deeds[i.Action]
		switch {
		case !ok:
			t.Errorf("nothing tells what %s does", i.Action)
			continue
		case d.sends != nil:
			continue // nothing of it is to be seen: TestEveryActionDoesWhatItIsFor
		}
		t.Run(string(i.Action), func(t *testing.T) {
			snap := d.snapshot()
			r := newTape(snap)
			x := startTerminal(t, 120, 40, d.options(i.Group, r))
			x.feed <- snap
			x.wait("[2 Timeline]", "/cell")
			for _, k := range strings.Fields(d.before) {
				x.keys(sequence(k))
			}
			x.keys(sequence(i.Keys[0]))
			switch {
			case d.quits:
				if err := x.ended(); err != nil {
					t.Error(err)
				}
				return
			case d.tells != "":
				r.wait(t, d.tells)
			default:
				// The clock of the screen stands where the feed was begun, so "now"
				// is another one.
				x.wait(strings.TrimPrefix(d.shows, "now "))
			}
			x.cancel()
			<-x.done
		})
	}
}

// wait returns once the player was told so, which happens beside the screen.
func (r *tape) wait(t *testing.T, what string) {
	t.Helper()
	for r.told() != what {
		select {
		case <-t.Context().Done():
			t.Fatalf("the player was told %q, not %q", r.told(), what)
		case <-time.After(time.Millisecond):
		}
	}
}
