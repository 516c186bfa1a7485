package rulesync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// recorder notes when syncs started and what waits were announced, in time
// since its start.
type recorder struct {
	begin time.Time

	mu     sync.Mutex
	syncs  []time.Duration
	waits  []time.Duration // when
	waited []time.Duration // for how long
	took   time.Duration
	err    error
}

func (r *recorder) start(t *testing.T, ctx context.Context) *runner {
	t.Helper()
	r.begin = time.Now()
	run := newRunner(clock.RealClock{}, time.Second, 30*time.Second, time.Hour, func(context.Context) error {
		r.mu.Lock()
		r.syncs = append(r.syncs, time.Since(r.begin))
		r.mu.Unlock()
		time.Sleep(r.took) // fake time: the sync takes that long
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.err
	}, func(left time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waits, r.waited = append(r.waits, time.Since(r.begin)), append(r.waited, left)
	})
	go run.run(ctx)
	synctest.Wait()
	return run
}

func (r *recorder) check(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.syncs, want) {
		t.Errorf("syncs at %v, want %v", r.syncs, want)
	}
}

func bubble(t *testing.T, f func(t *testing.T, ctx context.Context, r *recorder)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		f(t, ctx, &recorder{})
	})
}

const ms = time.Millisecond

func TestABurstIsOneSyncAMinimumPeriodAfterTheLastCompleted(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, r *recorder) {
		r.took = 300 * ms
		run := r.start(t, ctx)
		time.Sleep(5 * time.Second)
		run.request() // nothing ran lately: at once
		time.Sleep(100 * ms)
		for range 10 { // while it runs and while it rests
			run.request()
			time.Sleep(100 * ms)
		}
		time.Sleep(5 * time.Second)
		// Completed at 5.3 s; the next not before 6.3 s.
		r.check(t, 0, 5*time.Second, 6300*ms)
		if len(r.waits) != 1 || r.waits[0] != 5300*ms || r.waited[0] != time.Second {
			t.Errorf("waits announced at %v for %v, want once at 5.3s for 1s", r.waits, r.waited)
		}
	})
}

func TestARequestDuringTheRestWaitsForWhatIsLeftOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, r *recorder) {
		run := r.start(t, ctx)
		time.Sleep(5 * time.Second)
		run.request()
		time.Sleep(400 * ms)
		run.request()
		run.request()
		time.Sleep(5 * time.Second)
		r.check(t, 0, 5*time.Second, 6*time.Second)
		if len(r.waits) != 1 || r.waited[0] != 600*ms {
			t.Errorf("waits for %v, want once for 600ms", r.waited)
		}
	})
}

func TestTheFirstSyncDoesNotMakeTheNextOneWait(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, r *recorder) {
		run := r.start(t, ctx)
		time.Sleep(10 * ms)
		run.request()
		r.check(t, 0, 10*ms)
	})
}

func TestAFailedSyncIsTriedAgainAfterTheRetryPeriodOrWhenAsked(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, r *recorder) {
		r.err = errors.New("no")
		run := r.start(t, ctx)
		time.Sleep(30 * time.Second)
		r.check(t, 0, 30*time.Second)
		time.Sleep(10 * time.Second)
		run.request()
		time.Sleep(10 * ms)
		r.check(t, 0, 30*time.Second, 40*time.Second)
		r.mu.Lock()
		r.err = nil
		r.mu.Unlock()
		time.Sleep(30 * time.Second)
		r.check(t, 0, 30*time.Second, 40*time.Second, 70*time.Second)
		time.Sleep(10 * time.Minute) // it worked: no more retries
		r.check(t, 0, 30*time.Second, 40*time.Second, 70*time.Second)
	})
}

func TestThereIsASyncEveryMaximumPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, r *recorder) {
		r.start(t, ctx)
		time.Sleep(2*time.Hour + time.Minute)
		r.check(t, 0, time.Hour, 2*time.Hour)
	})
}
