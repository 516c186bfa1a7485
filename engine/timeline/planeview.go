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
	infos     []valInfo // by val
	own       map[EndpointID]cellView
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
	dropped bool
	ports   []int32
	changes []MemberChange
}

// show gives the immutable form of a plane of rules.
func (p *plane) show() *planeView {
	if p.shown != nil && !p.dirty {
		return p.shown
	}
	p.dirty = false
	v := &planeView{node: p.id.Node, began: p.began, ports: p.ports, arrivals: p.arrivals.view(), empty: p.empty()}
	v.times = groupTimes{changes: p.changes.view(), early: p.early[:len(p.early):len(p.early)], base: p.base, moved: p.moved}
	if g := p.group; g != nil {
		v.members, v.n, v.starts = slices.Clone(g.members), g.n, g.starts
		v.times.marks, v.times.earlyMarks = g.marks, g.earlyMarks
		v.common = p.share()
		v.root, v.rootFront, v.infos = p.root, p.rootFront != absent, p.svc.values.infos
	} else {
		v.common = p.common
		v.root, v.rootFront, v.infos = p.root, p.rootFront != absent, p.svc.values.infos
		v.own = make(map[EndpointID]cellView, len(p.own))
		for id, c := range p.own {
			if c == nil {
				v.own[id] = cellView{dropped: true}
				continue
			}
			v.own[id] = cellView{ports: c.ports, changes: c.changes.view()}
		}
	}
	p.shown = v
	return v
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
	h.members = make([]Member, 0, len(p.common)+len(p.own))
	if p.root != nil {
		h.members = slices.Grow(h.members, len(p.root.want))
	}
	add := func(id EndpointID, ports []int32, changes []MemberChange) {
		switch {
		case id == EndpointID{}:
			h.frontends = changes
		case len(changes) > 0:
			h.members = append(h.members, Member{Endpoint: endpointOf(meta, id, ports), Changes: changes})
		}
	}
	if p.root != nil {
		for id, v := range p.root.want {
			if _, replaced := p.own[id]; !replaced {
				add(id, p.infos[v].ports, begunMember)
			}
		}
		if _, replaced := p.own[EndpointID{}]; !replaced && p.rootFront {
			add(EndpointID{}, nil, begunMember)
		}
	}
	for id, c := range p.common {
		if _, replaced := p.own[id]; !replaced {
			add(id, c.ports, c.changes.items)
		}
	}
	for id, c := range p.own {
		if !c.dropped {
			add(id, c.ports, c.changes)
		}
	}
	slices.SortFunc(h.members, func(a, b Member) int { return compareIDs(a.Endpoint.EndpointID, b.Endpoint.EndpointID) })
	return h
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
	if !slices.ContainsFunc(changes, func(c MemberChange) bool { return c.At.Equal(begun) }) {
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
