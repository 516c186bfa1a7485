package timeline

import (
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// reorder holds events back for a short window, so that what arrived late can
// still be applied in its place.
//
// Objects of kube sources share one etcd, so their resourceVersions are a total
// order: what their watches deliver leaves by it, each source's own order kept.
// All other events (rules, what a list brought, vouches, states) leave by the
// time of their observation, placed among the others by that. An event leaves
// once the window has passed since its At, or earlier when one that must follow
// it has to leave.
type reorder struct {
	window time.Duration
	kube   []*kubeQueue                   // by source
	other  queue[otherEvent]              // by key, then as they came
	keys   map[collect.SourceID]time.Time // of the last event of each other source
}

type kubeQueue struct {
	source collect.SourceID
	queue[collect.Event]
}

type otherEvent struct {
	key time.Time // At, but never before an earlier one of the same source
	e   collect.Event
}

// queue gives its elements from the first on. Its room is used again.
type queue[T any] struct {
	items []T
	taken int // of items
}

func (q *queue[T]) head() *T { return &q.items[q.taken] }

func (q *queue[T]) take() T {
	var none, x T
	x, q.items[q.taken] = q.items[q.taken], none
	switch q.taken++; {
	case q.taken == len(q.items):
		q.items, q.taken = q.items[:0], 0
	case q.taken >= 64 && q.taken > len(q.items)/2:
		n := copy(q.items, q.items[q.taken:])
		clear(q.items[n:])
		q.items, q.taken = q.items[:n], 0
	}
	return x
}

func isKube(s collect.SourceID) bool { return strings.HasPrefix(string(s), "kube/") }

func (r *reorder) push(e collect.Event) {
	if isKube(e.Source) {
		i, ok := slices.BinarySearchFunc(r.kube, e.Source, func(q *kubeQueue, s collect.SourceID) int {
			return strings.Compare(string(q.source), string(s))
		})
		if !ok {
			r.kube = slices.Insert(r.kube, i, &kubeQueue{source: e.Source})
		}
		r.kube[i].items = append(r.kube[i].items, e)
		return
	}
	key := e.At
	if last := r.keys[e.Source]; key.Before(last) {
		key = last
	}
	r.keys[e.Source] = key
	i := len(r.other.items) // most come in order
	for i > r.other.taken && key.Before(r.other.items[i-1].key) {
		i--
	}
	r.other.items = slices.Insert(r.other.items, i, otherEvent{key, e})
}

// pop returns the next event that has to leave by now.
func (r *reorder) pop(now time.Time) (collect.Event, bool) {
	due := now.Add(-r.window)
	var byVersion, byTime *kubeQueue
	anyDue := false // some event that goes by its version has to leave
	for _, q := range r.kube {
		if len(q.items) == 0 {
			continue
		}
		head := q.head()
		isDue := !head.At.After(due)
		switch {
		case versioned(head):
			anyDue = anyDue || isDue
			if byVersion == nil || head.ResourceVersion < byVersion.head().ResourceVersion {
				byVersion = q
			}
		case isDue && (byTime == nil || head.At.Before(byTime.head().At)):
			byTime = q
		}
	}
	if !anyDue {
		byVersion = nil
	}
	otherDue := len(r.other.items) > 0 && !r.other.head().key.After(due)
	q := byVersion
	if byTime != nil && (q == nil || !q.head().At.Before(byTime.head().At)) {
		q = byTime
	}
	switch {
	case q != nil && (!otherDue || !r.other.head().key.Before(q.head().At)):
		return q.take(), true
	case otherDue:
		return r.other.take().e, true
	}
	return collect.Event{}, false
}

// versioned reports that the event's place is given by its resourceVersion.
func versioned(e *collect.Event) bool {
	return e.ResourceVersion != 0 && e.Op != collect.OpListed && e.Op != collect.OpGone
}
