package timeline

import (
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// retainEvery is how often old things are looked for, in the model's own time.
const retainEvery = time.Minute

// retain drops what is older than the retention, and keeps what is open.
func (m *Model) retain() {
	if m.now.Before(m.nextRetain) {
		return
	}
	first := m.nextRetain.IsZero()
	m.nextRetain = m.now.Add(retainEvery)
	if first {
		return
	}
	cut := m.now.Add(-m.opt.Retention)
	m.cut, m.ctx = cut, nil
	trimBefore(&m.marks, cut, func(x Mark) time.Time { return x.At })
	m.gaps = slices.DeleteFunc(m.gaps, func(g *Gap) bool { return !g.To.IsZero() && g.To.Before(cut) })
	for uid, p := range m.podsByUID {
		if p.forgettable(cut) && !slices.ContainsFunc(p.watchers, func(s *service) bool { return s.holds(p) }) {
			delete(m.podsByUID, uid)
			m.dropAddresses(p)
		}
	}
	m.retainFaults(cut)
	m.retainPasts(cut)
	m.retainProbes(cut)
	m.retainPulls(cut)
	m.retainStanding(cut)
	for _, s := range m.services {
		s.retain(cut)
	}
	for id, src := range m.sources {
		if name, ok := rulesNode(id); ok && m.nodeGone(name) && src.vouched.Before(cut) {
			delete(m.sources, id)
			m.coverageChanged()
		}
	}
	// What still reads the rules of a gone node needs what it read before.
	m.nodeNames = slices.DeleteFunc(m.nodeNames, func(name string) bool {
		n := m.nodes[name]
		if n.gone.IsZero() || n.gone.After(cut) || m.sources[collect.RulesSource(name)] != nil {
			return false
		}
		m.forget(name)
		return true
	})
	m.services = slices.DeleteFunc(m.services, func(s *service) bool {
		if s.exists || len(s.epSlice) > 0 || s.legacy != nil || s.diffs > 0 || len(s.paths) > 0 || s.spec == nil && len(s.owner) > 0 || !s.deleted.IsZero() && s.deleted.After(cut) {
			return false
		}
		if slices.ContainsFunc(s.planes(), func(p *plane) bool { return len(p.ports) > 0 }) {
			return false
		}
		for _, n := range m.nodes {
			if len(n.loose[s]) > 0 {
				return false
			}
		}
		delete(m.ns(s.namespace).services, s.name)
		for p := range s.tracks {
			p.watchers = slices.DeleteFunc(p.watchers, func(x *service) bool { return x == s })
		}
		return true
	})
}

// forgettable reports that a pod is gone for long and that nothing still has to
// follow: a node that routes to it does so to one that has stopped.
func (p *podState) forgettable(cut time.Time) bool {
	return !p.gone.IsZero() && p.gone.Before(cut) &&
		!slices.ContainsFunc(p.paths, func(x *path) bool { return x.status() == StatusOpen })
}

// trimBefore drops the elements from before the cut.
func trimBefore[T any](s *series[T], cut time.Time, at func(T) time.Time) {
	n := 0
	for n < len(s.items) && at(s.items[n]).Before(cut) {
		n++
	}
	s.trim(n)
}

// trimSteps is trimBefore for a step function: the value at the cut stays.
func trimSteps[T any](s *series[T], cut time.Time, at func(T) time.Time) {
	n := 0
	for n+1 < len(s.items) && at(s.items[n+1]).Before(cut) {
		n++
	}
	s.trim(n)
}

// trimMember is trimSteps for what a plane had of one endpoint: a difference keeps
// its beginning, by which its age is told.
func trimMember(s *series[MemberChange], cut time.Time) {
	n := 0
	for n+1 < len(s.items) && s.items[n+1].At.Before(cut) {
		n++
	}
	for n > 0 && !s.items[n].Agrees && !s.items[n-1].Agrees {
		n--
	}
	s.trim(n)
}

func (s *service) retain(cut time.Time) {
	s.retainPaths(cut)
	trimSteps(&s.wanted, cut, func(c Count) time.Time { return c.At })
	trimSteps(&s.specs, cut, func(c specChange) time.Time { return c.at })
	trimBefore(&s.dropped, cut, func(d droppedPlane) time.Time { return d.at })
	trimBefore(&s.marks, cut, func(x Mark) time.Time { return x.At })
	trimBefore(&s.conns, cut, func(x ConnectionCount) time.Time { return x.To })
	trimBefore(&s.failures, cut, func(x ConnectionFailure) time.Time { return x.Began })
	n := 0
	for n < len(s.episodes.items) && !s.episodes.items[n].End.IsZero() && s.episodes.items[n].End.Before(cut) {
		n++
	}
	if n == len(s.episodes.items) && n > 0 {
		n-- // the next one's number
	}
	s.episodes.trim(n)
	for p, t := range s.tracks {
		trimSteps(&t.changes, cut, func(c PodChange) time.Time { return c.At })
		if p.forgettable(cut) && !s.holds(p) {
			delete(s.tracks, p)
			p.watchers = slices.DeleteFunc(p.watchers, func(x *service) bool { return x == s })
		}
	}
	for _, p := range s.planes() {
		p.retain(cut)
	}
	for ip := range s.strays {
		if !slices.ContainsFunc(s.planes(), func(p *plane) bool { return p.has(EndpointID{UID: UnknownUID, IP: ip}) }) {
			delete(s.strays, ip)
		}
	}
	for id := range s.meta {
		if !s.mentions(id) && !s.routedUnseen(id.IP) {
			s.ownMeta()
			delete(s.meta, id)
			if s.owner[id.IP] == id.UID {
				delete(s.owner, id.IP)
				s.unclass()
			}
		}
	}
	s.fold(cut)
	s.dirty = true
}

// retainPaths drops the paths that are over. They are in the order of their origins.
func (s *service) retainPaths(cut time.Time) {
	old, kept := 0, 0
	for old < len(s.paths) && s.paths[old].Origin.At.Before(cut) {
		p := s.paths[old]
		if old++; p.status() != StatusOpen && p.ended().Before(cut) {
			s.forgetPath(p)
			continue
		}
		s.paths[kept] = p
		kept++
	}
	if kept < old {
		s.paths = slices.Delete(s.paths, kept, old)
		s.dirty = true
	}
}

func (p *plane) retain(cut time.Time) {
	before := p.changes.len()
	trimSteps(&p.changes, cut, func(c PlaneChange) time.Time { return c.At })
	if p.group != nil {
		p.group.marks = slices.Clone(p.group.marks[before-p.changes.len():])
	} else {
		p.retainPast(cut)
	}
	trimBefore(&p.arrivals, cut, func(a Arrival) time.Time { return a.At })
	if p.group != nil || p.aging == nil {
		for c := range p.held() { // of root nothing is old
			p.retainCell(c, cut)
		}
		p.unshare()
		p.age()
	} else {
		p.retainAging(cut)
		p.unshare()
	}
	p.dirty = true
}

// retainCell drops what of a cell's history is old, and the cell when it is no more
// than history; over is false when something that ends without a change keeps it.
func (p *plane) retainCell(c *cell, cut time.Time) (over bool) {
	id := c.id
	if c.changes.len() > 1 && c.changes.items[1].At.Before(cut) {
		c = p.cell(id)
		trimMember(&c.changes, cut)
	}
	if c.want != absent || c.had != absent || !p.when(c.wantAt).Before(cut) || !p.when(c.hadAt).Before(cut) {
		return true
	}
	if len(c.open) > 0 {
		return false
	}
	p.forget(id)
	return true
}

// agingCell is a cell that changed at a moment: when that is old, retention looks at
// it. Looking at all cells every minute would cost more than all that changes them.
type agingCell struct {
	c  *cell
	at time.Time
}

// ages notes that a cell changed. Few come in another order than that of their times.
func (p *plane) ages(c *cell, at time.Time) {
	if p.aging == nil {
		return
	}
	i := len(p.aging)
	for i > 0 && at.Before(p.aging[i-1].at) {
		i--
	}
	p.aging = slices.Insert(p.aging, i, agingCell{c, at})
}

// retainAging is retainCell for all cells of which something has become old.
func (p *plane) retainAging(cut time.Time) {
	old, kept := 0, 0
	for old < len(p.aging) && p.aging[old].at.Before(cut) {
		a := p.aging[old]
		if old++; p.own[a.c.id] == a.c && !p.retainCell(a.c, cut) {
			p.aging[kept] = a
			kept++
		}
	}
	if kept < old {
		p.aging = slices.Delete(p.aging, kept, old)
	}
}

// age lists all cells for retainAging: nothing is shared with others, or it needs
// retention no more than root does.
func (p *plane) age() {
	if p.group != nil || len(p.common) > 0 {
		return
	}
	p.aging = []agingCell{}
	for _, c := range p.own {
		if c == nil {
			continue
		}
		for i := 1; i < c.changes.len(); i++ {
			p.aging = append(p.aging, agingCell{c, c.changes.items[i].At})
		}
		last := c.wantAt
		if c.hadAt.After(last) {
			last = c.hadAt
		}
		p.aging = append(p.aging, agingCell{c, last})
	}
	slices.SortFunc(p.aging, func(a, b agingCell) int { return a.at.Compare(b.at) })
}

// holds reports that a plane still has an endpoint of the pod: that nothing answers
// behind it must stay known.
func (s *service) holds(p *podState) bool {
	return slices.ContainsFunc(p.ips, func(ip addr) bool {
		id := EndpointID{UID: p.uid, IP: ip}
		return slices.ContainsFunc(s.planes(), func(pl *plane) bool { return pl.has(id) })
	})
}

// mentions reports that an endpoint still stands in a plane or a path.
func (s *service) mentions(id EndpointID) bool {
	for _, p := range s.planes() {
		if p.find(id) != nil {
			return true
		}
	}
	return slices.ContainsFunc(s.paths, func(p *path) bool { return p.Endpoint.EndpointID == id })
}

// routedUnseen reports that the rules of a node without a plane, which does not exist
// but may come back, still have the address.
func (s *service) routedUnseen(ip addr) bool {
	for _, n := range s.m.nodes {
		for i := range n.loose[s] {
			if slices.ContainsFunc(n.loose[s][i].Endpoints, func(ap netip.AddrPort) bool { return ap.Addr().Unmap() == ip }) {
				return true
			}
		}
	}
	return false
}

// ended is the last moment of the path.
func (p *path) ended() time.Time {
	t := p.Origin.At
	for _, h := range p.rules {
		if h.At.After(t) {
			t = h.At
		}
	}
	if p.slice != nil && p.slice.At.After(t) {
		t = p.slice.At
	}
	return t
}
