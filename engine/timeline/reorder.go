package timeline

import (
	"container/heap"
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
	kube   []*kubeQueue // by source
	other  otherHeap
	keys   map[collect.SourceID]time.Time // of the last event of each other source
	next   uint64
}

type kubeQueue struct {
	source collect.SourceID
	events []collect.Event
}

type otherEvent struct {
	key time.Time // At, but never before an earlier one of the same source
	n   uint64
	e   collect.Event
}

type otherHeap []otherEvent

func (h otherHeap) Len() int { return len(h) }
func (h otherHeap) Less(i, j int) bool {
	if c := h[i].key.Compare(h[j].key); c != 0 {
		return c < 0
	}
	return h[i].n < h[j].n
}
func (h otherHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *otherHeap) Push(x any)   { *h = append(*h, x.(otherEvent)) }
func (h *otherHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = otherEvent{}
	*h = old[:len(old)-1]
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
		r.kube[i].events = append(r.kube[i].events, e)
		return
	}
	key := e.At
	if last := r.keys[e.Source]; key.Before(last) {
		key = last
	}
	r.keys[e.Source] = key
	r.next++
	heap.Push(&r.other, otherEvent{key: key, n: r.next, e: e})
}

// pop returns the next event that has to leave by now.
func (r *reorder) pop(now time.Time) (collect.Event, bool) {
	due := now.Add(-r.window)
	var byVersion, byTime *kubeQueue
	anyDue := false // some event that goes by its version has to leave
	for _, q := range r.kube {
		if len(q.events) == 0 {
			continue
		}
		head := &q.events[0]
		isDue := !head.At.After(due)
		switch {
		case versioned(head):
			anyDue = anyDue || isDue
			if byVersion == nil || head.ResourceVersion < byVersion.events[0].ResourceVersion {
				byVersion = q
			}
		case isDue && (byTime == nil || head.At.Before(byTime.events[0].At)):
			byTime = q
		}
	}
	if !anyDue {
		byVersion = nil
	}
	otherDue := len(r.other) > 0 && !r.other[0].key.After(due)
	q := byVersion
	if byTime != nil && (q == nil || !q.events[0].At.Before(byTime.events[0].At)) {
		q = byTime
	}
	switch {
	case q != nil && (!otherDue || !r.other[0].key.Before(q.events[0].At)):
		return q.take(), true
	case otherDue:
		return heap.Pop(&r.other).(otherEvent).e, true
	}
	return collect.Event{}, false
}

// versioned reports that the event's place is given by its resourceVersion.
func versioned(e *collect.Event) bool {
	return e.ResourceVersion != 0 && e.Op != collect.OpListed && e.Op != collect.OpGone
}

func (q *kubeQueue) take() collect.Event {
	e := q.events[0]
	q.events[0] = collect.Event{}
	if q.events = q.events[1:]; len(q.events) == 0 {
		q.events = nil
	}
	return e
}
