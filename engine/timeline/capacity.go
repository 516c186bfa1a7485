package timeline

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Capacity is the least that the nodes could send new connections to during a
// window. It is of the nodes' rules: what a load balancer in front, or a client
// that stays with its connection, does is not in it. A Service of two families
// is looked at in each, since a connection is of one; the lower counts.
//
// An endpoint can answer while its pod has a container that runs: routed to and
// not ended (Stopped, terminal phase or gone, when the API told of it). One that
// is not ready, or terminates, counts: that it answers no more is not to be seen.
//
// A node that by a Local policy has nothing to route to is left out for that
// time, and so is every node while its rules are not known (Unseen names those).
// A policy of external traffic is not told apart: what counts is all that the
// node's rules lead to for the Service.
type Capacity struct {
	// Answering is where and when the endpoints that were routed to and could
	// answer were fewest, Routed where and when those routed to were. Nil when
	// no node's rules were known.
	Answering, Routed *Low
	// Short is where and when most of the endpoints that a node should have
	// routed to could not answer there; nil when none ever lacked.
	Short *Low
	// Unseen are the nodes whose rules were not known all the time.
	Unseen []string
}

// Low is the lowest point of a window: among equals the one that lacks most,
// then the longest, then the first, then by node.
type Low struct {
	Node   string
	Family collect.Family
	At     time.Time
	// For is how long it stayed at all that it says, within the window.
	For time.Duration
	// Answering are the endpoints that were routed to and could answer, Routed
	// those routed to, and Wanted those that the node should have routed to by
	// the slices of that moment.
	Answering, Routed, Wanted int
	// WantedByPods is how many the pods wanted of the Service as a whole at
	// that moment (Service.Wanted); -1 for a Service of two families.
	WantedByPods int
	// Error is how far the node's moments of the window may be off, either
	// way: a low that is shorter may be none.
	Error time.Duration
}

// level is what a node has in one family.
type level struct{ answering, routed, wanted int }

func (l *level) add(by level) {
	l.answering += by.answering
	l.routed += by.routed
	l.wanted += by.wanted
}

// levelChange moves a level at a moment.
type levelChange struct {
	at time.Time
	by level
}

// Capacity is the lowest in [from, to], at the one moment where they are equal.
func (s *Service) Capacity(from, to time.Time) Capacity {
	var c Capacity
	ends := s.endings()
	for _, p := range s.rulePlanes() {
		known := p.knownIn(from, to)
		if len(known) != 1 || !known[0].from.Equal(from) || !known[0].to.Equal(to) {
			c.Unseen = append(c.Unseen, p.ID.Node)
		}
		for _, family := range []collect.Family{collect.IPv4, collect.IPv6} {
			s.capacityOn(&c, p, family, ends, known)
		}
	}
	return c
}

// capacityOn takes one family of one node into account.
func (s *Service) capacityOn(c *Capacity, p *Plane, family collect.Family, ends map[string][]PodChange, known []interval) {
	if len(known) == 0 || !s.hasFamily(p, family) {
		return
	}
	start, changes := p.levels(family, ends, interval{known[0].from, known[len(known)-1].to})
	err := receiptError
	for _, iv := range known {
		for i := len(p.Arrivals) - 1; i >= 0 && !p.Arrivals[i].At.Before(iv.from); i-- {
			if a := &p.Arrivals[i]; !a.At.After(iv.to) {
				err = max(err, a.Error)
			}
		}
	}
	for _, iv := range known {
		for _, st := range stretches(start, changes, iv) {
			s.lower(c, Low{Node: p.ID.Node, Family: family, At: st.from, For: st.to.Sub(st.from),
				Answering: st.answering, Routed: st.routed, Wanted: st.wanted, Error: err})
		}
	}
}

// stretch is a level from one moment to another.
type stretch struct {
	interval
	level
}

// stretches cut an interval where the level changes. One of no length has one.
func stretches(now level, changes []levelChange, iv interval) []stretch {
	var out []stretch
	k := 0
	for at := iv.from; ; {
		for k < len(changes) && !changes[k].at.After(at) {
			now.add(changes[k].by)
			k++
		}
		end := iv.to
		if k < len(changes) && changes[k].at.Before(end) {
			end = changes[k].at
		}
		if n := len(out); n > 0 && out[n-1].level == now {
			out[n-1].to = end
		} else {
			out = append(out, stretch{interval{at, end}, now})
		}
		if at = end; !at.Before(iv.to) {
			return out
		}
	}
}

