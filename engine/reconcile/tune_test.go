package reconcile

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kconverge/kconverge/collect"
)

// told keeps how the controllers said that they are set.
type told struct {
	mu     sync.Mutex
	states []collect.ControllerState
}

func (s *told) Emit(e collect.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, *e.Payload.(*collect.ControllerState))
}

func TestHowTheControllersAreSetIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &told{}
		r := &Reconciler{
			o:    Options{Clock: clock.RealClock{}, Sink: s, Workers: 5, Resync: time.Hour},
			tune: tuning{workers: 5, changed: make(chan struct{})},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.resyncs(ctx) })
		start := time.Now()
		check := func(after time.Duration, workers int, every, next time.Duration) {
			t.Helper()
			time.Sleep(time.Until(start.Add(after)))
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			got := s.states[len(s.states)-1]
			if got.Workers != workers || got.Resync != every || !got.NextResync.Equal(start.Add(next)) {
				t.Errorf("after %s: %d workers, every %s, next after %s; want %d, %s, %s",
					after, got.Workers, got.Resync, got.NextResync.Sub(start), workers, every, next)
			}
		}
		check(0, 5, time.Hour, time.Hour)
		r.SetWorkers(1)
		check(time.Minute, 1, time.Hour, time.Hour)
		r.SetResync(25 * time.Minute)
		check(time.Minute, 1, 25*time.Minute, 26*time.Minute)
		check(26*time.Minute, 1, 25*time.Minute, 51*time.Minute)
		r.SetWorkers(3) // puts nothing off
		check(30*time.Minute, 3, 25*time.Minute, 51*time.Minute)
		check(51*time.Minute, 3, 25*time.Minute, time.Hour) // the informers' own
		check(time.Hour, 3, 25*time.Minute, 76*time.Minute)
		r.SetResync(0)
		check(time.Hour, 3, time.Hour, 2*time.Hour)
		cancel()
		wg.Wait()
	})
}
