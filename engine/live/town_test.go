package live_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/live/livetest"
)

// TestABusyTownSeeksToWhatPlayingFromTheStartShows: over so long that retention has let
// go of what the start was, and with pods that come and go.
func TestABusyTownSeeksToWhatPlayingFromTheStartShows(t *testing.T) {
	town := livetest.Busy
	town.Services, town.Nodes, town.Every = 4, 3, 20*time.Second
	events := slices.Collect(town.Events(20_000))
	if span := events[len(events)-1].At.Sub(events[0].At); span < time.Hour {
		t.Fatalf("%d events are %s: retention lets go of nothing", len(events), span)
	}
	file := recordedSession(t, events, 0)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := live.NewReplay(file)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		rnd := rand.New(rand.NewPCG(5, 6))
		for range 6 {
			at := file.From.Add(time.Duration(rnd.Int64N(int64(file.To.Sub(file.From)))))
			r.Seek(at)
			synctest.Wait()
			if got, want := text(t, r.Latest()), after(t, events, func(e collect.Event) bool { return !e.At.After(at) }); got != want {
				t.Fatalf("at %s: shows\n%.400s\nwant\n%.400s", at, got, want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
