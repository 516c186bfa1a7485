package ui_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

// breaker is a lab's faults in a test.
type breaker struct{ doer }

func (b *breaker) Faults() []ui.Fault {
	return []ui.Fault{
		{Name: "sync-delay", Syntax: "DURATION[@NODE]", Does: "each rule sync takes longer", Example: "5s@node-2", Active: []string{"1s@node-1"}},
		{Name: "workers", Syntax: "NUMBER", Does: "fewer workers, or more", Example: "1"},
	}
}

func (b *breaker) SetFault(_ context.Context, text string) error { return b.did(text) }

func (b *breaker) SetTraffic(context.Context, string, int) error { return b.did("traffic") }
func (b *breaker) Traffic() int                                  { return 5 }

func TestFaultsAreSetAndClearedByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{}
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions, o.Faults = b, b }).show(lanestest.Converging())
		done := func(want string) {
			t.Helper()
			s.send(s.messages()...)
			if got := strings.Join(b.calls, " "); got != want {
				t.Errorf("asked for %q, want %q", got, want)
			}
			b.calls = nil
		}
		s.press("b").has("sync-delay=1s@node-1").has("in force").has("workers").press("enter")
		done("sync-delay=off@node-1")
		s.press("b", "down", "enter").has("DURATION[@NODE]").has("5s@node-2").press("enter")
		done("sync-delay=5s@node-2")
		// The example is a proposal: what is typed takes its place.
		s.press("b", "down", "enter").has("5s@node-2").press("3", "s", "@").has("> 3s@").lacks("5s@node-2").press("esc")
		s.press("b", "w", "o", "r", "enter").has("NUMBER").press("esc").lacks("NUMBER")
		s.press(":", "f", "a", "u", "l", "t", "space", "w", "o").has("fault workers").press("enter").has("NUMBER").press("backspace", "3", "enter")
		done("workers=3")
	})
}

func TestWhereNothingCanFailTheReasonIsGiven(t *testing.T) {
	newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("b").has("only a lab can be made to fail")
}
