package ui

import (
	"github.com/kconverge/kconverge/engine/timeline"
)

// shape sums up what the last snapshot looked like, time aside, so that one that only
// moves time need not be drawn at once.
type shape struct {
	sum      uint64
	services []serviceShape
}

// serviceShape is the sum of a Service, which is the same as long as the Service is.
type serviceShape struct {
	of  *timeline.Service
	sum uint64
}

// changes takes a snapshot and tells whether it looks different from the one before.
func (x *shape) changes(s *timeline.Snapshot) bool {
	h := newSum()
	h.add(len(s.Services))
	known := x.services
	if len(known) != len(s.Services) {
		x.services = make([]serviceShape, len(s.Services))
	}
	for i, v := range s.Services {
		if i >= len(known) || known[i].of != v {
			x.services[i] = serviceShape{v, sumOf(v)}
		} else {
			x.services[i] = known[i]
		}
		h.add(int(x.services[i].sum))
	}
	for i := range s.Nodes {
		h.add(int(s.Nodes[i].Generation))
		h.text(string(s.Nodes[i].Rules))
		if s.Nodes[i].Ready {
			h.add(1)
		}
	}
	h.add(len(s.Gaps))
	h.add(len(s.Marks))
	h.add(s.Dropped)
	for i := range s.Sources {
		h.text(string(s.Sources[i].State))
	}
	if s.Watermark.IsZero() {
		h.add(1)
	}
	before := x.sum
	x.sum = uint64(h)
	return x.sum != before
}

func sumOf(v *timeline.Service) uint64 {
	h := newSum()
	h.text(v.Name)
	h.text(string(v.State))
	h.add(len(v.Differences))
	h.add(len(v.Paths))
	h.add(len(v.Wanted))
	h.add(len(v.Episodes))
	h.add(len(v.Marks))
	h.add(len(v.Coverage.Blind) + 1000*len(v.Coverage.Gap))
	for i := range v.Pods {
		h.add(len(v.Pods[i].Changes))
	}
	h.plane(v.Slices)
	h.plane(v.Endpoints)
	stamp := v.Rules.Stamp()
	h.add(int(stamp))
	if stamp == 0 {
		for _, p := range v.Rules.All() {
			h.plane(p)
		}
	}
	return uint64(h)
}

// sum is an FNV-1a sum.
type sum uint64

func newSum() sum { return 14695981039346656037 }

func (h *sum) add(n int) { *h = (*h ^ sum(n)) * 1099511628211 }

func (h *sum) text(t string) {
	for i := 0; i < len(t); i++ {
		h.add(int(t[i]))
	}
}

func (h *sum) plane(p *timeline.Plane) {
	if p == nil {
		return
	}
	h.add(len(p.Changes))
	if n := len(p.Changes); n > 0 {
		c := &p.Changes[n-1]
		h.add(int(c.At.UnixNano()))
		h.add(c.Have)
		h.add(c.Missing + 1000*c.Stale)
	}
	if p.Past != nil {
		h.add(len(p.Past.Changes))
		h.add(int(p.Past.Changes[len(p.Past.Changes)-1].At.UnixNano()))
	}
}
