package lanes

import (
	"slices"
	"sort"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// measure is how long something took in a change; ok is false where it was not, or is
// not known.
type measure func(*timeline.Path) (d time.Duration, ok bool)

// likewise are those of the latest of a Service's paths, other than p, that did the
// same to an endpoint.
func likewise(p *timeline.Path, paths []*timeline.Path) []*timeline.Path {
	if len(paths) > usualOf {
		paths = paths[len(paths)-usualOf:]
	}
	out := make([]*timeline.Path, 0, len(paths))
	for _, q := range paths {
		if q != p && q.Op == p.Op {
			out = append(out, q)
		}
	}
	return out
}

// hopOf is a path's hop on a node, or nil.
func hopOf(p *timeline.Path, node string) *timeline.Hop {
	i, ok := slices.BinarySearchFunc(p.Rules, node, func(h timeline.Hop, node string) int {
		switch {
		case h.Plane.Node < node:
			return -1
		case h.Plane.Node > node:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &p.Rules[i]
}

// sample is a measure over all others, the shortest first.
func (w *Waterfall) sample(m measure) []time.Duration {
	var ds []time.Duration
	for _, q := range w.others {
		if d, ok := m(q); ok {
			ds = append(ds, d)
		}
	}
	slices.Sort(ds)
	return ds
}

// usual gives a bar the median of a measure over the others.
func (w *Waterfall) usual(b *Bar, m measure) {
	b.same = m
	if ds := w.sample(m); len(ds) > 0 {
		b.Usual, b.UsualN = ds[len(ds)/2], len(ds)
	}
}

// Spread is how long one hop took in this change and in the others of a Service that
// did the same.
type Spread struct {
	Label string
	// This is how long it took in this change; at least so long while it is Open,
	// at most so long if AtMost.
	This         time.Duration
	Open, AtMost bool
	// Others are how long it took in the others, the shortest first.
	Others []time.Duration
}

// spreadFrom is how many others a distribution needs.
const spreadFrom = 3

// Spread compares the hop of a bar; ok is false when there is too little to compare.
func (w *Waterfall) Spread(b *Bar) (s Spread, ok bool) {
	if b.same == nil || b.Kind == BarUnknown {
		return s, false
	}
	s = Spread{Label: b.Label, This: b.Took, Open: b.Kind == BarOpen, AtMost: b.AtMost, Others: w.sample(b.same)}
	if h := hopOf(w.Path, b.Node); b.Node != "" && h != nil && h.Status == timeline.StatusArrived {
		s.This = h.FromStep // as it is of the others
	}
	return s, len(s.Others) >= spreadFrom
}

// Median of the others; there must be some.
func (s *Spread) Median() time.Duration { return s.Others[len(s.Others)/2] }

// Longest of all, this change among them.
func (s *Spread) Longest() time.Duration { return max(s.This, s.Others[len(s.Others)-1]) }

// Faster is how many of the others took less than this change.
func (s *Spread) Faster() int {
	return sort.Search(len(s.Others), func(i int) bool { return s.Others[i] >= s.This })
}

// Levels is how many of the others fall into each of cols columns, from 0, none, to
// levels for the most; col gives the column of a time. The others are in it, this
// change is not.
func (s *Spread) Levels(cols, levels int, col func(time.Duration) int) []int {
	out := make([]int, max(cols, 1))
	most := 0
	for _, d := range s.Others {
		c := max(0, min(cols-1, col(d)))
		out[c]++
		most = max(most, out[c])
	}
	for i, n := range out {
		if n > 0 {
			out[i] = max(1, (n*levels+most/2)/most)
		}
	}
	return out
}
