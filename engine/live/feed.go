package live

import (
	"sync"

	"github.com/kconverge/kconverge/engine/timeline"
)

// feed hands the latest snapshot to whoever wants it. It is safe for concurrent use.
type feed struct {
	mu     sync.Mutex
	latest *timeline.Snapshot
	subs   map[chan *timeline.Snapshot]struct{}
	done   bool
}

func newFeed() *feed { return &feed{subs: map[chan *timeline.Snapshot]struct{}{}} }

func (f *feed) publish(s *timeline.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = s
	for c := range f.subs {
		select {
		case c <- s:
			continue
		default:
		}
		// The reader is behind: replace what it has not taken. Nobody else
		// sends on c, so the second send cannot block.
		select {
		case <-c:
		default:
		}
		c <- s
	}
}

func (f *feed) last() *timeline.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// close ends every subscription, after its last snapshot.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	for c := range f.subs {
		close(c)
		delete(f.subs, c)
	}
}

func (f *feed) subscribe() (<-chan *timeline.Snapshot, func()) {
	c := make(chan *timeline.Snapshot, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest != nil {
		c <- f.latest
	}
	if f.done {
		close(c)
		return c, func() {}
	}
	f.subs[c] = struct{}{}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, ok := f.subs[c]; ok {
			delete(f.subs, c)
			close(c)
		}
	}
}
