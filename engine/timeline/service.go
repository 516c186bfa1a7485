package timeline

import (
	"maps"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// service is everything known about one Service, in the making.
type service struct {
	m               *Model
	namespace, name string
	uid             string
	spec            *collect.Service // the latest; nil before it was seen
	exists          bool
	deleted         time.Time
	heardOf         time.Time // when something first named it
	indexed         string    // its key in namespace.byLabel

	values *values
	// meta is not written once a view has it.
	meta       map[EndpointID]endpointMeta
	metaShared bool
	// members are the pods that count now, tracks all that ever did.
	members map[*podState]struct{}
	tracks  map[*podState]*track
	// wants are the entries that each member has in the slices, and wantsV1
	// in the legacy Endpoints.
	wants   map[*podState][]wantEntry
	lanes   [2]laneCount // IPv4, IPv6
	wanted  series[Count]
	specs   series[specChange]
	dropped series[droppedPlane]
	epSlice map[string]*sliceState
	// sliceRemoved is when one was deleted last.
	sliceRemoved time.Time
	legacy       *legacyState
	// mirror is what mirrored slices should hold.
	mirror map[EndpointID]val
	// owner names, for each address, the endpoint behind it: the one in the
	// slices now, or the last one that was.
	owner map[addr]string
	// strays are addresses with an owner that some node's rules have for somebody
	// else, whom no slice has named yet.
	strays map[addr]struct{}

	slices    *plane
	endpoints *plane
	// rules are the planes of nodes that have one of their own, groups those of
	// all others.
	rules     map[string]*plane
	ruleNodes []string // sorted keys of rules
	groups    []*plane
	pending   []*plane // planes of rules that are to be recorded
	// classes are what nodes' rules should hold now, nil until that is asked;
	// oldClasses what they should before.
	classes    *classes
	oldClasses []*ruleClass

	paths     []*path // by origin, then ID
	pathIndex map[pathKey]*path
	pathIDs   map[string]*path
	diffs     int // differences in slices and rules
	episodes  series[Episode]
	marks     series[Mark]
	conns     series[ConnectionCount]
	failures  series[ConnectionFailure]

	// stallsAt is when the next difference outgrows its budget, growing
	// whether a risk in the view does: both make the view age.
	stallsAt time.Time
	growing  bool

	inChange bool
	dirty    bool
	view     *Service `graph:"-"`

	rulesView  *rulesView `graph:"-"`
	tracksView []PodTrack `graph:"-"` // by first change
}

// endpointMeta is what people call an endpoint.
type endpointMeta struct{ pod, node string }

// wantEntry is one endpoint that a pod should have.
type wantEntry struct {
	id       EndpointID
	val      val
	v1       val
	routable bool
	fallback bool
}

// laneCount counts, in one family, the pods' word for the "wanted" lane.
type laneCount struct{ ready, fallback int }

func newService(m *Model, namespace, name string) *service {
	s := &service{
		m: m, namespace: namespace, name: name,
		values: newValues(), meta: map[EndpointID]endpointMeta{},
		members: map[*podState]struct{}{}, tracks: map[*podState]*track{},
		wants: map[*podState][]wantEntry{}, epSlice: map[string]*sliceState{}, owner: map[addr]string{},
		rules: map[string]*plane{}, pathIndex: map[pathKey]*path{}, pathIDs: map[string]*path{},
	}
	s.slices = newPlane(s, PlaneID{Kind: PlaneSlices})
	s.endpoints = newPlane(s, PlaneID{Kind: PlaneEndpoints})
	s.bringLive()
	return s
}

// bringLive starts the planes of slices and Endpoints, as far as what they rest
// on is known.
func (s *service) bringLive() {
	if s.m.ready(collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices) {
		s.slices.live = true
		s.slices.touch()
	}
	if s.m.ready(collect.SourcePods, collect.SourceServices, collect.SourceEndpoints) {
		s.endpoints.live = true
		s.endpoints.touch()
	}
}

func (s *service) selects(labels map[string]string) bool {
	return s.exists && desired.Selects(s.spec, labels)
}

// managed reports that the EndpointSlice controller says what the slices should
// hold, and that what it goes by is known.
func (s *service) managed() bool {
	return s.spec != nil && len(s.spec.Selector) > 0 && s.spec.Kind != "ExternalName" && s.m.ready(collect.SourcePods)
}

// planes lists all planes, those that stand for several nodes once.
func (s *service) planes() []*plane {
	out := make([]*plane, 0, 2+len(s.groups)+len(s.rules))
	out = append(out, s.slices, s.endpoints)
	out = append(out, s.groups...)
	for _, n := range s.ruleNodes {
		out = append(out, s.rules[n])
	}
	return out
}

// rulePlane returns the plane of a node's rules as one of its own, making it.
func (s *service) rulePlane(node string) *plane {
	p := s.single(node)
	if p == nil {
		p = newPlane(s, PlaneID{Kind: PlaneRules, Node: node})
		if n := s.m.nodes[node]; n != nil {
			p.ports = n.loose[s]
			delete(n.loose, s)
		}
		s.adopt(p)
	}
	return p
}

// call remembers what an endpoint is called.
func (s *service) call(id EndpointID, pod, node string) {
	m, known := s.meta[id]
	was := m
	if pod != "" {
		m.pod = pod
	}
	if node != "" {
		m.node = node
	}
	if known && was == m {
		return
	}
	s.ownMeta()
	s.meta[id] = m
	if was == m {
		return
	}
	for _, p := range []*plane{s.slices, s.endpoints} {
		if p.find(id) != nil {
			p.dirty = true
		}
	}
	for _, p := range s.paths {
		if p.Endpoint.EndpointID == id {
			p.touch()
		}
	}
}

// ownMeta makes meta one that no view has.
func (s *service) ownMeta() {
	if s.metaShared {
		s.meta, s.metaShared = maps.Clone(s.meta), false
	}
}

func (s *service) endpoint(id EndpointID, ports []int32) Endpoint {
	return endpointOf(s.meta, id, ports)
}

func endpointOf(meta map[EndpointID]endpointMeta, id EndpointID, ports []int32) Endpoint {
	e := bareEndpoint(id)
	e.Ports = ports
	m := meta[id]
	e.Pod, e.Node = m.pod, m.node
	return e
}

// stopped reports that nothing can answer behind the endpoint any more.
func (s *service) stopped(id EndpointID) bool { return !s.stoppedAt(id).IsZero() }

func (s *service) stoppedAt(id EndpointID) time.Time {
	if p := s.m.podsByUID[id.UID]; p != nil {
		return p.exitAt
	}
	return time.Time{}
}

func familyIndex(id EndpointID) int {
	if id.IP.Is4() {
		return 0
	}
	return 1
}

// inLane reports whether an entry should be routable by the pods' word: ready,
// or serving while it terminates in a family without a ready one.
func (s *service) inLane(e *wantEntry) bool {
	return e.routable || e.fallback && s.lanes[familyIndex(e.id)].ready == 0
}

func (s *service) countLane(e *wantEntry, n int) {
	l := &s.lanes[familyIndex(e.id)]
	if e.routable {
		l.ready += n
	}
	if e.fallback {
		l.fallback += n
	}
}

// recordWanted writes the wanted lane's count.
func (s *service) recordWanted(at time.Time) {
	n := 0
	for _, l := range s.lanes {
		if l.ready > 0 {
			n += l.ready
		} else {
			n += l.fallback
		}
	}
	last, ok := s.wanted.last()
	switch {
	case ok && last.N == n, !ok && s.spec == nil:
		return
	case ok && !at.After(last.At):
		s.wanted.replaceLast(Count{At: last.At, N: n})
	default:
		s.wanted.append(Count{At: at, N: n})
	}
	s.dirty = true
}
