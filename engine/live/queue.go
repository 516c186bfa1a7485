package live

import (
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// queue is the bounded buffer between sources and the loop. When it is full the
// event is lost, and the loss is remembered by source so that it can be told as
// a Gap instead of vanishing; a recording, which can wait, waits instead.
type queue struct {
	mu     sync.Mutex
	events []collect.Event
	max    int
	lost   map[collect.SourceID]*collect.Gap
	wake   chan struct{}
	// room is set when whoever puts is to wait for room. It is signalled by
	// take and by close.
	room   *sync.Cond
	closed bool
}

func newQueue(max int, waits bool) *queue {
	q := &queue{max: max, lost: map[collect.SourceID]*collect.Gap{}, wake: make(chan struct{}, 1)}
	if waits {
		q.room = sync.NewCond(&q.mu)
	}
	return q
}

// close lets go whoever waits: nothing is taken any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.room != nil {
		q.room.Broadcast()
	}
}

// put blocks only when the queue is one that waits.
func (q *queue) put(e collect.Event) {
	q.mu.Lock()
	for q.room != nil && len(q.events) >= q.max && !q.closed {
		q.room.Wait()
	}
	if len(q.events) >= q.max {
		g := q.lost[e.Source]
		if g == nil {
			// It stays open: the source knows of no loss and tells nothing
			// again, so what it last said may be wrong from here on.
			g = &collect.Gap{From: e.At, Why: "the program could not keep up; start it anew"}
			q.lost[e.Source] = g
		}
		g.Lost++
	} else {
		q.events = append(q.events, e)
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns everything queued, followed by a Gap for each source that lost
// events since the last take.
func (q *queue) take(buf []collect.Event) (events []collect.Event, lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.events = q.events, buf[:0]
	if q.room != nil {
		q.room.Broadcast()
	}
	for src, g := range q.lost {
		lost += g.Lost
		events = append(events, collect.Event{At: g.From, Source: src, Payload: g})
		delete(q.lost, src)
	}
	return events, lost
}
