package ui_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

func recorded(o *ui.Options) { o.Recorded = true }

func TestARecordingIsShownAtItsOwnTimeWhateverTheClockSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 120, 40, recorded)
		s.show(lanestest.Converging())
		s.clock.set(s.clock.Now().Add(15 * time.Minute))
		for _, view := range []string{"1", "3", "2"} {
			s.press(view).has("▸ replay", "12:04:19", "converging 2.3 s").lacks("live")
		}
		if n := ticks(t, s, 10*time.Second); n != 0 {
			t.Errorf("%d ticks in 10 s, although only snapshots move a recording's time", n)
		}
		s.send(ui.Ended()).has("replay ended", "the recording has ended", "converging 2.3 s").lacks("source ended")
	})
}

func TestEveryPartOfAFrameSpeaksOfTheSameNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("3")
		for _, view := range []string{"3", "2", "6", "3", "1"} {
			// Only time moves: the snapshot alone is no reason to draw.
			snap := lanestest.Converging()
			snap.Now = s.clock.Now().Add(3 * time.Second)
			snap.Watermark = snap.Now.Add(-150 * time.Millisecond)
			s.show(snap).press(view)
			if first, _, _ := strings.Cut(s.text(), "\n"); !strings.HasSuffix(first, snap.Now.Format("15:04:05")) {
				t.Errorf("view %s at %v: %q", view, snap.Now, first)
			}
			s.has("converging " + lanes.Age(snap.Now.Sub(snap.Services[0].Since)))
		}
	})
}

func TestTheClockGoesOnOnThePathOfAChangeThatHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("3", "p", "p", "p", "p").has("12:04:19", "converging 2.3 s")
		if n := ticks(t, s, 3*time.Second); n < 2 {
			t.Fatalf("%d ticks", n)
		}
		s.lacks("converging 2.3 s").lacks("dropped 0   12:04:19")
	})
}
