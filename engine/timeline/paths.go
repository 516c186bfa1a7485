package timeline

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// root is the event that moved what was wanted.
type root struct {
	id     string // stable over replays
	source collect.SourceID
	at     time.Time
	// notBefore: the event is only known to lie in [notBefore, at].
	notBefore time.Time
}

// path is a Path that still grows.
type path struct {
	Path
	svc   *service
	root  root
	key   pathKey
	rules []*hopState // by node
	slice *hopState
	v1    *hopState
	// pod is the pod behind the endpoint, nil without one.
	pod *podState
	// fixedOp: the rules' direction does not change what it did.
	fixedOp bool
	// startAt is the time of the event that made the first step.
	startAt time.Time
	view    *Path `graph:"-"`
	// probesFrom is when failed probes begin to be those of this path.
	probesFrom time.Time
}

type pathKey struct {
	root string
	id   EndpointID
}

// touch marks the path as changed since its last view.
func (p *path) touch() {
	p.view = nil
	p.svc.dirty = true
}

// hop returns the path's hop in the plane, making it when it has none.
func (p *path) hop(id PlaneID) *hopState {
	switch id.Kind {
	case PlaneSlices:
		if p.slice == nil {
			p.slice = &hopState{}
		}
		return p.slice
	case PlaneEndpoints:
		if p.v1 == nil {
			p.v1 = &hopState{}
		}
		return p.v1
	}
	i, ok := slices.BinarySearchFunc(p.rules, id.Node, func(h *hopState, n string) int { return cmp.Compare(h.Plane.Node, n) })
	if !ok {
		p.rules = slices.Insert(p.rules, i, &hopState{Hop: Hop{Plane: id}})
	}
	return p.rules[i]
}

// pathFor returns the path of the endpoint that stems from the root, making it
// when there is none.
func (s *service) pathFor(r root, id EndpointID, cause Cause, op Op, origin Moment) *path {
	key := pathKey{r.id, id}
	if p := s.pathIndex[key]; p != nil {
		return p
	}
	p := &path{svc: s, root: r, key: key, startAt: s.m.at}
	p.Namespace, p.Service = s.namespace, s.name
	p.Cause, p.Op, p.Origin = cause, op, origin
	p.Endpoint = bareEndpoint(id)
	p.ID = s.namespace + "/" + s.name + "/" + r.id
	if (id != EndpointID{}) {
		p.ID += "/" + id.IP.String()
		// Two pods at one address may step because of one event.
		for n := 2; s.pathIDs[p.ID] != nil; n++ {
			p.ID = s.namespace + "/" + s.name + "/" + r.id + "/" + id.IP.String() + "#" + strconv.Itoa(n)
		}
		p.setPod(s.m.podsByUID[id.UID])
	}
	s.pathIndex[key], s.pathIDs[p.ID] = p, p
	i := len(s.paths)
	for i > 0 && comparePaths(p, s.paths[i-1]) < 0 {
		i--
	}
	s.paths = slices.Insert(s.paths, i, p)
	s.dirty = true
	return p
}

func (p *path) setPod(pod *podState) {
	if pod == nil || p.pod != nil {
		return
	}
	p.pod, p.Before = pod, pod.before
	p.tellAfter()
	pod.paths = append(pod.paths, p)
}

// bareEndpoint gives an endpoint that is known by its ID only.
func bareEndpoint(id EndpointID) Endpoint {
	e := Endpoint{EndpointID: id}
	if id.IP.IsValid() {
		e.Family = collect.FamilyOf(id.IP)
	}
	return e
}

func comparePaths(a, b *path) int {
	return cmp.Or(a.Origin.At.Compare(b.Origin.At), cmp.Compare(a.ID, b.ID))
}

// drop forgets a path.
func (s *service) dropPath(p *path) {
	s.forgetPath(p)
	if i := slices.Index(s.paths, p); i >= 0 {
		s.paths = slices.Delete(s.paths, i, i+1)
	}
	s.dirty = true
}

// forgetPath is dropPath but for the list of paths.
func (s *service) forgetPath(p *path) {
	delete(s.pathIndex, p.key)
	delete(s.pathIDs, p.ID)
	if p.pod != nil {
		p.pod.paths = slices.DeleteFunc(p.pod.paths, func(x *path) bool { return x == p })
	}
}

