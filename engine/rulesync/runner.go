package rulesync

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// runner decides when to sync, as kube-proxy's BoundedFrequencyRunner does: at
// least min after the last sync completed, within retry after one that failed,
// and at least every max. Requests in between merge into one.
type runner struct {
	sync            func(context.Context) error
	min, retry, max time.Duration
	clock           clock.WithTicker
	// waiting is told, once for each sync that is asked for and must wait,
	// for how long.
	waiting func(time.Duration)

	kick chan struct{}

	mu        sync.Mutex
	notBefore time.Time // the next sync may not start earlier
	syncing   bool
	told      bool // waiting was called for the next sync
}

func newRunner(c clock.WithTicker, min, retry, max time.Duration, sync func(context.Context) error, waiting func(time.Duration)) *runner {
	return &runner{sync: sync, min: min, retry: retry, max: max, clock: c, waiting: waiting, kick: make(chan struct{}, 1)}
}

// request asks for a sync as soon as one is due. It never blocks.
func (r *runner) request() {
	r.mu.Lock()
	// Looked at before the loop can answer the request, else what is left could
	// be that of the next rest.
	var left time.Duration
	if !r.syncing && !r.told {
		left = r.notBefore.Sub(r.clock.Now())
		r.told = left > 0
	}
	select {
	case r.kick <- struct{}{}:
	default:
	}
	r.mu.Unlock()
	if left > 0 {
		r.waiting(left)
	}
}

// run syncs at once and then as asked, until ctx ends. A change right after the
// first sync need not wait: that sync is not the loop's own in kube-proxy
// either, but called when the initial lists are complete.
func (r *runner) run(ctx context.Context) {
	next := r.clock.NewTimer(r.after(r.sync(ctx)))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C():
		case <-r.kick:
		}
		if ctx.Err() != nil {
			return
		}
		next.Stop()
		r.begin()
		err := r.sync(ctx)
		pause := r.clock.NewTimer(r.min)
		r.end()
		next.Reset(r.after(err))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C():
		}
	}
}

// after is when to run again without being asked.
func (r *runner) after(err error) time.Duration {
	if err != nil {
		return min(r.retry, r.max)
	}
	return r.max
}

func (r *runner) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncing, r.told = true, false
}

func (r *runner) end() {
	r.mu.Lock()
	r.syncing = false
	r.notBefore = r.clock.Now().Add(r.min)
	// Asked for while the sync ran: the wait begins now.
	r.told = len(r.kick) > 0
	tell := r.told
	r.mu.Unlock()
	if tell {
		r.waiting(r.min)
	}
}
