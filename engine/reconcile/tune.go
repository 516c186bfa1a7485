package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
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
	close(r.tune.changed)
	r.tune.changed = make(chan struct{})
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

// resyncs queues every Service as often as SetResync says, until ctx ends.
func (r *Reconciler) resyncs(ctx context.Context, loops ...*loop) {
	for {
		r.tune.mu.Lock()
		every, changed := r.tune.resync, r.tune.changed
		r.tune.mu.Unlock()
		var due <-chan time.Time
		if every > 0 {
			due = r.o.Clock.After(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-due:
			for _, l := range loops {
				l.queueAll()
			}
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
