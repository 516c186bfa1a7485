package ui_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

func TestWhatAScriptTellsStandsBelowTheLanesAndSpaceGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		went := 0
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Next = func() { went++ } })
		snap := *lanestest.Converging()
		tell := func(n *collect.Narration) *screen {
			snap.Narration = n
			return s.show(&snap)
		}
		tell(&collect.Narration{Scenario: "tour", Chapter: "Scaling up", Text: "Look at \x1b[31mnode-3."}).has("Scaling up").has("Look at").lacks("goes on").lacks("\x1b[31m")
		s.press("space")
		s.send(s.messages()...)
		if went != 0 {
			t.Error("space went on where the script did not wait")
		}
		s.press("space") // follow again
		tell(&collect.Narration{Scenario: "tour", Text: "That was it.", Next: "Scaling down", Waiting: true}).has("That was it.").has("space goes on: Scaling down").press("space")
		s.send(s.messages()...)
		if went != 1 {
			t.Errorf("space went on %d times, want once", went)
		}
		// A picture that was stopped follows when the script goes on.
		tell(nil).press("left").has("paused")
		tell(&collect.Narration{Scenario: "tour", Text: "And now?", Next: "More", Waiting: true}).press("space").lacks("paused")
		s.send(s.messages()...)
		tell(&collect.Narration{Scenario: "slow-sync", Text: "node-2 is late", Verdict: "not met"}).has("not met: node-2 is late")
		long := strings.Repeat("many words ", 60)
		rows := strings.Split(tell(&collect.Narration{Scenario: "tour", Text: long}).text(), "\n")
		n := 0
		for _, row := range rows {
			if strings.Contains(row, "many words") {
				n++
			}
		}
		if n != 3 {
			t.Errorf("a long text takes %d lines, want 3", n)
		}
		tell(nil).lacks("many words")
	})
}

// opener is a lab's traffic in a test.
type opener struct{ doer }

func (o *opener) SetTraffic(_ context.Context, by string, rate int) error {
	return o.did(by + " " + strings.Repeat("x", rate))
}
func (o *opener) Traffic() int { return 2 }

func TestTrafficIsSetByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		s := newScreen(t, 120, 40, func(x *ui.Options) { x.Actions = o }).show(lanestest.Converging())
		s.press("c").has("connections a second").press("backspace", "3", "enter")
		s.send(s.messages()...)
		if got := strings.Join(o.calls, " "); got != "screen xxx" {
			t.Errorf("asked for %q", got)
		}
	})
	newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("c").has("only watched")
}