// lower takes a low in where it is lower than what is there.
func (s *Service) lower(c *Capacity, low Low) {
	if low.Routed == 0 && low.Wanted == 0 && s.local() {
		return
	}
	low.WantedByPods = -1
	if s.Spec == nil || len(s.Spec.Families) < 2 {
		low.WantedByPods = countAt(s.Wanted, low.At)
	}
	keep := func(have **Low, order int) {
		if *have == nil || cmp.Or(order, cmp.Compare((*have).For, low.For), low.At.Compare((*have).At)) < 0 {
			l := low
			*have = &l
		}
	}
	if a := c.Answering; a == nil {
		keep(&c.Answering, 0)
	} else {
		keep(&c.Answering, cmp.Or(low.Answering-a.Answering, a.Wanted-low.Wanted))
	}
	if r := c.Routed; r == nil {
		keep(&c.Routed, 0)
	} else {
		keep(&c.Routed, cmp.Or(low.Routed-r.Routed, r.Wanted-low.Wanted))
	}
	lacks := low.Wanted - low.Answering
	switch s := c.Short; {
	case lacks <= 0:
	case s == nil:
		keep(&c.Short, 0)
	default:
		keep(&c.Short, s.Wanted-s.Answering-lacks)
	}
}

// local reports that a node may rightly have nothing to route to.
func (s *Service) local() bool {
	return s.Spec != nil && (s.Spec.InternalPolicy == string(collect.PolicyLocal) || s.Spec.ExternalPolicy == string(collect.PolicyLocal))
}

// hasFamily reports whether the Service is to be reached over the family.
func (s *Service) hasFamily(p *Plane, family collect.Family) bool {
	if s.Spec != nil && len(s.Spec.Families) > 0 {
		return slices.Contains(s.Spec.Families, family)
	}
	return family == collect.IPv4 || slices.ContainsFunc(p.Members, func(m Member) bool { return m.Endpoint.Family == family })
}

// endings lists, by pod UID, when nothing of it could answer, and when something
// could again.
func (s *Service) endings() map[string][]PodChange {
	out := map[string][]PodChange{}
	for i := range s.Pods {
		t := &s.Pods[i]
		ended := false
		for _, c := range t.Changes {
			if c.Ended != ended {
				ended = c.Ended
				out[t.UID] = append(out[t.UID], c)
			}
		}
	}
	return out
}

// levels are what the node has in a family at the interval's start, and the
// changes from then to its end, by time.
func (p *Plane) levels(family collect.Family, ends map[string][]PodChange, iv interval) (start level, out []levelChange) {
	for i := range p.Members {
		m := &p.Members[i]
		if m.Endpoint.Family != family {
			continue
		}
		// A long history has little in the interval.
		changes, ended := m.Changes, false
		want, have := false, false
		if n := changesBy(changes, iv.from); n > 0 {
			want, have, changes = changes[n-1].Want, changes[n-1].Have, changes[n:]
		}
		var pod []PodChange
		if len(ends) > 0 {
			pod = ends[m.Endpoint.UID]
		}
		for len(pod) > 0 && !pod[0].At.After(iv.from) {
			ended, pod = pod[0].Ended, pod[1:]
		}
		was := levelOf(want, have, ended)
		start.add(was)
		for len(changes)+len(pod) > 0 {
			var at time.Time
			if len(pod) > 0 && (len(changes) == 0 || pod[0].At.Before(changes[0].At)) {
				at, ended, pod = pod[0].At, pod[0].Ended, pod[1:]
			} else {
				at, want, have, changes = changes[0].At, changes[0].Want, changes[0].Have, changes[1:]
			}
			if at.After(iv.to) {
				break
			}
			if now := levelOf(want, have, ended); now != was {
				out = append(out, levelChange{at, level{now.answering - was.answering, now.routed - was.routed, now.wanted - was.wanted}})
				was = now
			}
		}
	}
	slices.SortStableFunc(out, func(a, b levelChange) int { return a.at.Compare(b.at) })
	return start, out
}

// levelOf is what one endpoint adds to a level.
func levelOf(want, have, ended bool) (l level) {
	if want {
		l.wanted = 1
	}
	if have {
		l.routed = 1
	}
	if have && !ended {
		l.answering = 1
	}
	return l
}

// interval is [from, to].
type interval struct{ from, to time.Time }

// knownIn are the parts of the window in which the plane was known.
func (p *Plane) knownIn(from, to time.Time) []interval {
	var out []interval
	// What is over before the window is not in it.
	first := max(0, sort.Search(len(p.Changes), func(i int) bool { return !p.Changes[i].At.Before(from) })-1)
	for i := first; i < len(p.Changes); i++ {
		c := &p.Changes[i]
		if c.Knowledge != Known {
			continue
		}
		iv := interval{c.At, to}
		if i+1 < len(p.Changes) && p.Changes[i+1].At.Before(to) {
			iv.to = p.Changes[i+1].At
		}
		if iv.from.Before(from) {
			iv.from = from
		}
		if iv.from.After(iv.to) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].to.Equal(iv.from) {
			out[n-1].to = iv.to
			continue
		}
		out = append(out, iv)
	}
	return out
}

// countAt is the value of a step function at t, 0 before the first.
func countAt(list []Count, t time.Time) int {
	c, _ := stepAt(list, t, func(c *Count) time.Time { return c.At })
	return c.N
}
