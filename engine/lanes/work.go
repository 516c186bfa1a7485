package lanes

import (
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// markSlack is how much later than its effect was seen a step may be told: the kernel
// tells of a commit, and a watch of a write, before the one who made it does.
const markSlack = 20 * time.Millisecond

// written is what the embedded reconciler told of a change until its slice was seen:
// waits in its queue, writes, and how many of them met another writer. All is zero in
// a cluster that is only watched.
type written struct {
	queued, writing time.Duration
	tries           int
	conflicts       int
}

// applied is what a node's embedded rule sync told of a change, from the slice to the
// node's arrival: until it heard of it, until its last sync began, and from then on;
// failed counts syncs that did not succeed. told is false where nobody tells.
type applied struct {
	heard, waited, syncing time.Duration
	failed                 int
	told                   bool
}

// NewWaterfallOf is NewWaterfall with what else the snapshot tells of the hops: the
// steps of the reconciler and of the nodes' rule sync.
func NewWaterfallOf(snap *timeline.Snapshot, svc *timeline.Service, p *timeline.Path, now time.Time) *Waterfall {
	w := NewWaterfall(p, svc.Paths, now)
	w.snap, w.svc = snap, svc
	return w
}

// written adds up what the reconciler told between the origin and the slice.
func (w *Waterfall) written() (d written) {
	p := w.Path
	if p.Slice == nil || w.snap == nil {
		return d
	}
	until := p.Slice.At
	if until.IsZero() {
		until = w.To
	}
	for _, m := range marksIn(w.snap, w.svc, p.Origin.At, until.Add(markSlack)) {
		s, ok := m.Step.(*collect.ReconcileStep)
		if !ok || s.Controller != "endpointslice" {
			continue
		}
		switch s.Step {
		case "started":
			d.queued += s.Took
		case "wrote":
			d.writing += s.Took
			d.tries++
		case "conflict":
			d.conflicts++
			d.tries++
		}
	}
	return d
}

// applied takes apart what a node told of its hop.
func (w *Waterfall) applied(h *timeline.Hop) (d applied) {
	if w.snap == nil {
		return d
	}
	from, until := sliceTime(w.Path), h.At
	if until.IsZero() {
		until = w.To
	}
	var heard, began time.Time
	for _, m := range marksIn(w.snap, w.svc, from.Add(-markSlack), until.Add(markSlack)) {
		s, ok := m.Step.(*collect.SyncStep)
		if !ok || s.Node != h.Plane.Node {
			continue
		}
		switch s.Step {
		case "received":
			if heard.IsZero() {
				heard = m.At
			}
		case "started":
			began = m.At
		case "failed":
			d.failed++
		}
	}
	if heard.IsZero() {
		return d
	}
	d.told, d.heard = true, max(0, heard.Sub(from))
	if began.Before(heard) {
		began = until // none has begun since
	}
	d.waited, d.syncing = began.Sub(heard), max(0, until.Sub(began))
	return d
}

// marksIn are the marks of a Service and those of none in [from, to], by time.
func marksIn(snap *timeline.Snapshot, svc *timeline.Service, from, to time.Time) []timeline.Mark {
	within := func(marks []timeline.Mark) []timeline.Mark {
		i := sort.Search(len(marks), func(i int) bool { return !marks[i].At.Before(from) })
		j := sort.Search(len(marks), func(j int) bool { return marks[j].At.After(to) })
		return marks[i:max(i, j)]
	}
	a, b := within(svc.Marks), within(snap.Marks)
	out := append(append(make([]timeline.Mark, 0, len(a)+len(b)), a...), b...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}