// adopt moves what a path that was rooted at a slice event has to the path whose
// root turns out to be behind that slice event.
func (m *Model) adopt(p, q *path) {
	p.rules = q.rules
	for _, h := range p.rules {
		h.path = p
		m.measure(p, h)
	}
	for _, pl := range p.svc.rules {
		if c := pl.find(p.Endpoint.EndpointID); c != nil {
			for _, s := range c.open {
				if s.path == q {
					s.path = p
				}
			}
		}
	}
	if p.Op == OpChange && !p.fixedOp {
		p.Op = q.Op
	}
	p.svc.dropPath(q)
	p.touch()
}

// measure computes a hop's lags and their error from the path's root.
func (m *Model) measure(p *path, h *hopState) {
	if h.At.IsZero() {
		return
	}
	h.Lag, h.FromStep = h.At.Sub(p.Origin.At), h.At.Sub(h.Step)
	h.Error = m.lagError(p, h.Plane.Kind) + h.clockError
}

// receiptError is the least error of a lag: how far two receipts on one machine
// may be apart from the order of what they report.
const receiptError = time.Millisecond

// lagError is how far a lag may be off, either way: the largest disorder seen so
// far between the two sources, and the interval in which the origin lies.
func (m *Model) lagError(p *path, plane PlaneKind) time.Duration {
	err := m.disorder(p.root.source, plane)
	return err + p.root.width()
}

// width is how long the interval is in which the event lies.
func (r *root) width() time.Duration {
	if r.notBefore.IsZero() || !r.notBefore.Before(r.at) {
		return 0
	}
	return r.at.Sub(r.notBefore)
}

// disorder is the largest seen so far between what a source tells and what a
// plane has.
func (m *Model) disorder(source collect.SourceID, plane PlaneKind) time.Duration {
	switch plane {
	case PlaneSlices:
		return max(receiptError, m.inv.between(source, m.slicesSource()))
	case PlaneEndpoints:
		return max(receiptError, m.inv.between(source, collect.SourceEndpoints))
	case PlaneRules:
		return max(receiptError, m.inv.between(source, m.slicesSource()), m.inv.between(m.slicesSource(), rulesSide))
	}
	return receiptError
}

func (m *Model) slicesSource() collect.SourceID { return collect.SourceEndpointSlices }

// status of the whole path: open while a hop other than the legacy one is.
func (p *path) status() Status {
	if p.slice != nil && p.slice.Status == StatusOpen {
		return StatusOpen
	}
	has := func(s Status) bool {
		return slices.ContainsFunc(p.rules, func(h *hopState) bool { return h.Status == s })
	}
	if has(StatusOpen) {
		return StatusOpen
	}
	if len(p.rules) == 0 {
		if p.slice != nil {
			return p.slice.Status
		}
		return StatusArrived
	}
	for _, s := range [...]Status{StatusArrived, StatusHandedOver, StatusAlreadyRouted, StatusSuperseded} {
		if has(s) {
			return s
		}
	}
	return StatusArrived
}

// fullView makes the path's immutable form.
func (p *path) fullView() *Path {
	if p.view != nil {
		return p.view
	}
	p.tellAfter()
	v := p.Path
	if _, ok := p.svc.meta[p.Endpoint.EndpointID]; ok {
		p.Endpoint = p.svc.endpoint(p.Endpoint.EndpointID, p.Endpoint.Ports)
		v.Endpoint = p.Endpoint
	}
	if p.slice != nil {
		h := p.slice.Hop
		v.Slice = &h
	}
	if p.v1 != nil {
		h := p.v1.Hop
		v.Endpoints = &h
	}
	v.Rules = make([]Hop, len(p.rules))
	for i, h := range p.rules {
		v.Rules[i] = h.Hop
	}
	v.Status = p.status()
	v.end, v.told = v.End(), true
	v.Risk = p.risk()
	v.Risk.WrongPod, v.Risk.WrongPodGrowing = p.wrongPod()
	p.view = &v
	return p.view
}
