package timeline

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/kconverge/kconverge/collect"
)

// rulesView is the immutable form of the rules of all nodes for one Service.
type rulesView struct {
	ctx      *viewContext
	service  serviceKey
	meta     map[EndpointID]endpointMeta
	groups   []*planeView
	singles  []*planeView // by node
	expected []string     // nodes that should have rules; nil for a Service without
	routed   bool
	stamp    uint64

	mu   sync.Mutex
	made weak.Pointer[planeList]

	namesOnce sync.Once
	names     []string
}

type planeList struct{ planes []*Plane }

// viewContext is what views need of the rest of the model. It is not written
// once it is made.
type viewContext struct {
	first, cut time.Time
	nodes      []nodeView // by index
	index      map[string]int
	pasts      map[string]*toldPast
	gaps       []*Gap
	blind      map[string]bool // nodes whose source will not tell anything
}

type nodeView struct {
	name  string
	birth *birth
}

// context gives what views need of the model now.
func (m *Model) context() *viewContext {
	if m.ctx != nil {
		return m.ctx
	}
	c := &viewContext{first: m.first, cut: m.cut, index: map[string]int{}, pasts: m.pasts, gaps: slices.Clone(m.gaps), blind: map[string]bool{}}
	for i, n := range m.byIndex {
		if n == nil {
			c.nodes = append(c.nodes, nodeView{})
			continue
		}
		c.nodes = append(c.nodes, nodeView{name: n.name, birth: n.birth})
		c.index[n.name] = i
	}
	for id, s := range m.sources {
		if name, ok := rulesNode(id); ok && s.blind() {
			c.blind[name] = true
		}
	}
	m.ctx = c
	return c
}

// ruleViews gives the immutable form of the planes of rules.
func (s *service) ruleViews(routed bool, expected []string) NodePlanes {
	ctx := s.m.context()
	if v := s.rulesView; v != nil && v.ctx == ctx && v.routed == routed && s.metaShared && slices.Equal(v.expected, expected) &&
		!slices.ContainsFunc(s.groups, func(p *plane) bool { return p.dirty }) &&
		len(v.groups) == len(s.groups) && len(v.singles) == len(s.ruleNodes) &&
		!slices.ContainsFunc(s.ruleNodes, func(n string) bool { return s.rules[n].dirty }) {
		return NodePlanes{view: v}
	}
	s.m.stamps++
	v := &rulesView{ctx: ctx, service: serviceKey{s.namespace, s.name}, meta: s.meta, routed: routed, expected: expected, stamp: s.m.stamps}
	s.metaShared = true
	for _, g := range s.groups {
		v.groups = append(v.groups, g.show())
	}
	for _, n := range s.ruleNodes {
		v.singles = append(v.singles, s.rules[n].show())
	}
	s.rulesView = v
	return NodePlanes{view: v}
}

// gapped reports that some source is in a gap that hides rules.
func (v *rulesView) gapped() bool {
	return slices.ContainsFunc(v.ctx.gaps, func(g *Gap) bool {
		_, node := rulesNode(g.Source)
		return g.To.IsZero() && (node || gapConcerns(g.Source, PlaneID{Kind: PlaneRules}))
	})
}

func (v *rulesView) shows(p *planeView) bool { return v.routed || !p.empty }

// covers reports that there is a plane of the node's rules that is not blank.
func (v *rulesView) covers(node string) bool {
	if v.single(node) != nil {
		return true
	}
	i, ok := v.ctx.index[node]
	return ok && slices.ContainsFunc(v.groups, func(g *planeView) bool { return g.members.has(i) })
}

func (v *rulesView) single(node string) *planeView {
	i, ok := slices.BinarySearchFunc(v.singles, node, func(p *planeView, n string) int { return cmp.Compare(p.node, n) })
	if !ok {
		return nil
	}
	return v.singles[i]
}

// blanks are the nodes that should have rules and of which none are known.
func (v *rulesView) blanks() []string {
	var out []string
	for _, n := range v.expected {
		if !v.covers(n) {
			out = append(out, n)
		}
	}
	return out
}

// nodes are the names of all nodes with a plane that is shown, sorted.
func (v *rulesView) nodes() []string {
	v.namesOnce.Do(func() {
		names := v.blanks()
		for _, g := range v.groups {
			if v.shows(g) {
				g.members.each(func(i int) { names = append(names, v.ctx.nodes[i].name) })
			}
		}
		for _, p := range v.singles {
			if v.shows(p) {
				names = append(names, p.node)
			}
		}
		slices.Sort(names)
		v.names = names
	})
	return v.names
}

// latest are the last changes of the first planes by node name, at most so many.
func (v *rulesView) latest(most int) []PlaneChange {
	names := v.nodes()
	names = names[:min(most, len(names))]
	out := make([]PlaneChange, len(names))
	for i, name := range names {
		p := v.single(name)
		if p == nil || !v.shows(p) {
			if p := v.of(name); p != nil {
				out[i] = lastOf(p)
			}
			continue
		}
		lane := v.ctx.assemble(v.service, name, memberState{changes: p.times.changes, base: p.times.base, early: p.times.early}, p.ports)
		out[i] = lastOf(&lane)
	}
	return out
}

