package timeline

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// Instant is how a Service stood at one moment: what it was, what every plane had
// and was wanted to have, and what a statement about that rested on.
//
// Asked later, it says what a Snapshot would have said that was taken then, once the
// reordering window had passed. Four things are told better than was possible then:
//   - a gap that was found afterwards lies over the time since its source's last
//     word, for what was said then is taken back;
//   - what is claimed of the past, by pods' own words or an agent's log, may have
//     been learnt since;
//   - endpoints have the names and ports by which they are known now;
//   - changes that two watches told within their disorder stand at the later of
//     their times.
//
// Paths and lags are not of an instant: a node's change that was observed up to
// Options.LookBack before the slice that wants it turns into its arrival later, and a
// path that a slice event had to root may find its root. Further back than
// Options.Retention lanes are not kept, and a plane is not Seen.
type Instant struct {
	At time.Time
	// Spec is the Service's as it was known, nil before it was seen; Exists that
	// it was there.
	Spec          *collect.Service
	Exists        bool
	RoutedByProxy bool
	// Provisional: not every needed source has vouched for everything until At.
	// Only Snapshot.At knows that.
	Provisional bool

	State State
	// Since is the start of the oldest difference that counts.
	Since       time.Time
	Differences []Difference // oldest first
	Coverage    Coverage
	// Wanted counts the endpoints that should be routable by the pods' and the
	// Service's word; WantedKnown is false before there was one.
	Wanted      int
	WantedKnown bool
	Pods        []PodInstant // as Service.Pods
	// Slices and Endpoints are nil where Service has none. Rules has the nodes
	// of Service.Rules, and those that were deleted since, by name.
	Slices, Endpoints *PlaneInstant
	Rules             []*PlaneInstant
}

// PodInstant is what a pod's lane showed.
type PodInstant struct {
	Name, UID string
	PodChange
}

// PlaneInstant is how one plane stood.
type PlaneInstant struct {
	ID PlaneID
	// Seen is false before the plane was observed and compared, or when nothing
	// observes it. PlaneChange then says no more than how it is known.
	Seen bool
	PlaneChange
	// Members are the endpoints that it had or was wanted to have.
	Members []MemberInstant
	// Differences are its own, oldest first; those of Instant are all planes'.
	Differences []Difference
	// Past is what is claimed while the plane was not observed yet.
	Past PastChange
	// Claimed: there is such a claim.
	Claimed bool
}

// MemberInstant is what a plane had and wanted of one endpoint.
type MemberInstant struct {
	Endpoint Endpoint
	MemberChange
}

// At says how the Service stood at t.
func (s *Service) At(t time.Time) *Instant {
	in := &Instant{At: t, State: Converged}
	in.specAt(s, t)
	if c, ok := stepAt(s.Wanted, t, func(c *Count) time.Time { return c.At }); ok {
		in.Wanted, in.WantedKnown = c.N, true
	}
	for i := range s.Pods {
		if c, ok := s.Pods[i].At(t); ok {
			in.Pods = append(in.Pods, PodInstant{s.Pods[i].Name, s.Pods[i].UID, c})
		}
	}
	in.planes(s, t, true)
	in.Coverage = s.hist.coverage(t, in.RoutedByProxy)
	in.judge(s.hist)
	return in
}

// PlanesAt is what At says of the planes alone, and of them without Members: Slices,
// Endpoints and Rules with their Differences. It is for tables of many nodes that are
// drawn again and again.
func (s *Service) PlanesAt(t time.Time) *Instant {
	in := &Instant{At: t}
	in.specAt(s, t)
	in.planes(s, t, false)
	return in
}

func (in *Instant) specAt(s *Service, t time.Time) {
	if c, ok := stepAt(s.specs, t, func(c *specChange) time.Time { return c.at }); ok {
		in.Spec, in.Exists = c.spec, c.exists
	} else if s.specs == nil {
		in.Spec, in.Exists = s.Spec, s.Deleted.IsZero() || t.Before(s.Deleted)
	}
	in.RoutedByProxy = in.Spec != nil && desired.WhyNotRouted(in.Spec) == ""
}

