package reconcile

import (
	"slices"
	"sync"
)

// MaxWorkers is how many a controller can have.
const MaxWorkers = 100

// places are those of a controller's workers. Their number can change while they
// work: who has a place keeps it until it is done.
type places struct {
	mu    sync.Mutex
	freed *sync.Cond
	limit int
	busy  int
	taken [MaxWorkers]bool
}

func newPlaces(limit int) *places {
	p := &places{limit: limit}
	p.freed = sync.NewCond(&p.mu)
	return p
}

// set changes how many there are.
func (p *places) set(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(max(limit, 1), MaxWorkers)
	p.freed.Broadcast()
}

// await waits until there is a free one. Only one goroutine takes places, so it is
// still there afterwards, unless their number became smaller.
func (p *places) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.busy >= p.limit {
		p.freed.Wait()
	}
}

// take takes the free one with the lowest number, from 0, and waits for one.
func (p *places) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.busy >= p.limit {
		p.freed.Wait()
	}
	n := 0
	for p.taken[n] {
		n++
	}
	p.taken[n] = true
	p.busy++
	return n
}

func (p *places) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[n] = false
	p.busy--
	p.freed.Broadcast()
}

// perWorker is what each worker has for itself, made when it is first needed. It is
// safe for concurrent use; what it gives belongs to the worker.
type perWorker[T any] struct {
	make func() T

	mu   sync.Mutex
	list []T
}

// of is that of worker n, from 0.
func (p *perWorker[T]) of(n int) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.list) <= n {
		p.list = append(p.list, p.make())
	}
	return p.list[n]
}

// all are those that were made.
func (p *perWorker[T]) all() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}
