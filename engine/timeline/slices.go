package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// sliceState is one EndpointSlice as observed.
type sliceState struct {
	name  string
	rv    uint64
	slice *collect.EndpointSlice
}

// controllerName manages the slices of Services with a selector; the mirroring
// one copies hand-made Endpoints.
const (
	controllerName = "endpointslice-controller.k8s.io"
	mirroringName  = "endpointslicemirroring-controller.k8s.io"
)

// sortedSlices lists the slices by name.
func (s *service) sortedSlices() []*sliceState {
	out := make([]*sliceState, 0, len(s.epSlice))
	for _, sl := range s.epSlice {
		out = append(out, sl)
	}
	slices.SortFunc(out, func(a, b *sliceState) int { return strings.Compare(a.name, b.name) })
	return out
}

func (s *service) sliceObjects() []*collect.EndpointSlice {
	sorted := s.sortedSlices()
	out := make([]*collect.EndpointSlice, len(sorted))
	for i, sl := range sorted {
		out[i] = sl.slice
	}
	return out
}

// onSlice takes an EndpointSlice.
func (ch *change) onSlice() {
	m, e, sl := ch.m, ch.e, ch.e.Payload.(*collect.EndpointSlice)
	n := m.ns(e.Object.Namespace)
	gone := e.Op == collect.OpDeleted || e.Op == collect.OpGone
	was := n.slices[e.Object.Name]
	if was != nil && (gone || was.name != sl.Service) {
		delete(was.epSlice, e.Object.Name)
		delete(n.slices, e.Object.Name)
		was.sliceRemoved, ch.write = ch.at, &sliceWrite{removed: true}
		if gone || sl.Service == "" {
			ch.resliced(was, e.Object.Name)
			return
		}
		ch.resliced(was, e.Object.Name)
	}
	if gone || sl.Service == "" {
		return
	}
	s := m.service(e.Object.Namespace, sl.Service)
	s.epSlice[e.Object.Name] = &sliceState{name: e.Object.Name, rv: e.ResourceVersion, slice: sl}
	n.slices[e.Object.Name] = s
	ch.write = &sliceWrite{trigger: sl.TriggerTime}
	ch.resliced(s, e.Object.Name)
}

// published is one endpoint as the slices publish it together.
type published struct {
	id    EndpointID
	e     *collect.SliceEndpoint
	ports []collect.SlicePort
	// foreign: no controller that is known wants it there, so that it is
	// wanted as it is.
	foreign bool
}

// publishedBy merges the endpoints of all slices, by id. An endpoint that is
// moving from one slice to another is in both for a moment; it then has the
// ports of both.
func (s *service) publishedBy() []published {
	n := 0
	for _, sl := range s.epSlice {
		n += len(sl.slice.Endpoints)
	}
	all := make([]published, 0, n)
	managed, known, cut := s.managed(), s.m.ready(collect.SourceServices, collect.SourceEndpoints), s.mirrorCut()
	for _, sl := range s.sortedSlices() {
		ports := slices.Clone(sl.slice.Ports)
		sortSlicePorts(ports)
		for i := range sl.slice.Endpoints {
			e := &sl.slice.Endpoints[i]
			uid := e.PodUID
			if uid == "" {
				uid = ManualUID
			}
			// What another manager publishes is that manager's business.
			foreign := !managed || sl.slice.ManagedBy != controllerName && e.PodUID == ""
			if sl.slice.ManagedBy == mirroringName {
				foreign = !known || cut
			}
			all = append(all, published{id: EndpointID{UID: uid, IP: e.Address.Unmap()}, e: e, ports: ports, foreign: foreign})
		}
	}
	slices.SortStableFunc(all, func(a, b published) int { return compareIDs(a.id, b.id) })
	out := all[:0]
	for _, p := range all {
		if k := len(out); k > 0 && out[k-1].id == p.id {
			q := &out[k-1]
			q.ports = append(slices.Clone(q.ports), p.ports...)
			sortSlicePorts(q.ports)
			q.ports = slices.Compact(q.ports)
			if endpointRank(p.e) < endpointRank(q.e) {
				q.e = p.e
			}
			if managed {
				q.foreign = q.foreign && p.foreign
			} else {
				q.foreign = q.foreign || p.foreign
			}
			continue
		}
		out = append(out, p)
	}
	return out
}

