package timeline

import (
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// plantRules makes the plane of a node's rules for a Service and brings it live:
// what is there and what is wanted now is the baseline.
func (ch *change) plantRules(s *service, node string) {
	p := s.rulePlane(node)
	p.live = false
	p.know(Known)
	p.setExcluded(ch.m.leftOut(node))
	ch.reread(s, node)
	if s.rulesKnown() {
		ch.reruleOn(p, s.classOf(node), nil, deltas{})
	}
	p.live = s.rulesKnown()
	p.touch()
}

// joins reports that the first dump of a node is one that others may share: it
// is known when it was true.
func (ch *change) joins() bool { return ch.notBefore.IsZero() && ch.e.ResourceVersion == 0 }

// plantFirst is plantRules with a node's first dump: the node enters the group of
// those that came with the same, or begins one.
func (ch *change) plantFirst(s *service, n *node, ports []collect.RulePort) {
	var class *ruleClass
	if s.rulesKnown() {
		class = s.classOf(n.name)
	}
	id := PlaneID{Kind: PlaneRules, Node: n.name}
	for _, g := range s.groups {
		if g.group.pristine && g.group.sources == n.sourcesLater && g.class == class && g.waits == ch.m.waits(id) &&
			g.live == s.rulesKnown() && samePorts(g.ports, ports) && (g.counts.Agrees() || !g.counted() || !ch.m.leftOut(n.name)) {
			g.enter(n, ch.at)
			return
		}
	}
	g := s.newGroup(n.sourcesLater)
	g.ports = slices.Clone(ports)
	g.enter(n, ch.at)
	at := ch.at
	ch.at = begun
	ch.plantGroup(g, class)
	g.recordGroup(begun, ch.baseline, true)
	ch.at = at
	g.compact()
	g.group.pristine = true
	if ch.m.leftOut(n.name) && !g.counts.Agrees() {
		g.extract(n)
	}
}

// plantNew makes the planes of nodes that have no rules for a Service that is new.
func (ch *change) plantNew(s *service, nodes []*node) {
	type kind struct {
		sources bool
		class   *ruleClass
	}
	var kinds []kind
	by := map[kind][]*node{}
	for _, n := range nodes {
		k := kind{sources: n.sourcesLater}
		if s.rulesKnown() {
			k.class = s.classOf(n.name)
		}
		if by[k] == nil {
			kinds = append(kinds, k)
		}
		by[k] = append(by[k], n)
	}
	for _, k := range kinds {
		g := s.newGroup(k.sources)
		for _, n := range by[k] {
			g.enter(n, ch.m.first)
		}
		ch.plantGroup(g, k.class)
	}
}

// replant is plantRules for the nodes of a group.
func (ch *change) replant(g *plane) {
	s := g.svc
	if ch.open(g); g.group.n == 0 {
		return
	}
	g.live = false
	if !s.perNode() || !s.rulesKnown() {
		var class *ruleClass
		if s.rulesKnown() {
			class = s.classOf(g.members()[0].name)
		}
		ch.plantGroup(g, class)
		return
	}
	parts := map[*ruleClass][]*node{}
	var classes []*ruleClass
	g.eachMember(func(n *node) {
		c := s.classOf(n.name)
		if parts[c] == nil {
			classes = append(classes, c)
		}
		parts[c] = append(parts[c], n)
	})
	for _, c := range classes {
		ch.plantGroup(g.split(parts[c]), c)
	}
}

// plantGroup takes what the nodes of a group have and what is wanted of them for
// the baseline. class is nil while it is not known.
func (ch *change) plantGroup(g *plane, class *ruleClass) {
	s := g.svc
	g.live = false
	g.know(Known)
	if !ch.at.Equal(begun) {
		g.group.noted, g.group.notedSeq = ch.m.gensNow(), ch.m.applied
	}
	ch.takeHad(g, s.foldRules(g.ports))
	if g.class != nil {
		ch.refront(g, nil)
	}
	if class != nil {
		ch.reruleOn(g, class, nil, deltas{})
	}
	g.live = s.rulesKnown()
	g.touch()
}

// reread takes the node's rules for the Service as they are now.
func (ch *change) reread(s *service, node string) {
	n, p := ch.m.nodes[node], s.rulePlane(node)
	if s.m.had == nil {
		s.m.had = map[EndpointID]val{}
	}
	had := s.m.had
	clear(had)
	s.foldInto(had, p.ports)
	moved := p.compare(had)
	if p.live && moved.strange {
		s.disown(p, had)
		moved = p.compare(had)
	}
	p.gen, p.note = n.generation, generationNote(n.generation)
	p.dirty = true // it shows the ports
	p.know(Known)
	ch.move(p, had, moved)
	if p.class != nil {
		ch.refront(p, nil)
	}
}

// takeHad moves what the plane has of all endpoints.
func (ch *change) takeHad(p *plane, had map[EndpointID]val) { ch.move(p, had, p.compare(had)) }

func (ch *change) move(p *plane, had map[EndpointID]val, by moves) {
	slices.SortFunc(by.ids, compareIDs)
	for _, id := range by.ids {
		ch.setHad(p, id, had[id])
	}
}

// moves are the endpoints of which a plane comes to have something else, in no order.
type moves struct {
	ids []EndpointID
	// strange: one comes that the plane did not have, or it has some of nobody that
	// is known.
	strange bool
}

func (p *plane) compare(had map[EndpointID]val) (out moves) {
	known := 0
	for c := range p.present() {
		if c.had == absent || (c.id == EndpointID{}) {
			continue
		}
		out.strange = out.strange || c.id.UID == UnknownUID
		v, ok := had[c.id]
		if ok {
			known++
		}
		if v != c.had {
			out.ids = append(out.ids, c.id)
		}
	}
	if known == len(had) {
		return out
	}
	out.strange = true
	for id := range had {
		if !p.has(id) {
			out.ids = append(out.ids, id)
		}
	}
	return out
}

// rereads reports that reread would find nothing new for the nodes of a group
// whose ports are what they were.
func (ch *change) rereads(g *plane) bool {
	had, n := g.svc.foldRules(g.ports), 0
	for c := range g.cells() {
		if (c.id == EndpointID{}) || c.had == absent {
			continue
		}
		if n++; had[c.id] != c.had {
			return false
		}
	}
	return n == len(had) && (g.class == nil || !ch.refronts(g, g.class))
}

// dropRules forgets the plane of a node that is gone. What the node has stays
// known: what still reads its rules tells changes only.
func (ch *change) dropRules(s *service, node string) {
	n := ch.m.nodes[node]
	ports := s.portsOf(n)
	p := s.rules[node]
	if p != nil {
		ch.closeOpen(p)
	}
	s.dropPlane(n, ch.at)
	if p != nil {
		p.setExcluded(true)
		p.dropped = true
		delete(s.rules, node)
		i, _ := slices.BinarySearch(s.ruleNodes, node)
		s.ruleNodes = slices.Delete(s.ruleNodes, i, i+1)
	} else if g := s.groupOf(n); g != nil {
		g.leave(n)
	}
	s.setPorts(n, ports)
	s.dirty = true
}

// handOver renames what the nodes have at an address from one endpoint to
// another.
func (ch *change) handOver(s *service, ip addr, from, to string) {
	old := EndpointID{UID: from, IP: ip}
	for _, g := range slices.Clone(s.groups) {
		switch c := g.find(old); {
		case c == nil || c.had == absent:
		case g.live: // a step may come of it
			for _, n := range g.members() {
				g.extract(n)
			}
		default:
			if ch.open(g); g.group.n > 0 {
				ch.handOverOn(g, ip, from, to)
			}
		}
	}
	for _, node := range s.ruleNodes {
		ch.handOverOn(s.rules[node], ip, from, to)
	}
}

func (ch *change) handOverOn(p *plane, ip addr, from, to string) {
	old, now := EndpointID{UID: from, IP: ip}, EndpointID{UID: to, IP: ip}
	if c := p.find(old); c == nil || c.had == absent {
		return
	}
	real := from != UnknownUID
	c, d := p.cell(old), p.cell(now)
	beforeOld, beforeNew := *c, *d
	d.had, d.hadAt, d.hadNB, d.hadBaseline = c.had, c.hadAt, c.hadNB, c.hadBaseline || real
	c.had, c.hadAt, c.hadNB = absent, ch.at, ch.notBefore
	if real {
		if ch.handedOver == nil {
			ch.handedOver = map[*cell]bool{}
		}
		ch.handedOver[c] = true
	}
	for _, st := range c.open {
		ch.close(st, StatusHandedOver)
	}
	clear(c.open)
	c.open = c.open[:0]
	p.update(c, beforeOld, ch.at)
	p.update(d, beforeNew, ch.at)
}

// disown gives addresses that came to the node's rules to nobody, where the one who
// had them last is gone from the slices and from the node: somebody else has them
// now, and a slice will say who.
func (s *service) disown(p *plane, had map[EndpointID]val) {
	for id, v := range had {
		nobody := EndpointID{UID: UnknownUID, IP: id.IP}
		if id == nobody || !s.vanished(p, id) && !p.has(nobody) {
			continue
		}
		delete(had, id)
		had[nobody] = v
		if s.strays == nil {
			s.strays = map[addr]struct{}{}
		}
		s.strays[id.IP] = struct{}{}
	}
}

// vanished reports that an endpoint is in no slice any more, and on this plane
// neither had nor wanted.
func (s *service) vanished(p *plane, id EndpointID) bool {
	if s.slices.has(id) {
		return false
	}
	c := p.find(id)
	return c == nil || c.had == absent && c.want == absent
}

func (p *plane) has(id EndpointID) bool {
	c := p.find(id)
	return c != nil && c.had != absent
}

// gensNow are the generations of all nodes' rules.
func (m *Model) gensNow() []uint32 {
	if m.gens == nil {
		m.gens = make([]uint32, len(m.byIndex))
		for i, n := range m.byIndex {
			if n != nil {
				m.gens[i] = n.generation
			}
		}
	}
	return m.gens
}

// clocksNow is how far all nodes' times may be off.
func (m *Model) clocksNow() []clockError {
	if m.clocks == nil {
		m.clocks = make([]clockError, len(m.byIndex))
		for i, n := range m.byIndex {
			if n != nil {
				m.clocks[i] = m.clockErrorOf(n.name)
			}
		}
	}
	return m.clocks
}

func (m *Model) clockErrorOf(node string) clockError {
	switch clock := m.clockOf(PlaneID{Kind: PlaneRules, Node: node}); {
	case clock.OneSided:
		return clockError{oneSided: true}
	default:
		return clockError{err: clock.Error}
	}
}
