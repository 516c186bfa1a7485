package lanes

import (
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// markSlack is how much later than its effect was seen a step may be told: the kernel
// tells of a commit, and a watch of a write, before the one who made it does.
const markSlack = 20 * time.Millisecond

// written is what the embedded reconciler told of a change until its slice was seen:
// waits in its queue, writes, how many syncs met another writer or failed otherwise, and
// how long it was until they were tried again. All is zero in a cluster that is only
// watched.
type written struct {
	began              bool // a wait in the queue was told of
	queued, writing    time.Duration
	tries              int
	conflicts, retries int
	again              time.Duration
}

// applied is what a node's embedded rule sync told of a change, from the slice to the
// node's arrival: until it heard of it, until its last sync began, and from then on.
// behind is the part of waited in which the sync ran that had begun before it heard.
// failed counts syncs that did not succeed. told is false where nobody tells.
type applied struct {
	heard, waited, behind, syncing time.Duration
	failed                         int
	told                           bool
}

// NewWaterfallOf is NewWaterfall with what else the snapshot tells of the hops: the
// steps of the reconciler and of the nodes' rule sync.
func NewWaterfallOf(snap *timeline.Snapshot, svc *timeline.Service, p *timeline.Path, now time.Time) *Waterfall {
	w := NewWaterfall(p, svc.Paths, now)
	w.snap, w.svc = snap, svc
	w.marks = marksIn(snap, svc, p.Origin.At.Add(-markSlack), w.To.Add(markSlack))
	for i := range w.Bars {
		switch b := &w.Bars[i]; {
		case b.Kind == BarOpen || b.Status != timeline.StatusArrived:
		case b.Label == "slice" && b.Depth == 0:
			if t := w.written().note(); t != "" {
				b.Note = t
			}
		case b.Node != "":
			if t := w.applied(hopOf(p, b.Node)).note(); t != "" {
				if b.Note == lastNode {
					t += "  " + lastNode
				}
				b.Note = t
			}
		}
	}
	return w
}

// note is what the reconciler did, in few words: "queue 3 ms, write 6 ms, 1 try".
func (d written) note() string {
	if d.tries == 0 {
		return ""
	}
	tries := "1 try"
	if d.tries > 1 {
		tries = strconv.Itoa(d.tries) + " tries"
	}
	if d.again >= 10*time.Millisecond {
		tries += " with " + Duration(d.again) + " between"
	}
	t := "write " + Duration(d.writing) + ", " + tries
	if d.began {
		t = "queue " + Duration(d.queued) + ", " + t
	}
	return t
}

// note is what the node did, as far as it took time: "heard after 0.40 s, waited 0.20 s,
// sync 50 ms".
func (d applied) note() string {
	if !d.told {
		return ""
	}
	t := ""
	if d.heard >= 10*time.Millisecond {
		t += "heard after " + Duration(d.heard) + ", "
	}
	if d.waited >= 10*time.Millisecond {
		t += "waited " + Duration(d.waited)
		if d.behind >= 10*time.Millisecond {
			t += " (" + Duration(d.behind) + " for the sync before)"
		}
		t += ", "
	}
	if d.failed > 0 {
		t += strconv.Itoa(d.failed) + " failed, "
	}
	return t + "sync " + Duration(d.syncing)
}

// written adds up what the reconciler told between the origin and the slice.
func (w *Waterfall) written() (d written) {
	p := w.Path
	if p.Slice == nil {
		return d
	}
	until := p.Slice.At
	if until.IsZero() {
		until = w.To
	}
	marks := w.marksFrom(p.Origin.At, until.Add(markSlack))
	marks = marks[:lastWrite(marks, until)]
	// Of what had begun before the change only the rest is a part of it.
	since := func(at time.Time, took time.Duration) time.Duration { return min(took, at.Sub(p.Origin.At)) }
	var failed time.Time // when the last sync failed that was not tried again yet
	for i, m := range marks {
		s, ok := m.Step.(*collect.ReconcileStep)
		if !ok || s.Controller != "endpointslice" {
			continue
		}
		switch s.Step {
		case "started":
			d.queued, d.began = d.queued+since(m.At, s.Took), true
			if !failed.IsZero() {
				d.again += max(0, m.At.Sub(failed)-s.Took)
				failed = time.Time{}
			}
		case "wrote":
			if i < len(marks)-1 && m.At.Add(-s.Took).Before(p.Origin.At) {
				continue // it had begun before, and wrote nothing of the change
			}
			d.writing += since(m.At, s.Took)
			d.tries++
		case "conflict":
			d.conflicts++
			d.tries++
			failed = m.At
		case "retry", "dropped":
			d.retries++
			d.tries++
			failed = m.At
		}
	}
	if !failed.IsZero() && until.After(failed) {
		d.again += until.Sub(failed)
	}
	return d
}

// lastWrite is how many of the marks lead to the write that was seen at about t; what
// follows it is of another change.
func lastWrite(marks []timeline.Mark, t time.Time) int {
	n, nearest := len(marks), time.Duration(-1)
	for i, m := range marks {
		s, ok := m.Step.(*collect.ReconcileStep)
		if !ok || s.Controller != "endpointslice" || s.Step != "wrote" {
			continue
		}
		if d := m.At.Sub(t).Abs(); nearest < 0 || d < nearest {
			n, nearest = i+1, d
		}
	}
	return n
}

// applied takes apart what a node told of its hop.
func (w *Waterfall) applied(h *timeline.Hop) (d applied) {
	if h == nil {
		return d
	}
	from, until := sliceTime(w.Path), h.At
	if until.IsZero() {
		until = w.To
	}
	var heard, began, freed time.Time // freed: when the sync ended that ran when it heard
	running := false
	for _, m := range w.marksFrom(from.Add(-markSlack), until.Add(markSlack)) {
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
			running = heard.IsZero()
		case "committed", "failed":
			if s.Step == "failed" {
				d.failed++
			}
			// One that began before the first of these steps tells how long it took.
			if running = running || m.At.Add(-s.Took).Before(heard); running && freed.IsZero() && !heard.IsZero() {
				freed = m.At
			}
			running = false
		}
	}
	if heard.IsZero() {
		return d
	}
	d.told, d.heard = true, max(0, heard.Sub(from))
	if began.Before(heard) {
		began = until // none has begun since
	}
	if heard.Before(from) {
		heard = from // it may hear of the slice before it is seen here
	}
	d.waited, d.syncing = max(0, began.Sub(heard)), max(0, until.Sub(began))
	if freed.IsZero() && running {
		freed = began
	}
	if !freed.IsZero() {
		d.behind = min(freed.Sub(heard), d.waited)
	}
	return d
}

// marksFrom are those of the change in [from, to].
func (w *Waterfall) marksFrom(from, to time.Time) []timeline.Mark { return within(w.marks, from, to) }

func within(marks []timeline.Mark, from, to time.Time) []timeline.Mark {
	i := sort.Search(len(marks), func(i int) bool { return !marks[i].At.Before(from) })
	j := sort.Search(len(marks), func(j int) bool { return marks[j].At.After(to) })
	return marks[i:max(i, j)]
}

// marksIn are the marks of a Service and those of none in [from, to], by time.
func marksIn(snap *timeline.Snapshot, svc *timeline.Service, from, to time.Time) []timeline.Mark {
	a, b := within(svc.Marks, from, to), within(snap.Marks, from, to)
	out := append(append(make([]timeline.Mark, 0, len(a)+len(b)), a...), b...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}
