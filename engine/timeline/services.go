package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func compareServices(a, b *service) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func sortServices(ss []*service) { slices.SortFunc(ss, compareServices) }

func sortedServices[V any](m map[*service]V) []*service {
	out := slices.Collect(maps.Keys(m))
	sortServices(out)
	return out
}

// onService takes a Service.
func (ch *change) onService() {
	m, e := ch.m, ch.e
	gone := e.Op == collect.OpDeleted || e.Op == collect.OpGone
	n := m.ns(e.Object.Namespace)
	if gone && n.services[e.Object.Name] == nil {
		return
	}
	s := m.service(e.Object.Namespace, e.Object.Name)
	ch.touch(s)
	if gone && (!s.exists || e.UID != "" && e.UID != s.uid) {
		return
	}
	now := e.Payload.(*collect.Service)
	old, existed, managed := s.spec, s.exists, s.managed()
	created := !gone && (!existed || e.UID != s.uid)
	if created && s.uid != "" && e.UID != s.uid {
		ch.reincarnate(s)
	}
	// A Service that comes to be is news on every plane: bring them live
	// while there is nothing to want.
	if created && !existed {
		ch.bringLive(s)
	}
	s.spec, s.exists = now, !gone
	s.recordSpec(ch.at)
	s.unclass()
	if gone {
		s.deleted = ch.at
		n.index(s, nil)
	} else {
		s.uid, s.deleted = e.UID, time.Time{}
		n.index(s, now)
	}
	ch.toldService(s, old, now, created, gone)
	switch {
	case created:
		ch.serviceCause = CauseServiceCreated
	case gone:
		ch.serviceCause = CauseServiceDeleted
	default:
		ch.serviceCause = CauseSelectorChanged
	}
	if !managed && s.managed() {
		s.lanes = [2]laneCount{} // counted off the slices until now
	}
	affected := ch.remember(n, s)
	var cause func(*podState, *wantDelta) Cause
	// A Service that loses its selector has what its slices have from here on:
	// nothing has to move.
	if !ch.baseline && !(managed && !s.managed()) {
		cause = func(p *podState, _ *wantDelta) Cause { return serviceCause(old, now, created, gone, p) }
	}
	ch.rewant(s, affected, cause)
	if m.ready(collect.SourceEndpointSlices) {
		ch.rereadSlices(s)
		if !managed && s.managed() {
			ch.disclaim(s)
		}
	}
	ch.rereadLegacy(s)
	ch.rerule(s, ch.serviceRoots(s, old, created, gone))
}

// recordSpec writes down what the Service is from now on.
func (s *service) recordSpec(at time.Time) {
	c := specChange{at, s.spec, s.exists}
	if last, ok := s.specs.last(); ok && !at.After(last.at) {
		c.at = last.at
		s.specs.replaceLast(c)
		return
	}
	s.specs.append(c)
}

// disclaim gives up what was wanted of the slices only because it was there: from
// here on the Service's pods say what is wanted, and of what is in slices only
// that which other managers publish stays their business.
func (ch *change) disclaim(s *service) {
	keep := map[EndpointID]bool{}
	for _, pub := range s.publishedBy() {
		keep[pub.id] = pub.foreign
	}
	for _, entries := range s.wants {
		for i := range entries {
			keep[entries[i].id] = true
		}
	}
	for id := range s.mirror {
		keep[id] = true // see remirror
	}
	for _, c := range s.slices.sortedCells() {
		if c.want == absent || keep[c.id] {
			continue
		}
		var pathOf func(direction) *path
		if !ch.baseline {
			pathOf = func(d direction) *path { return s.pathFor(ch.rootHere(), c.id, ch.serviceCause, opOf(d), ch.moment()) }
		}
		ch.setWant(s.slices, c.id, absent, pathOf)
	}
}

// remember brings the Service's members in line with its selector and returns
// those that are or were members.
func (ch *change) remember(n *namespace, s *service) []*podState {
	ch.m.relist(n)
	affected := maps.Clone(s.members)
	for p := range s.wants {
		affected[p] = struct{}{}
	}
	for p := range n.podsByLabel[s.indexed] {
		if s.selects(p.pod.Labels) {
			affected[p] = struct{}{}
		}
	}
	out := slices.Collect(maps.Keys(affected))
	slices.SortFunc(out, func(a, b *podState) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid)) })
	for _, p := range out {
		selected := p.gone.IsZero() && s.selects(p.pod.Labels)
		s.setMember(p, selected)
		if i := slices.Index(p.selecting, s); selected && i < 0 {
			p.selecting = append(p.selecting, s)
			sortServices(p.selecting)
		} else if !selected && i >= 0 {
			p.selecting = slices.Delete(p.selecting, i, i+1)
		}
		ch.track(s, p, selected)
	}
	return out
}

// reincarnate closes what the Service's previous incarnation left open.
func (ch *change) reincarnate(s *service) {
	for _, p := range s.planes() {
		ch.closeOpen(p)
	}
}

// closeOpen gives up the plane's open steps.
func (ch *change) closeOpen(p *plane) {
	for _, c := range p.sortedOwn() {
		ch.closeCell(c)
	}
}

// bringLive starts the planes of a Service, as far as what they rest on is
// known.
func (ch *change) bringLive(s *service) {
	m := ch.m
	s.bringLive()
	var fresh []*node
	for _, name := range m.nodeNames {
		n := m.nodes[name]
		switch {
		case !n.ruled || s.hasRules(name) || m.nodeGone(name):
		case len(n.loose[s]) > 0:
			ch.plantRules(s, name)
		default:
			fresh = append(fresh, n)
		}
	}
	ch.plantNew(s, fresh)
}

// serviceRoots says which path a step belongs to that the Service itself made in
// the rules.
func (ch *change) serviceRoots(s *service, old *collect.Service, created, gone bool) func(EndpointID, direction) *path {
	if ch.baseline {
		return nil
	}
	return func(id EndpointID, d direction) *path {
		c := serviceCause(old, s.spec, created, gone, nil)
		op := OpChange
		switch {
		case id == EndpointID{}:
			op = OpService
		case created:
			op = OpAdd
		case gone:
			op = OpRemove
		}
		p := s.pathFor(ch.rootHere(), id, c, op, ch.moment())
		p.fixedOp = true
		return p
	}
}
