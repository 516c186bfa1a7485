package timeline

import (
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/kconverge/kconverge/collect"
)

// planeView is the immutable form of a plane of rules: of one node or of a group.
type planeView struct {
	node     string // of a plane of one node
	members  nodeSet
	n        int
	starts   *starts
	times    groupTimes // of one node: as they are
	arrivals []Arrival
	common   map[EndpointID]*cell
	// root as in plane, and whether there are rootFront.
	root      *ruleClass
	rootFront bool
	infos     []valInfo  // by val
	own       []cellView // by endpoint
	began     time.Time
	ports     []collect.RulePort
	empty     bool

	// made is the Plane that was made of it last, for a context and meta: most
	// nodes' planes are those of the snapshot before.
	mu      sync.Mutex                  `graph:"-"`
	made    weak.Pointer[Plane]         `graph:"-"`
	madeCtx weak.Pointer[viewContext]   `graph:"-"`
	madeFor map[EndpointID]endpointMeta `graph:"-"`
}

type cellView struct {
	id      EndpointID
	dropped bool
	ports   []int32
	changes []MemberChange
}

// findView is where an endpoint's cell is among those of a view, or would be.
func findView(list []cellView, id EndpointID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(c cellView, id EndpointID) int { return compareIDs(c.id, id) })
}

// show gives the immutable form of a plane of rules.
func (p *plane) show() *planeView {
	if p.shown != nil && !p.dirty {
		return p.shown
	}
	p.dirty = false
	v := &planeView{node: p.id.Node, began: p.began, ports: p.ports, arrivals: p.arrivals.view(), empty: p.empty()}
	before := p.shown
	v.times = groupTimes{changes: p.changes.view(), early: p.early[:len(p.early):len(p.early)], base: p.base, moved: p.moved}
	if g := p.group; g != nil {
		v.members, v.n, v.starts = slices.Clone(g.members), g.n, g.starts
		v.times.marks, v.times.earlyMarks = g.marks, g.earlyMarks
		v.common = p.share()
		v.root, v.rootFront, v.infos = p.root, p.rootFront != absent, p.svc.values.infos
	} else {
		v.common = p.common
		v.root, v.rootFront, v.infos = p.root, p.rootFront != absent, p.svc.values.infos
		if before == nil || p.retold {
			v.own = p.showOwn()
		} else {
			v.own = p.showTurned(before.own)
		}
	}
	p.shown, p.turned, p.retold = v, p.turned[:0], false
	return v
}

// showOwn gives the immutable form of the plane's own cells.
func (p *plane) showOwn() []cellView {
	out := make([]cellView, 0, len(p.own))
	for id, c := range p.own {
		out = append(out, c.show(id))
	}
	slices.SortFunc(out, func(a, b cellView) int { return compareIDs(a.id, b.id) })
	return out
}