func (in *Instant) planes(s *Service, t time.Time, members bool) {
	if s.Slices != nil {
		in.Slices = s.Slices.instant(new(PlaneInstant), t, members)
	}
	if s.Endpoints != nil {
		in.Endpoints = s.Endpoints.instant(new(PlaneInstant), t, members)
	}
	rules := s.rulesAt(t)
	room := make([]PlaneInstant, len(rules))
	if len(rules) > 0 {
		in.Rules = make([]*PlaneInstant, 0, len(rules))
	}
	for i, p := range rules {
		// Services that kube-proxy leaves alone have rules by mistake only.
		if x := p.instant(&room[i], t, members); in.RoutedByProxy || x.Have > 0 || len(x.Differences) > 0 {
			in.Rules = append(in.Rules, x)
		}
	}
}

// At says how a Service stood at t, and whether that may still be taken back; nil
// when there is no such Service.
func (s *Snapshot) At(namespace, name string, t time.Time) *Instant {
	svc := s.Service(namespace, name)
	if svc == nil {
		return nil
	}
	in := svc.At(t)
	in.Provisional = t.After(s.Watermark)
	return in
}

// stepAt is the value at t of a step function.
func stepAt[T any](changes []T, t time.Time, at func(*T) time.Time) (x T, ok bool) {
	n := len(changes)
	if n > 0 && at(&changes[n-1]).After(t) { // most ask for a moment near the end
		n = sort.Search(n, func(i int) bool { return at(&changes[i]).After(t) })
	}
	if n == 0 {
		return x, false
	}
	return changes[n-1], true
}

// rulesAt lists the planes of nodes that were there at t, by name.
func (s *Service) rulesAt(t time.Time) []*Plane {
	out := s.Rules.withHidden()
	for i := range s.dropped {
		d := &s.dropped[i]
		if !t.Before(d.at) {
			continue
		}
		plane := d.plane(s.Rules.meta())
		i, found := slices.BinarySearchFunc(out, plane.ID.Node, func(p *Plane, node string) int { return cmp.Compare(p.ID.Node, node) })
		switch _, seen := plane.At(t); {
		case !found:
			out = slices.Insert(out, i, plane)
		case seen:
			// The node came back; the lane that it had then is this one. Of
			// several the first that was dropped after t.
			if _, later := out[i].At(t); !later {
				out[i] = plane
			}
		}
	}
	return out
}

// instant is how the plane stood at t; in, which is blank, becomes it.
func (p *Plane) instant(in *PlaneInstant, t time.Time, members bool) *PlaneInstant {
	in.ID = p.ID
	c, ok := p.At(t)
	if !ok {
		in.Past, in.Claimed = p.Past.At(t)
		return in
	}
	if in.PlaneChange = c; c.Knowledge == Blind {
		return in
	}
	in.Seen = true
	if !members && c.Agrees() {
		return in // nothing differs
	}
	if members {
		in.Members = make([]MemberInstant, 0, len(p.Members))
	}
	if n := c.Missing + c.Stale + c.Unexpected + c.Changed; n > 0 {
		in.Differences = make([]Difference, 0, n)
	}
	if !members && p.told && !t.Before(p.last) {
		for _, i := range p.odd { // the others agree, and nothing is told of those
			c, since, stopped := memberAt(p.Members[i].Changes, t)
			in.differ(p.Members[i].Endpoint, c, since, stopped)
		}
	} else {
		for i := range p.Members {
			m := &p.Members[i]
			c, since, stopped := memberAt(m.Changes, t)
			if members && (c.Want || c.Have || !c.Agrees && !c.At.IsZero()) {
				in.Members = append(in.Members, MemberInstant{m.Endpoint, c})
			}
			in.differ(m.Endpoint, c, since, stopped)
		}
	}
	front, since, _ := memberAt(p.Frontends, t)
	in.differ(Endpoint{}, front, since, time.Time{})
	sortDifferences(in.Differences)
	return in
}