// endpointRank orders entries that speak of one address: kube-proxy prefers one
// that does not terminate; lower wins.
func endpointRank(e *collect.SliceEndpoint) int {
	r := 0
	if e.Terminating {
		r += 4
	}
	if !e.Ready {
		r += 2
	}
	if !e.Serving {
		r++
	}
	return r
}

// resliced takes the Service's slices as they are now, after the named one
// changed, and moves on to the rules.
func (ch *change) resliced(s *service, name string) {
	ch.touch(s)
	s.unclass()
	p := s.slices
	switch sl := s.epSlice[name]; {
	case sl != nil:
		p.note = fmt.Sprintf("%s rev %d", name, sl.rv)
	default:
		p.note = name + " deleted"
	}
	p.touch()
	if !s.m.ready(collect.SourceEndpointSlices) {
		return
	}
	moved := ch.rereadSlices(s)
	ch.rerule(s, ch.sliceRoots(s, moved))
	ch.settleOps(s)
}

// rereadSlices updates the slices plane, who is behind each address, and what
// is wanted of endpoints that no pod is asked about. It returns the endpoints
// that moved.
func (ch *change) rereadSlices(s *service) map[EndpointID]bool {
	p := s.slices
	pubs := s.publishedBy()
	had := make(map[EndpointID]val, len(pubs))
	best := map[addr]*published{}
	for i := range pubs {
		pub := &pubs[i]
		v := s.values.slice(s.bits(pub.e.Ready, pub.e.Serving, pub.e.Terminating), pub.ports)
		had[pub.id] = v
		s.call(pub.id, pub.e.PodName, pub.e.Node)
		if b := best[pub.id.IP]; b == nil || endpointRank(pub.e) < endpointRank(b.e) {
			best[pub.id.IP] = pub
		}
		if s.spec != nil && pub.foreign {
			ch.setWant(p, pub.id, v, nil)
		}
	}
	moved := map[EndpointID]bool{}
	var ids []EndpointID
	cells := p.present()
	if len(s.mirror) > 0 {
		cells = p.cells() // also what is to come back
	}
	for c := range cells {
		id := c.id
		if c.had != had[id] {
			ids = append(ids, id)
		}
		if v, ok := s.mirror[id]; ok {
			// Wanted by the Endpoints, also once no other slice has it.
			if _, ok := had[id]; !ok {
				ch.setWant(p, id, v, nil)
			}
			continue
		}
		if _, ok := had[id]; !ok && c.want != absent && s.spec != nil && (!s.managed() || id.UID == ManualUID) {
			ch.setWant(p, id, absent, nil)
		}
	}
	for id := range had {
		if c := p.find(id); c == nil || len(s.mirror) == 0 && c.had == absent && c.want == absent {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	for _, id := range ids {
		moved[id] = true
		ch.setHad(p, id, had[id])
		if had[id] == absent {
			s.unpublished(id)
		}
	}
	slices.SortStableFunc(ch.satisfiedAll, func(a, b *step) int {
		return cmp.Or(a.hop.Step.Compare(b.hop.Step), cmp.Compare(a.rv, b.rv))
	})
	var ips []addr
	for ip := range best {
		ips = append(ips, ip)
	}
	slices.SortFunc(ips, addr.Compare)
	for _, ip := range ips {
		to := best[ip].id.UID
		if from := s.ownerOf(ip); from != to {
			s.owner[ip] = to
			s.unclass()
			ch.handOver(s, ip, from, to)
		}
		if _, ok := s.strays[ip]; ok {
			delete(s.strays, ip)
			ch.handOver(s, ip, UnknownUID, to)
		}
	}
	if s.spec != nil && !s.managed() {
		s.lanesFromSlices()
		s.recordWanted(ch.at)
	}
	return moved
}

// lanesFromSlices counts the wanted lane of a Service that no pods speak for.
func (s *service) lanesFromSlices() {
	s.lanes = [2]laneCount{}
	for c := range s.slices.cells() {
		info := s.values.info(c.want)
		s.countLane(&wantEntry{id: c.id, routable: info.routable, fallback: info.fallback}, 1)
	}
}

// sliceRoots says which root a step of the rules belongs to that this slice
// event makes: that of the step in the slices plane which the event satisfied;
// where another endpoint's step brought it about (the last ready one left, or
// a ready one came back), that one's; where a controller that is behind writes
// what is no longer wanted, that of the step it still follows; else the slice
// event itself.
func (ch *change) sliceRoots(s *service, moved map[EndpointID]bool) func(EndpointID, direction) *path {
	if ch.baseline {
		return nil
	}
	return func(id EndpointID, d direction) *path {
		if (id == EndpointID{}) {
			return s.pathFor(ch.rootHere(), id, CauseSliceEdited, OpService, ch.moment())
		}
		if st := pickStep(ch.satisfied[id], d); st != nil {
			st.path.steer(d)
			return st.path
		}
		c := s.slices.find(id)
		if !moved[id] && c != nil {
			cause := CauseHintsChanged
			if s.values.info(c.had).fallback {
				cause = CauseFallback
			}
			if st := pickStep(ch.satisfiedAll, -d); st != nil {
				return s.pathFor(st.path.root, id, cause, opOf(d), st.path.Origin)
			}
			return s.pathFor(ch.rootHere(), id, cause, opOf(d), ch.moment())
		}
		if c != nil {
			if st := pickStep(c.open, d); st != nil && st.dir == d {
				return st.path
			}
			if c.after != nil {
				for _, st := range slices.Backward(c.after.lost) {
					if st.val == c.had && ch.at.Sub(st.lostAt) <= ch.m.opt.Budgets.Slices && s.pathIDs[st.path.ID] == st.path {
						return st.path // written by a controller that was behind
					}
				}
			}
		}
		p := s.pathFor(ch.rootHere(), id, CauseSliceEdited, opOf(d), ch.moment())
		if c != nil {
			c.remember().edited = p
		}
		return p
	}
}

// pickStep prefers a step in the given direction, the latest of them.
func pickStep(steps []*step, d direction) *step {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].dir == d {
			return steps[i]
		}
	}
	if len(steps) > 0 {
		return steps[len(steps)-1]
	}
	return nil
}

func opOf(d direction) Op {
	switch d {
	case dirAdd:
		return OpAdd
	case dirRemove:
		return OpRemove
	}
	return OpChange
}

// steer lets the rules say what a path did when the pod's word did not: a pod
// that was routed to while it terminated is removed when it is gone.
func (p *path) steer(d direction) {
	if p.Op == OpChange && !p.fixedOp && d != dirChange {
		p.Op = opOf(d)
		p.touch()
	}
}

// settleOps takes back the removal of an endpoint that left the ready ones but
// is still to be routed to, because it serves while it terminates and nothing
// else is left.
func (ch *change) settleOps(s *service) {
	if len(s.ruleNodes)+len(s.groups) == 0 || !s.rulesKnown() {
		return
	}
	for _, st := range ch.satisfiedAll {
		p := st.path
		if p.Op != OpRemove || len(p.rules) > 0 {
			continue
		}
		if slices.ContainsFunc(s.planes(), func(pl *plane) bool { return pl.class != nil && pl.class.want[p.Endpoint.EndpointID] != absent }) {
			p.Op = OpChange
			p.touch()
		}
	}
}
