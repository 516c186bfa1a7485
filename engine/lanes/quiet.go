package lanes

import (
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
	pad, long := pad(span), long(span)
	var busy []Interval
	add := func(from, until time.Time) {
		x := Interval{from.Add(-pad), until.Add(pad)}
		// Most things happen in bursts: what touches the one before joins it.
		if n := len(busy); n > 0 && !x.From.Before(busy[n-1].From) && !x.From.After(busy[n-1].To) {
			if x.To.After(busy[n-1].To) {
				busy[n-1].To = x.To
			}
			return
		}
		busy = append(busy, x)
	}
	// The picture ends with what is true now.
	add(to, to)
	if !since.IsZero() {
		add(since, since)
	}
	// That events begin is no change either where something is told of the time
	// before: the first may be the last line of a log.
	if from := Beginning(snap, svc); !from.IsZero() && !from.Before(snap.First) && !from.Before(since) {
		add(from, from)
	}
	for i := inForce(len(svc.Wanted), since, func(i int) time.Time { return svc.Wanted[i].At }); i < len(svc.Wanted); i++ {
		add(svc.Wanted[i].At, svc.Wanted[i].At)
	}
	for i := range svc.Pods {
		for _, c := range svc.Pods[i].Changes {
			if !c.Claimed && !c.At.Before(since) {
				add(c.At, c.At)
			}
		}
	}
	for _, p := range planesOf(svc) {
		for _, at := range pastMoments(p) {
			add(at, at)
		}
		for i := inForce(len(p.Changes), since, func(i int) time.Time { return p.Changes[i].At }); i < len(p.Changes); i++ {
			c := &p.Changes[i]
			end := c.At
			if cl := classOf(c); cl.Difference() || cl == InGap {
				end = to
				if i+1 < len(p.Changes) {
					end = p.Changes[i+1].At
				}
			}
			add(c.At, end)
		}
	}
	for _, m := range marksOf(snap, svc, "action") {
		add(m.At, m.At)
	}
	sort.Slice(busy, func(i, j int) bool { return busy[i].From.Before(busy[j].From) })
	var quiet []Interval
	end := busy[0].To
	for _, x := range busy[1:] {
		if x.From.Sub(end) > long {
			quiet = append(quiet, Interval{end, x.From})
		}
		if x.To.After(end) {
			end = x.To
		}
	}
	return quiet
}