// memberAt is a member's state at t, since when it differs without a break, and
// since when nothing answers behind it.
func memberAt(changes []MemberChange, t time.Time) (now MemberChange, since, stopped time.Time) {
	n := changesBy(changes, t)
	if n == 0 {
		return now, since, stopped
	}
	now = changes[n-1]
	for i := n - 1; i >= 0 && !changes[i].Agrees; i-- {
		since = changes[i].At
	}
	for i := n - 1; i >= 0 && changes[i].Stopped; i-- {
		stopped = changes[i].At
	}
	return now, since, stopped
}

func (p *PlaneInstant) differ(e Endpoint, c MemberChange, since, stopped time.Time) {
	if c.At.IsZero() || c.Agrees {
		return
	}
	p.Differences = append(p.Differences, Difference{Plane: p.ID, Endpoint: e, Kind: c.kind(), Since: since, Stopped: stopped})
}

// kind names the difference, see Difference.Kind.
func (c *MemberChange) kind() string {
	switch {
	case c.Want && !c.Have:
		return diffNames[missing]
	case c.Have && !c.Want && !c.Unexpected:
		return diffNames[stale]
	case c.Have && !c.Want:
		return diffNames[unexpected]
	}
	return diffNames[changed]
}

// judge says what state the Service was in, as service.judge does of now.
func (in *Instant) judge(h *history) {
	planes := slices.Clone(in.Rules)
	if in.Slices != nil {
		planes = append(planes, in.Slices)
	}
	if in.Endpoints != nil {
		planes = append(planes, in.Endpoints)
	}
	for _, p := range planes {
		in.Differences = append(in.Differences, p.Differences...)
		if p.ID.Kind == PlaneEndpoints || p.ID.Kind == PlaneRules && h.leftOut(p.ID.Node, in.At) {
			continue
		}
		for i := range p.Differences {
			d := &p.Differences[i]
			if in.Since.IsZero() || d.Since.Before(in.Since) {
				in.Since = d.Since
			}
			switch {
			case in.At.After(d.Since.Add(h.budget(p.ID.Kind))):
				in.State = Stalled
			case in.State == Converged:
				in.State = Converging
			}
		}
	}
	if p := in.Slices; in.State == Converged && p != nil && !p.Seen && p.Knowledge != Blind {
		in.State = Unknown
	}
	sortDifferences(in.Differences)
}

func sortDifferences(list []Difference) {
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Plane.Kind, b.Plane.Kind), cmp.Compare(a.Plane.Node, b.Plane.Node),
			compareIDs(a.Endpoint.EndpointID, b.Endpoint.EndpointID))
	})
}

// history is what Services at past moments rest on beside their own lanes. It is
// immutable and shared; nil knows nothing.
type history struct {
	budgets Budgets
	nodes   []nodeHistory // by name
	blinds  []blindChange
	gaps    []Gap
}

// nodeHistory is how one node counted.
type nodeHistory struct {
	name    string
	changes []nodeChange
}

// nodeChange is how a node counted from at until the next change; gaps are left out,
// since they are found later.
type nodeChange struct {
	at       time.Time
	expected bool // it should have rules
	leftOut  bool // it is gone or not ready
	named    bool // as left out
	ruled    bool // its rules are known
	why      string
}

// blindChange is which planes nothing observed, beside gaps, and why nothing reads
// rules, should no node be expected.
type blindChange struct {
	at      time.Time
	planes  map[PlaneID]string
	noRules string
}

// specChange is a Service's spec from at until the next change.
type specChange struct {
	at     time.Time
	spec   *collect.Service
	exists bool
}

// droppedPlane is the plane of a node that was deleted at a moment. Its members are
// kept as those have them who shared them with it.
type droppedPlane struct {
	at    time.Time
	lane  Plane // without members
	began time.Time
	cells *planeView
}

