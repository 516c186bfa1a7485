package reconcile

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// order is the waiting line of a work queue (workqueue.Queue): first in, first
// out. It knows since when a key waits and how many changes were merged into
// it. The work queue calls it under its own lock.
type order struct {
	clock  clock.PassiveClock
	queued func(key string, depth int)

	keys []string

	mu    sync.Mutex
	since map[string]waiting
}

// waiting is one key's stay in the line.
type waiting struct {
	from    time.Time
	changes int
}

// Touch implements workqueue.Queue: a waiting key was asked for again.
func (o *order) Touch(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.since[key]
	w.changes++
	o.since[key] = w
}

// Push implements workqueue.Queue. A key that was asked for while it was worked
// on arrives here when that is done.
func (o *order) Push(key string) {
	o.mu.Lock()
	o.since[key] = waiting{from: o.clock.Now(), changes: 1}
	o.mu.Unlock()
	o.keys = append(o.keys, key)
	o.queued(key, len(o.keys))
}

// Len implements workqueue.Queue.
func (o *order) Len() int { return len(o.keys) }

// Pop implements workqueue.Queue.
func (o *order) Pop() string {
	key := o.keys[0]
	o.keys[0] = ""
	o.keys = o.keys[1:]
	return key
}

// take ends a key's stay. Only the worker that got the key calls it, and the
// key cannot be pushed again before that worker is done with it.
func (o *order) take(key string) waiting {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.since[key]
	delete(o.since, key)
	return w
}
