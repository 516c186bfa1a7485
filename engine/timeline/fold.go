package timeline

import (
	"slices"
	"time"
)

// fold puts planes of nodes' rules that are alike, and of which retention keeps
// nothing but how they are now, into one group. What is lost with that is since
// when each endpoint has been there, as far as that was before the last change
// of the plane.
func (s *service) fold(cut time.Time) {
	settled := map[*ruleClass][]*plane{}
	for _, p := range s.planes() {
		if p.id.Kind == PlaneRules && p.settled(cut) {
			settled[p.class] = append(settled[p.class], p)
		}
	}
	for _, alike := range settled {
		slices.SortStableFunc(alike, func(a, b *plane) int { return b.weight() - a.weight() })
		for len(alike) > 0 {
			first, rest := alike[0], alike[:0:0]
			same := alike[:0:0]
			for _, p := range alike[1:] {
				if first.alike(p) {
					same = append(same, p)
				} else {
					rest = append(rest, p)
				}
			}
			if len(same) > 0 || first.group == nil {
				s.merge(append([]*plane{first}, same...))
			}
			alike = rest
		}
	}
}

// settled reports that nothing of the plane's history is kept but its last
// change, which is from before the cut, and that it agrees with what is wanted.
func (p *plane) settled(cut time.Time) bool {
	if !p.live || p.waits || p.touched || p.class == nil || !p.counts.Agrees() || p.counts.Knowledge != Known ||
		p.arrivals.len() > 0 || p.changes.len() != 1 {
		return false
	}
	old := func(t time.Time) bool { return t.Equal(begun) || t.Before(cut) }
	last, _ := p.changes.last()
	if !old(last.At) {
		return false
	}
	if g := p.group; g != nil {
		if !g.latest.Before(cut) || !p.base.At.IsZero() && !old(p.base.At) {
			return false
		}
	} else if p.svc.m.nodes[p.id.Node] == nil || !p.base.At.IsZero() || len(p.early) > 0 {
		return false
	}
	for c := range p.cells() {
		if c.class != agrees || c.stopped || len(c.open) > 0 || c.want == absent && (c.id != EndpointID{}) || c.changes.len() > 1 || !old(c.wantAt) || !old(c.hadAt) {
			return false
		}
		// A change of an endpoint that left the plane as it was.
		if at, ok := c.changes.last(); ok && p.when(at.At).After(p.when(last.At)) {
			return false
		}
	}
	return true
}

// alike reports that two settled planes of one class are the same.
func (p *plane) alike(o *plane) bool {
	a, _ := p.changes.last()
	b, _ := o.changes.last()
	return a.Baseline == b.Baseline && p.counts == o.counts && p.laysLater() == o.laysLater() && samePorts(p.ports, o.ports)
}

func (p *plane) laysLater() bool {
	if p.group != nil {
		return p.group.sources
	}
	n := p.svc.m.nodes[p.id.Node]
	return n != nil && n.sourcesLater
}

// merge makes one group of settled planes that are alike.
func (s *service) merge(planes []*plane) {
	m, first := s.m, planes[0]
	g := newPlane(s, PlaneID{Kind: PlaneRules})
	size := len(m.byIndex)
	g.group = &group{sources: first.laysLater(), starts: &starts{at: make([]int64, size), gen: make([]uint32, size)},
		noted: make([]uint32, size), notedSeq: m.applied, marks: []*noted{nil}}
	g.began = begun
	g.waits, g.live, g.counts, g.class, g.ports, g.moved = false, true, first.counts, first.class, first.ports, true
	last, _ := first.changes.last()
	last.At, last.Note = begun, ""
	g.changes.append(last)
	for c := range first.cells() {
		x := &cell{id: c.id, want: c.want, had: c.had, wantAt: begun, hadAt: begun, since: begun, hadBaseline: true, wasWanted: c.wasWanted, class: agrees, ports: c.ports}
		if at, ok := c.changes.last(); ok {
			at.At = begun
			x.changes.append(at)
		}
		g.own[c.id] = x
	}
	enter := func(n *node, at time.Time, changed, noted uint32) {
		g.group.starts.at[n.index], g.group.starts.gen[n.index], g.group.noted[n.index] = at.UnixNano(), changed, noted
		g.enter(n, at)
	}
	for _, p := range planes {
		if p.group == nil {
			n := m.nodes[p.id.Node]
			last, _ := p.changes.last()
			p.dropped = true
			delete(s.rules, n.name)
			i, _ := slices.BinarySearch(s.ruleNodes, n.name)
			s.ruleNodes = slices.Delete(s.ruleNodes, i, i+1)
			enter(n, last.At, generationIn(last.Note), p.gen)
			continue
		}
		for _, n := range p.members() {
			last := p.stateOf(n).changes[0]
			noted := p.generationOf(n)
			p.leave(n)
			enter(n, last.At, generationIn(last.Note), noted)
		}
	}
	g.compact()
	s.groups = append(s.groups, g)
	s.dirty = true
}