func (s *service) dropPlane(n *node, at time.Time) {
	ctx := s.m.context()
	d := droppedPlane{at: at}
	if p := s.rules[n.name]; p != nil && p.changes.len() > 0 {
		d.cells, d.began = p.show(), p.began
		t := &d.cells.times
		d.lane = ctx.assemble(s.key(), n.name, memberState{changes: t.changes, base: t.base, early: t.early}, p.ports)
		d.lane.Arrivals = d.cells.arrivals
	} else if g := s.groupOf(n); p == nil && g != nil && g.changes.len() > 0 {
		d.cells = g.show()
		d.began, _ = g.group.start(n)
		d.lane = ctx.assemble(s.key(), n.name, g.stateOf(n), g.ports)
	}
	if d.cells != nil {
		s.dropped.append(d)
	}
}

func (s *service) key() serviceKey { return serviceKey{s.namespace, s.name} }

func (d *droppedPlane) plane(meta map[EndpointID]endpointMeta) *Plane {
	p := d.lane
	p.Members, p.Frontends = d.cells.history(meta).from(d.began)
	return &p
}

func (h *history) budget(k PlaneKind) time.Duration {
	b := Options{}.withDefaults().Budgets
	if h != nil {
		b = h.budgets
	}
	if k == PlaneSlices {
		return b.Slices
	}
	return b.Rules
}

func (h *history) leftOut(node string, t time.Time) bool {
	if h == nil {
		return false
	}
	i, ok := slices.BinarySearchFunc(h.nodes, node, func(n nodeHistory, name string) int { return cmp.Compare(n.name, name) })
	if !ok {
		return false
	}
	c, _ := stepAt(h.nodes[i].changes, t, func(c *nodeChange) time.Time { return c.at })
	return c.leftOut
}

// gapAt finds the first gap of the source that covers t.
func (h *history) gapAt(id collect.SourceID, t time.Time) *Gap {
	for i := range h.gaps {
		if g := &h.gaps[i]; g.Source == id && !t.Before(g.From) && (g.To.IsZero() || t.Before(g.To)) {
			return g
		}
	}
	return nil
}

// coverage is what a statement about t rests on.
func (h *history) coverage(t time.Time, routed bool) Coverage {
	var c Coverage
	if h == nil {
		return c
	}
	blind, _ := stepAt(h.blinds, t, func(b *blindChange) time.Time { return b.at })
	c.BlindPlanes = maps.Clone(blind.planes)
	set := func(k PlaneKind, why string) {
		if c.BlindPlanes == nil {
			c.BlindPlanes = map[PlaneID]string{}
		}
		c.BlindPlanes[PlaneID{Kind: k}] = why
	}
	for _, x := range observedPlanes {
		if g := h.gapAt(x.source, t); g != nil && c.BlindPlanes[PlaneID{Kind: x.plane}] == "" {
			set(x.plane, notWatched(g))
		}
	}
	if !routed {
		return c
	}
	for i := range h.nodes {
		n := &h.nodes[i]
		x, ok := stepAt(n.changes, t, func(c *nodeChange) time.Time { return c.at })
		switch {
		case !ok:
		case x.named:
			c.LeftOut = append(c.LeftOut, n.name)
		case !x.expected:
		default:
			c.Expected = append(c.Expected, n.name)
			switch {
			case h.gapAt(collect.RulesSource(n.name), t) != nil:
				c.Gap = append(c.Gap, n.name)
			case x.ruled:
				c.Seen = append(c.Seen, n.name)
			default:
				c.Blind = append(c.Blind, n.name)
				if x.why != "" {
					if c.BlindWhy == nil {
						c.BlindWhy = map[string]string{}
					}
					c.BlindWhy[n.name] = x.why
				}
			}
		}
	}
	if len(c.Expected) == 0 {
		set(PlaneRules, blind.noRules)
	}
	return c
}
