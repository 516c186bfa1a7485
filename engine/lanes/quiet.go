package lanes

import (
	"slices"
	"sort"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Quiet finds the long stretches before to in which nothing about the Service
// changed and nothing differed, or is claimed to have changed. span is how much time the picture shows: a
// stretch is long when it is a third of it, and a tenth is kept on either side
// of whatever happened.
func Quiet(snap *timeline.Snapshot, svc *timeline.Service, to time.Time, span time.Duration) []Interval {
	return quietSince(snap, svc, to, span, time.Time{})
}

// foldedScale is the scale of a picture that leaves quiet time out. A long history
// reaches far beyond the left edge, so the latest part of it is tried first: a part
// that holds all that the scale shows makes the same scale as the whole.
func foldedScale(snap *timeline.Snapshot, svc *timeline.Service, o Options) *Scale {
	span := o.Cell * time.Duration(max(o.Cols, 1))
	for _, back := range []time.Duration{4 * span, 64 * span} {
		since := o.To.Add(-back)
		if since.Before(snap.First) {
			break
		}
		s := NewScale(o.To, o.Cell, o.Cols, quietSince(snap, svc, o.To, span, since))
		// What happened earlier reaches until since+pad. A stretch from there on may be
		// longer in truth, and so be folded, or more of it: when the scale begins well
		// within one, it cannot be told which.
		if s.From().After(since.Add(pad(span) + max(long(span), (FoldCols+1)*o.Cell) + o.Cell)) {
			return s
		}
	}
	return NewScale(o.To, o.Cell, o.Cols, Quiet(snap, svc, o.To, span))
}

// pad is how much time is kept on either side of what happened.
func pad(span time.Duration) time.Duration { return span / 10 }

// long is what a stretch that is left out takes at least.
func long(span time.Duration) time.Duration { return span / 3 }

// quietSince is Quiet of what happened at since or later; zero means all. As far as it
// tells of earlier time it may be wrong.
func quietSince(snap *timeline.Snapshot, svc *timeline.Service, to time.Time, span time.Duration, since time.Time) []Interval {
	b := busy{pad: pad(span), long: long(span)}
	// The picture ends with what is true now.
	b.add(to, to)
	if !since.IsZero() {
		b.add(since, since)
	}
	// That events begin is no change either where something is told of the time
	// before: the first may be the last line of a log.
	if from := Beginning(snap, svc); !from.IsZero() && !from.Before(snap.First) && !from.Before(since) {
		b.add(from, from)
	}
	for i := inForce(len(svc.Wanted), since, func(i int) time.Time { return svc.Wanted[i].At }); i < len(svc.Wanted); i++ {
		b.add(svc.Wanted[i].At, svc.Wanted[i].At)
	}
	for i := range svc.Pods {
		list := svc.Pods[i].Changes
		for k := len(list) - 1; k >= 0 && !list[k].At.Before(since); k-- {
			if !list[k].Claimed {
				b.add(list[k].At, list[k].At)
			}
		}
	}
	for _, p := range planesOf(svc) {
		for _, at := range pastMoments(p) {
			b.add(at, at)
		}
		b.changes(p.Changes[inForce(len(p.Changes), since, func(i int) time.Time { return p.Changes[i].At }):], to)
	}
	for _, marks := range [][]timeline.Mark{svc.Marks, snap.Marks} {
		for i := len(marks) - 1; i >= 0 && !marks[i].At.Before(since); i-- {
			if marks[i].Kind == "action" {
				b.add(marks[i].At, marks[i].At)
			}
		}
	}
	return b.quiet()
}

// busy is the time in which something happens, with pad on either side of it. Stretches
// with no more than long between them are one.
type busy struct {
	pad, long time.Duration
	list      []Interval // by time
}

// add takes a stretch in and gives the one that it is a part of then.
func (b *busy) add(from, until time.Time) Interval {
	x := Interval{from.Add(-b.pad), until.Add(b.pad)}
	least := x.From.Add(-b.long)
	// Those from i on, and before j, are one with it.
	i := sort.Search(len(b.list), func(i int) bool { return !b.list[i].To.Before(least) })
	j := i
	for most := x.To.Add(b.long); j < len(b.list) && !b.list[j].From.After(most); j++ {
		if b.list[j].From.Before(x.From) {
			x.From = b.list[j].From
		}
		if b.list[j].To.After(x.To) {
			x.To = b.list[j].To
		}
	}
	if j == i+1 {
		b.list[i] = x
		return x
	}
	b.list = slices.Replace(b.list, i, j, x)
	return x
}

// changes adds those of a plane as of to, and how long they differ or are not known.
// Most fall into what is busy already, by the plane before or the change before: they
// are not looked at one by one.
func (b *busy) changes(list []timeline.PlaneChange, to time.Time) {
	for i := 0; i < len(list); {
		c := &list[i]
		end := c.At
		if cl := classOf(c); cl.Difference() || cl == InGap {
			if i+1 < len(list) {
				end = list[i+1].At
			} else if to.After(end) {
				end = to
			}
		}
		in := b.add(c.At, end)
		later := after(list[i+1:], in.To.Add(-b.pad))
		// The last one within it may reach beyond it.
		i += max(1, later)
	}
}

// after is how many of a plane's changes come before or at a moment, which is likely to
// be near the first of them.
func after(list []timeline.PlaneChange, t time.Time) int {
	most := 1
	for most < len(list) && !list[most-1].At.After(t) {
		most *= 2
	}
	most = min(most, len(list))
	return sort.Search(most, func(i int) bool { return list[i].At.After(t) })
}

// quiet is what is not busy, between the first of it and the last.
func (b *busy) quiet() []Interval {
	var out []Interval
	for i := 1; i < len(b.list); i++ {
		out = append(out, Interval{b.list[i-1].To, b.list[i].From})
	}
	return out
}
