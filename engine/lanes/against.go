package lanes

import (
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Against is how long a bar's hop took in another change. It is false where that one did
// something else to its endpoint, has no such hop, or has not got there.
func (w *Waterfall) Against(b *Bar, q *timeline.Path) (time.Duration, bool) {
	if b.same == nil || q.Op != w.Path.Op {
		return 0, false
	}
	return b.same(q)
}

// AgainstText says by how much this change took longer than another one, or less, and
// which hop on the way made the most of it.
func (w *Waterfall) AgainstText(q *timeline.Path, loc *time.Location) string {
	what := PathName(q) + " of " + q.Origin.At.In(loc).Format("15:04:05")
	whole, ok := w.whole(q)
	if !ok || w.Path.Status == timeline.StatusSuperseded {
		return "Beside " + what + ", which did not go the same way to its end: compare hop by hop."
	}
	more := w.Total - whole
	t := "As long as " + what
	switch {
	case more > 0:
		t = Duration(more) + " longer than " + what
	case more < 0:
		t = Duration(-more) + " less than " + what
	}
	if w.Open {
		t += " so far"
	}
	var most *Bar
	var by time.Duration
	for i := range w.Bars {
		b := &w.Bars[i]
		then, ok := w.Against(b, q)
		if b.Depth > 0 || b.Kind == BarAfter || !ok {
			continue
		}
		if d := b.Took - then; most == nil || d*sign(more) > by*sign(more) {
			most, by = b, d
		}
	}
	if most == nil || by*sign(more) <= 0 {
		return t + "."
	}
	plus := "+"
	if by < 0 {
		plus, by = "-", -by
	}
	return t + ":  " + plus + Duration(by) + " " + most.Label + "."
}

func sign(d time.Duration) time.Duration {
	if d < 0 {
		return -1
	}
	return 1
}

// whole is how long another change took, from the same start on to the last node.
func (w *Waterfall) whole(q *timeline.Path) (time.Duration, bool) {
	from := chain(q)[0]
	if q.Op != w.Path.Op || q.Status != timeline.StatusArrived || from.label != w.Start || len(q.Rules) == 0 != (len(w.Path.Rules) == 0) {
		return 0, false
	}
	return q.End().Sub(from.at), true
}
