package timeline

import (
	"slices"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// wantDelta is one endpoint whose wanted value in the slices moves.
type wantDelta struct {
	pod      *podState
	id       EndpointID
	old, new *wantEntry
	before   bool // was in the wanted lane
}

// entriesOf computes what the slices and the legacy Endpoints should hold of
// one pod.
func (s *service) entriesOf(p *podState) []wantEntry {
	if !s.exists || !s.managed() || !p.gone.IsZero() || !s.selects(p.pod.Labels) {
		return nil
	}
	ref := []desired.PodRef{{Name: p.name, UID: p.uid, Pod: p.pod, NodeGone: s.m.nodeGone(p.pod.Node)}}
	entries := desired.Slices(s.spec, ref)
	out := make([]wantEntry, len(entries))
	for i := range entries {
		e := &entries[i]
		v := s.values.slice(s.bits(e.Ready, e.Serving, e.Terminating), e.Ports)
		info := s.values.info(v)
		out[i] = wantEntry{id: EndpointID{UID: p.uid, IP: e.Address}, val: v, routable: info.routable, fallback: info.fallback}
		s.call(out[i].id, p.name, e.Node)
	}
	for _, a := range desired.EndpointsV1(s.spec, ref) {
		v := s.values.slice(s.bits(a.Ready, a.Ready, false), a.Ports)
		i := slices.IndexFunc(out, func(e wantEntry) bool { return e.id.IP == a.IP })
		if i < 0 { // the legacy controller does not ask for the pod's node
			out = append(out, wantEntry{id: EndpointID{UID: p.uid, IP: a.IP}})
			i = len(out) - 1
			s.call(out[i].id, p.name, p.pod.Node)
		}
		out[i].v1 = v
	}
	return out
}

func (s *service) bits(ready, serving, terminating bool) int32 {
	var b int32
	if ready {
		b |= bitReady
	}
	if serving {
		b |= bitServing
	}
	if terminating {
		b |= bitTerminating
	}
	if s.spec != nil && len(s.spec.Ports) == 0 {
		b |= bitPortless
	}
	return b
}

// rewant brings what is wanted of the slices in line with the pods given. cause
// tells why, for each pod; nil means a baseline.
func (ch *change) rewant(s *service, pods []*podState, cause func(*podState, *wantDelta) Cause) {
	if !s.m.ready(collect.SourcePods, collect.SourceServices) {
		return
	}
	var deltas []wantDelta
	for _, p := range pods {
		old, now := s.wants[p], s.entriesOf(p)
		for i := range old {
			if !slices.ContainsFunc(now, func(e wantEntry) bool { return e.id == old[i].id }) {
				deltas = append(deltas, wantDelta{pod: p, id: old[i].id, old: &old[i]})
			}
		}
		for i := range now {
			d := wantDelta{pod: p, id: now[i].id, new: &now[i]}
			if j := slices.IndexFunc(old, func(e wantEntry) bool { return e.id == now[i].id }); j >= 0 {
				d.old = &old[j]
			}
			if d.old == nil || *d.old != *d.new {
				deltas = append(deltas, d)
			}
		}
		if len(now) == 0 {
			delete(s.wants, p)
		} else {
			s.wants[p] = now
		}
	}
	if len(deltas) == 0 {
		s.recordWanted(ch.at)
		return
	}
	for i := range deltas {
		deltas[i].before = deltas[i].old != nil && s.inLane(deltas[i].old)
	}
	for i := range deltas {
		if d := &deltas[i]; d.old != nil {
			s.countLane(d.old, -1)
		}
		if d := &deltas[i]; d.new != nil {
			s.countLane(d.new, 1)
		}
	}
	slices.SortFunc(deltas, func(a, b wantDelta) int { return compareIDs(a.id, b.id) })
	for i := range deltas {
		ch.wantOne(s, &deltas[i], cause)
	}
	s.recordWanted(ch.at)
}

// adoptEdited joins a path with the one that its slice event had to root while
// nothing was known to be behind it.
func (ch *change) adoptEdited(s *service, made *path) {
	c := s.slices.find(made.Endpoint.EndpointID)
	if c == nil || c.after == nil || c.after.edited == nil {
		return
	}
	q := c.after.edited
	if made.slice.Status == StatusArrived && q.Origin.At.Equal(made.slice.At) && s.pathIDs[q.ID] == q {
		c.after.edited = nil
		ch.m.adopt(made, q)
	}
}

// wantOne makes the steps of one endpoint in the slices and legacy planes.
func (ch *change) wantOne(s *service, d *wantDelta, cause func(*podState, *wantDelta) Cause) {
	var v, v1 val
	after := false
	if d.new != nil {
		v, v1, after = d.new.val, d.new.v1, s.inLane(d.new)
	}
	op := OpChange
	switch {
	case after && !d.before:
		op = OpAdd
	case d.before && !after:
		op = OpRemove
	}
	var made *path
	var pathOf func(direction) *path
	if cause != nil && !ch.baseline {
		pathOf = func(direction) *path {
			c := cause(d.pod, d)
			made = s.pathFor(ch.rootHere(), d.id, c, op, ch.moment())
			made.setPod(d.pod)
			ch.decorate(made, d.pod)
			return made
		}
	}
	ch.setWant(s.slices, d.id, v, pathOf)
	if made != nil {
		ch.adoptEdited(s, made)
	}
	if pathOf != nil {
		pathOf = func(direction) *path { return made }
	}
	ch.setWant(s.endpoints, d.id, v1, pathOf)
}