func (v *rulesView) len() int {
	n := len(v.blanks())
	for _, p := range v.groups {
		if v.shows(p) {
			n += p.n
		}
	}
	for _, p := range v.singles {
		if v.shows(p) {
			n++
		}
	}
	return n
}

// all are the planes that are shown. Those of before, where the planes are in use that
// were made of it, make it cheaper.
func (v *rulesView) all(before *rulesView) *planeList {
	v.mu.Lock()
	defer v.mu.Unlock()
	if made := v.made.Value(); made != nil {
		return made
	}
	out := &planeList{v.make(false, before)}
	v.made = weak.Make(out)
	return out
}

// make makes the planes; hidden tells whether those too that are not shown.
func (v *rulesView) make(hidden bool, before *rulesView) []*Plane {
	out := make([]*Plane, 0, len(v.expected))
	for _, g := range v.groups {
		if hidden || v.shows(g) {
			h := g.history(v.meta)
			g.members.each(func(i int) { out = append(out, v.member(g, i, h)) })
		}
	}
	for _, p := range v.singles {
		if hidden || v.shows(p) {
			out = append(out, v.plane(p, before))
		}
	}
	for _, n := range v.blanks() {
		out = append(out, v.blank(n))
	}
	slices.SortFunc(out, func(a, b *Plane) int { return cmp.Compare(a.ID.Node, b.ID.Node) })
	return out
}

func (v *rulesView) of(node string) *Plane {
	v.mu.Lock()
	made := v.made.Value()
	v.mu.Unlock()
	if made != nil {
		i, ok := slices.BinarySearchFunc(made.planes, node, func(p *Plane, n string) int { return cmp.Compare(p.ID.Node, n) })
		if !ok {
			return nil
		}
		return made.planes[i]
	}
	if p := v.single(node); p != nil {
		if !v.shows(p) {
			return nil
		}
		return v.plane(p, nil)
	}
	if i, ok := v.ctx.index[node]; ok {
		for _, g := range v.groups {
			if g.members.has(i) && v.shows(g) {
				return v.member(g, i, g.history(v.meta))
			}
		}
	}
	if slices.Contains(v.expected, node) {
		return v.blank(node)
	}
	return nil
}

// blank is the plane of a node whose rules nothing tells.
func (v *rulesView) blank(node string) *Plane {
	return &Plane{ID: PlaneID{Kind: PlaneRules, Node: node}, Changes: []PlaneChange{{At: v.ctx.first, Knowledge: Blind}}}
}

// plane makes the plane of a node that has one of its own, or finds it as long as
// somebody uses it. before is an earlier view of the Service, or nil.
func (v *rulesView) plane(p *planeView, before *rulesView) *Plane {
	var old *planeView
	var oldMade *Plane
	var oldMeta map[EndpointID]endpointMeta
	if before != nil && before.service == v.service {
		if old = before.single(p.node); old != nil {
			oldMade, oldMeta = old.inUse()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if made := p.made.Value(); made != nil && p.madeCtx.Value() == v.ctx && sameMap(p.madeFor, v.meta) {
		return made
	}
	t := &p.times
	out := v.ctx.assemble(v.service, p.node, memberState{changes: t.changes, base: t.base, early: t.early}, p.ports)
	out.Arrivals = p.arrivals
	h, ok := cellHistory{}, false
	if oldMade != nil {
		h, ok = p.after(old, oldMade, sameMap(oldMeta, v.meta), v.meta)
	}
	if ok {
		out.Members, out.Frontends = h.members, h.frontends
	} else {
		out.Members, out.Frontends = p.history(v.meta).from(p.began)
	}
	out.tell()
	p.made, p.madeCtx, p.madeFor = weak.Make(&out), weak.Make(v.ctx), v.meta
	return &out
}

// inUse is the plane that was made last, and for what; nil when nobody uses it any more.
func (p *planeView) inUse() (*Plane, map[EndpointID]endpointMeta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made.Value(), p.madeFor
}

// sameMap reports that two are one map, which is not written once it is in a view.
func sameMap[V any](a, b map[EndpointID]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// member makes the plane of a node in a group.
func (v *rulesView) member(g *planeView, i int, h cellHistory) *Plane {
	n := v.ctx.nodes[i]
	at, gen, clock := time.Time{}, uint32(0), clockError{}
	if n.birth != nil {
		at, gen, clock = n.birth.at, n.birth.gen, n.birth.clock
	}
	if g.starts != nil {
		at, gen = time.Unix(0, g.starts.at[i]).UTC(), g.starts.gen[i]
	}
	out := v.ctx.assemble(v.service, n.name, g.times.of(i, at, gen, clock, v.ctx.cut), g.ports)
	out.Members, out.Frontends = h.from(at)
	return &out
}

// assemble makes the plane of a node without its members.
func (c *viewContext) assemble(service serviceKey, node string, state memberState, ports []collect.RulePort) Plane {
	out := Plane{ID: PlaneID{Kind: PlaneRules, Node: node}, Ports: ports}
	out.Changes = withGaps(state.changes, c.gaps, out.ID)
	if len(out.Changes) == 0 && c.blind[node] {
		out.Changes = []PlaneChange{{At: c.first, Knowledge: Blind}}
	}
	out.Past = pastOf(state.base, c.pasts[node].of(service, state.base), state.early)
	return out
}
