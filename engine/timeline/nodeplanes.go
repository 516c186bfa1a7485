package timeline

import (
	"slices"
)

// NodePlanes are the planes of the rules of all nodes for one Service, as of its
// snapshot. What nodes have in common is kept once; the planes themselves are
// made when they are asked for. It is immutable and safe for concurrent use. The
// zero value has none.
type NodePlanes struct {
	list []*Plane
	view *rulesView
}

// PlanesOf puts planes together that were made by hand. They must be sorted by
// node.
func PlanesOf(planes ...*Plane) NodePlanes { return NodePlanes{list: planes} }

// Len is how many planes there are.
func (n NodePlanes) Len() int {
	if n.view == nil {
		return len(n.list)
	}
	return n.view.len()
}

// All lists the planes by node name. Neither they nor the list are to be
// changed. Asking again soon gives the same ones as long as they are in use.
func (n NodePlanes) All() []*Plane {
	if n.view == nil {
		return n.list
	}
	return n.view.all(nil).planes
}

// MadePlanes keep the planes that All gives in use. It is immutable.
type MadePlanes struct {
	view *rulesView
	list *planeList
}

// Make makes the planes that All gives from now on, for as long as somebody has what it
// returns. It costs less after those of the same Service at another moment, whose
// planes it takes as far as they have not changed; before may be nil.
func (n NodePlanes) Make(before *MadePlanes) *MadePlanes {
	switch {
	case n.view == nil:
		return &MadePlanes{}
	case before == nil:
		return &MadePlanes{n.view, n.view.all(nil)}
	}
	return &MadePlanes{n.view, n.view.all(before.view)}
}

// Latest are the last changes of the first planes by node name, n at most; one without
// any is the zero PlaneChange. It makes no planes.
func (n NodePlanes) Latest(most int) []PlaneChange {
	if n.view != nil {
		return n.view.latest(most)
	}
	out := make([]PlaneChange, min(most, len(n.list)))
	for i := range out {
		out[i] = lastOf(n.list[i])
	}
	return out
}

func lastOf(p *Plane) (c PlaneChange) {
	if n := len(p.Changes); n > 0 {
		c = p.Changes[n-1]
	}
	return c
}

// Of returns the plane of a node, or nil.
func (n NodePlanes) Of(node string) *Plane {
	if n.view == nil {
		for _, p := range n.list {
			if p.ID.Node == node {
				return p
			}
		}
		return nil
	}
	return n.view.of(node)
}

// withHidden is All, and with it the planes of nodes that have nothing, while
// kube-proxy leaves the Service alone. The list is the caller's.
func (n NodePlanes) withHidden() []*Plane {
	if n.view == nil {
		return slices.Clone(n.list)
	}
	if n.view.routed {
		return slices.Clone(n.All())
	}
	return n.view.make(true, nil)
}

func (n NodePlanes) meta() map[EndpointID]endpointMeta {
	if n.view == nil {
		return nil
	}
	return n.view.meta
}

// Agreeing counts the nodes that are seen and whose rules are as wanted now. It
// makes no planes where it can do without.
func (n NodePlanes) Agreeing() int {
	agrees := func(c []PlaneChange) bool {
		return len(c) > 0 && c[len(c)-1].Knowledge == Known && c[len(c)-1].Agrees()
	}
	sum := 0
	if n.view == nil || n.view.gapped() {
		for _, p := range n.All() {
			if agrees(p.Changes) {
				sum++
			}
		}
		return sum
	}
	for _, g := range n.view.groups {
		if n.view.shows(g) && agrees(g.times.changes) {
			sum += g.n
		}
	}
	for _, p := range n.view.singles {
		if n.view.shows(p) && agrees(p.times.changes) {
			sum++
		}
	}
	return sum
}

// Stamp changes with anything in the planes. It is 0 for those made by hand.
func (n NodePlanes) Stamp() uint64 {
	if n.view == nil {
		return 0
	}
	return n.view.stamp
}
