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
	pad, long := span/10, span/3
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
	// That events begin is no change either where something is told of the time
	// before: the first may be the last line of a log.
	if from := Beginning(snap, svc); !from.IsZero() && !from.Before(snap.First) {
		add(from, from)
	}
	for _, c := range svc.Wanted {
		add(c.At, c.At)
	}
	for i := range svc.Pods {
		for _, c := range svc.Pods[i].Changes {
			if !c.Claimed {
				add(c.At, c.At)
			}
		}
	}
	for _, p := range planesOf(svc) {
		for _, at := range pastMoments(p) {
			add(at, at)
		}
		for i, c := range p.Changes {
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
