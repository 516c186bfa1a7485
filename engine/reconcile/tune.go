package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kconverge/kconverge/collect"
)

// tuning is what can be changed while the controllers run.
type tuning struct {
	mu      sync.Mutex
	workers int
	resync  time.Duration // 0: Options.Resync, by the informers
	loops   []*loop
	changed chan struct{}
}

// SetWorkers changes how many workers each controller has, at most MaxWorkers; what
// they work on they finish. n < 1 means Options.Workers. Safe for concurrent use.
func (r *Reconciler) SetWorkers(n int) {
	if n < 1 {
		n = r.o.Workers
	}
	r.tune.mu.Lock()
	defer r.tune.mu.Unlock()
	r.tune.workers = n
	for _, l := range r.tune.loops {
		l.places.set(n)
	}
	r.tune.tell()
}

// tell wakes what waits for a change. The lock is held.
func (t *tuning) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// SetResync changes how often every Service is looked at again, whatever happens;
// 0 means Options.Resync, which goes on beside it. Safe for concurrent use.
func (r *Reconciler) SetResync(every time.Duration) {
	r.tune.mu.Lock()
	defer r.tune.mu.Unlock()
	if r.tune.resync == every {
		return
	}
	r.tune.resync = every
	r.tune.tell()
}

// begin lets the loops be tuned, and applies what was set before.
func (r *Reconciler) begin(loops ...*loop) {
	r.tune.mu.Lock()
	defer r.tune.mu.Unlock()
	r.tune.loops = loops
	for _, l := range loops {
		l.places.set(r.tune.workers)
	}
}

// resyncs queues every Service as often as SetResync says, until ctx ends, and tells
// how the controllers are set whenever that changes. The informers have begun just
// now, and resync by themselves.
func (r *Reconciler) resyncs(ctx context.Context, loops ...*loop) {
	byInformers := r.o.Clock.Now().Add(r.o.Resync)
	var asked time.Duration // what SetResync said
	var due time.Time
	for {
		r.tune.mu.Lock()
		every, workers, changed := r.tune.resync, r.tune.workers, r.tune.changed
		r.tune.mu.Unlock()
		now := r.o.Clock.Now()
		if every != asked {
			asked, due = every, now.Add(every)
		}
		state := &collect.ControllerState{Workers: min(workers, MaxWorkers), Resync: r.o.Resync, NextResync: byInformers}
		if every > 0 {
			state.Resync = min(every, r.o.Resync)
			if due.Before(byInformers) {
				state.NextResync = due
			}
		}
		r.o.Sink.Emit(collect.Event{At: now, Source: collect.SourceReconciler, Payload: state})
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-r.o.Clock.After(state.NextResync.Sub(now)):
		}
		if state.NextResync.Equal(byInformers) {
			byInformers = byInformers.Add(r.o.Resync)
			continue
		}
		due = due.Add(every)
		for _, l := range loops {
			l.queueAll()
		}
	}
}

// queueAll has every Service looked at.
func (l *loop) queueAll() {
	list, err := l.services.List(labels.Everything())
	if err != nil {
		return // a cache in memory
	}
	for _, s := range list {
		l.queue.Add(s.Namespace + "/" + s.Name)
	}
}
