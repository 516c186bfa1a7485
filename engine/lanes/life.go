package lanes

import (
	"fmt"
	"sort"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// probeBars tell of the probes that failed before a pod was ready. They have no
// place on the axis: the kubelet's clock is another one.
func (w *Waterfall) probeBars() []Bar {
	var out []Bar
	at := w.Path.Origin.At
	for _, b := range w.Path.Before.Probes {
		times := "once"
		if b.Count > 1 {
			times = fmt.Sprintf("%d times", b.Count)
		}
		note := times + ", claimed " + b.First.UTC().Format(time.TimeOnly)
		if b.Last.After(b.First) {
			note += " to " + b.Last.UTC().Format(time.TimeOnly)
		}
		note += " UTC"
		if b.Message != "" {
			note += ": " + b.Message
		}
		out = append(out, Bar{Label: b.Kind + " failed", Depth: 1, Kind: BarClaimed, From: at, To: at, Share: -1, Note: note})
	}
	return out
}

// afterBars tell how a removed pod ended, in the order of time, each from the one
// before; when the last node let go is among them. Moments that were not observed
// are left out.
func (w *Waterfall) afterBars() []Bar {
	p := w.Path
	type end struct {
		label string
		at    time.Time
		loose bool
	}
	var list []end
	add := func(label string, m timeline.Moment) {
		if !m.At.IsZero() && !m.At.Before(p.Origin.At) {
			list = append(list, end{label, m.At, !m.NotBefore.IsZero() && m.At.Sub(m.NotBefore) >= looseFrom})
		}
	}
	a := &p.After
	add("stopped", a.Stopped)
	add("terminal", a.Terminal)
	add("out of slices", a.Unpublished)
	add("gone", a.Gone)
	if len(list) == 0 {
		return nil
	}
	if len(p.Rules) > 1 && !w.Open {
		add("out of rules", timeline.Moment{At: latest(p.Rules)})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].at.Before(list[j].at) })
	var out []Bar
	prev := p.Origin.At
	for _, m := range list {
		out = append(out, Bar{Label: m.label, Depth: 1, Kind: BarAfter, From: prev, To: m.at, Took: m.at.Sub(prev), Share: -1, AtMost: m.loose})
		prev = m.at
	}
	return out
}

// latest is the last arrival, zero without one.
func latest(hops []timeline.Hop) time.Time {
	var t time.Time
	for i := range hops {
		if hops[i].At.After(t) {
			t = hops[i].At
		}
	}
	return t
}