// showTurned is showOwn by what has changed since the last time.
func (p *plane) showTurned(before []cellView) []cellView {
	out := make([]cellView, len(before), len(before)+4)
	copy(out, before)
	for _, id := range p.turned {
		i, shown := findView(out, id)
		c, there := p.own[id]
		switch {
		case there && shown:
			out[i] = c.show(id)
		case there:
			out = slices.Insert(out, i, c.show(id))
		case shown:
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// show is the immutable form of one of own, nil for one that the plane has no more.
func (c *cell) show(id EndpointID) cellView {
	if c == nil {
		return cellView{id: id, dropped: true}
	}
	return cellView{id: id, ports: c.ports, changes: c.changes.view()}
}

// cellHistory is what a plane tells of its cells. Times may be begun.
type cellHistory struct {
	members   []Member // by endpoint
	frontends []MemberChange
}

// from puts begun to its time.
func (h cellHistory) from(began time.Time) ([]Member, []MemberChange) {
	return retimed(h.members, began), retimedChanges(h.frontends, began)
}

func (p *planeView) history(meta map[EndpointID]endpointMeta) (h cellHistory) {
	var beneath []Member
	add := func(id EndpointID, ports []int32, changes []MemberChange) {
		if _, replaced := findView(p.own, id); replaced {
			return
		}
		switch {
		case id == EndpointID{}:
			h.frontends = changes
		case len(changes) > 0:
			beneath = append(beneath, Member{Endpoint: endpointOf(meta, id, ports), Changes: changes})
		}
	}
	if p.root != nil {
		beneath = make([]Member, 0, len(p.root.want))
		for id, v := range p.root.want {
			add(id, p.infos[v].ports, begunMember)
		}
		if p.rootFront {
			add(EndpointID{}, nil, begunMember)
		}
	}
	beneath = slices.Grow(beneath, len(p.common))
	for id, c := range p.common {
		add(id, c.ports, c.changes.items)
	}
	slices.SortFunc(beneath, func(a, b Member) int { return compareIDs(a.Endpoint.EndpointID, b.Endpoint.EndpointID) })
	h.members = make([]Member, 0, len(beneath)+len(p.own))
	for i := range p.own {
		c := &p.own[i]
		switch {
		case c.dropped:
			continue
		case c.id == EndpointID{}:
			h.frontends = c.changes
			continue
		}
		for len(beneath) > 0 && compareIDs(beneath[0].Endpoint.EndpointID, c.id) < 0 {
			h.members, beneath = append(h.members, beneath[0]), beneath[1:]
		}
		if len(c.changes) > 0 {
			h.members = append(h.members, Member{Endpoint: endpointOf(meta, c.id, c.ports), Changes: c.changes})
		}
	}
	h.members = append(h.members, beneath...)
	return h
}

// after is the history of the cells of one node's plane, put to its time, made from the
// plane that was made of a view before, for the same node: most of it is the same. ok is
// false when it has to be told anew.
func (p *planeView) after(before *planeView, made *Plane, same bool, meta map[EndpointID]endpointMeta) (h cellHistory, ok bool) {
	if p.root != before.root || p.rootFront != before.rootFront || !sameMap(p.common, before.common) || !p.began.Equal(before.began) {
		return h, false
	}
	shares := p.root != nil || len(p.common) > 0
	h.frontends = made.Frontends
	if _, was := findView(before.own, EndpointID{}); was {
		h.frontends = nil
	}
	h.members = make([]Member, 0, len(made.Members)+2)
	own, old := p.own, made.Members
	keep := func() { // a member that is shared with other nodes
		if id := old[0].Endpoint.EndpointID; shares {
			if _, was := findView(before.own, id); !was {
				m := old[0]
				if !same {
					m.Endpoint = endpointOf(meta, id, m.Endpoint.Ports)
				}
				h.members = append(h.members, m)
			}
		}
		old = old[1:]
	}
	for i := range own {
		c := &own[i]
		if (c.id == EndpointID{}) {
			h.frontends = c.changes
			continue
		}
		for len(old) > 0 && old[0].Endpoint.EndpointID != c.id && compareIDs(old[0].Endpoint.EndpointID, c.id) < 0 {
			keep()
		}
		m := Member{Changes: c.changes}
		if len(old) > 0 && old[0].Endpoint.EndpointID == c.id {
			if m.Endpoint = old[0].Endpoint; same {
				m.Endpoint.Ports = c.ports
			} else {
				m.Endpoint = endpointOf(meta, c.id, c.ports)
			}
			old = old[1:]
		} else if len(c.changes) > 0 {
			m.Endpoint = endpointOf(meta, c.id, c.ports)
		}
		if !c.dropped && len(c.changes) > 0 {
			h.members = append(h.members, m)
		}
	}
	for len(old) > 0 {
		keep()
	}
	if len(h.members) == 0 {
		h.members = nil
	}
	return h, true
}

// retimed gives members with begun put to its time.
func retimed(members []Member, began time.Time) []Member {
	if len(members) == 0 {
		return nil
	}
	out := slices.Clone(members)
	for i := range out {
		out[i].Changes = retimedChanges(out[i].Changes, began)
	}
	return out
}

func retimedChanges(changes []MemberChange, began time.Time) []MemberChange {
	if len(changes) == 0 || !changes[0].At.Equal(begun) { // nothing is before it
		return changes
	}
	changes = slices.Clone(changes)
	for i := range changes {
		if c := &changes[i]; c.At.Equal(begun) {
			c.At = began
		}
	}
	return changes
}
