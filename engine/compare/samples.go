package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Sample is how long one hop took once.
type Sample struct {
	D time.Duration
	// AtLeast: it had not ended; D is its age.
	AtLeast bool
	// Error is how far D may be off, the width of an interval in which it ended
	// included.
	Error time.Duration
}

// Hop names what is measured, from what to what. Of a path's hops add and remove are
// apart.
type Hop string

// hops are in the order in which they happen.
var hops = []Hop{
	"created to scheduled", "scheduled to started", "started to ready",
	"add: ready to slice", "add: ready to Endpoints", "add: slice to rules, each node", "add: slice to rules, last node", "add: all",
	"remove: gone to slice", "remove: gone to Endpoints", "remove: slice to rules, each node", "remove: slice to rules, last node", "remove: all",
}

// Samples are what a snapshot has of each hop. LeftOut counts hops that were taken back
// or had nothing to do.
type Samples struct {
	Of      map[Hop][]Sample
	LeftOut map[Hop]int
}

// unit is what counts once.
type unit struct {
	hop            Hop
	service, where string
	at             time.Time
	open           bool
}

// collector gathers the longest sample of each unit.
type collector struct {
	by   map[unit]Sample
	out  Samples
	asOf time.Time
	pods map[string]bool // whose lives were counted
}

// SamplesOf takes the hops of the Services that keep chooses (nil: all) from a
// snapshot. It should retain everything: what retention took away is not there.
func SamplesOf(s *timeline.Snapshot, keep func(*timeline.Service) bool) Samples {
	c := collector{by: map[unit]Sample{}, out: Samples{map[Hop][]Sample{}, map[Hop]int{}}, asOf: s.Watermark, pods: map[string]bool{}}
	for _, svc := range s.Services {
		if keep != nil && !keep(svc) {
			continue
		}
		for _, p := range svc.Paths {
			c.path(svc.Namespace+"/"+svc.Name, p)
		}
	}
	for u, x := range c.by {
		c.out.Of[u.hop] = append(c.out.Of[u.hop], x)
	}
	for _, list := range c.out.Of {
		slices.SortFunc(list, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.D, b.D), cmp.Compare(a.Error, b.Error)) })
	}
	return c.out
}

func (c *collector) take(u unit, x Sample) {
	if was, ok := c.by[u]; !ok || x.D > was.D {
		c.by[u] = x
	}
}

func (c *collector) path(service string, p *timeline.Path) {
	var op string
	switch p.Op {
	case timeline.OpAdd:
		op = "add: "
		c.life(p)
	case timeline.OpRemove:
		op = "remove: "
	default:
		return // the Service itself
	}
	from := map[string]string{"add: ": "ready", "remove: ": "gone"}[op]
	if p.Slice != nil {
		c.hop(Hop(op+from+" to slice"), service, p.Slice, p.Origin.At, p.Slice.Lag)
	}
	if p.Endpoints != nil {
		c.hop(Hop(op+from+" to Endpoints"), service, p.Endpoints, p.Origin.At, p.Endpoints.Lag)
	}
	c.rules(op, service, p)
}

// hop takes one plane's part of a path, which began at from.
func (c *collector) hop(name Hop, service string, h *timeline.Hop, from time.Time, took time.Duration) {
	switch h.Status {
	case timeline.StatusArrived:
		c.take(unit{hop: name, service: service, where: h.Plane.Node, at: h.At}, Sample{D: took, Error: h.Error + h.Width()})
	case timeline.StatusOpen:
		if age := c.asOf.Sub(from); age > 0 {
			c.take(unit{hop: name, service: service, where: h.Plane.Node, at: from, open: true}, Sample{D: age, AtLeast: true, Error: h.Error})
		}
	default:
		c.out.LeftOut[name]++
	}
}

// rules takes what each node did, and when the last one had.
func (c *collector) rules(op, service string, p *timeline.Path) {
	each, last, all := Hop(op+"slice to rules, each node"), Hop(op+"slice to rules, last node"), Hop(op+"all")
	var longest, whole Sample
	counted, at := 0, time.Time{}
	for i := range p.Rules {
		h := &p.Rules[i]
		c.hop(each, service, h, h.Step, h.FromStep)
		var x, w Sample
		switch h.Status {
		case timeline.StatusArrived:
			x, w = Sample{D: h.FromStep, Error: h.Error + h.Width()}, Sample{D: h.Lag, Error: h.Error + h.Width()}
		case timeline.StatusOpen:
			x, w = Sample{D: c.asOf.Sub(h.Step), AtLeast: true, Error: h.Error}, Sample{D: c.asOf.Sub(p.Origin.At), AtLeast: true, Error: h.Error}
		default:
			continue
		}
		if counted == 0 {
			at = h.Step // the slice's write, for all nodes
		}
		counted++
		longest, whole = longer(longest, x, counted == 1), longer(whole, w, counted == 1)
	}
	switch {
	case counted < len(p.Rules) || counted == 0:
		if len(p.Rules) > 0 {
			c.out.LeftOut[last]++
			c.out.LeftOut[all]++
		}
	case longest.AtLeast && longest.D <= 0:
	default:
		c.take(unit{hop: last, service: service, at: at, open: longest.AtLeast}, longest)
		c.take(unit{hop: all, service: service, at: at, open: whole.AtLeast}, whole)
	}
}

// longer is the longest of several, which is at least that when one has not ended.
func longer(a, b Sample, first bool) Sample {
	if first {
		return b
	}
	return Sample{D: max(a.D, b.D), AtLeast: a.AtLeast || b.AtLeast, Error: max(a.Error, b.Error)}
}

// life takes how the pod came to be ready, once a pod and only what was observed.
func (c *collector) life(p *timeline.Path) {
	if p.Cause != timeline.CausePodReady || p.Endpoint.UID == "" || c.pods[p.Endpoint.UID] {
		return
	}
	c.pods[p.Endpoint.UID] = true
	b := &p.Before
	for _, x := range []struct {
		hop      Hop
		from, to timeline.Moment
	}{{hops[0], b.Created, b.Scheduled}, {hops[1], b.Scheduled, b.Started}, {hops[2], b.Started, b.Ready}} {
		if x.from.At.IsZero() || x.to.At.IsZero() {
			continue
		}
		c.take(unit{hop: x.hop, where: p.Endpoint.UID}, Sample{D: x.to.At.Sub(x.from.At), Error: width(x.from) + width(x.to)})
	}
}

// width is how long the interval is in which a moment was.
func width(m timeline.Moment) time.Duration {
	if m.NotBefore.IsZero() || !m.NotBefore.Before(m.At) {
		return 0
	}
	return m.At.Sub(m.NotBefore)
}
