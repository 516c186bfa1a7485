package timeline

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// begun stands, in what the planes of several nodes share, for the moment from
// which each of them has been as it is: another one for each node. No event is
// of that time.
var begun = time.Unix(0, 1).UTC()

// when gives the plane's own time for one in what it shares.
func (p *plane) when(t time.Time) time.Time {
	if t.Equal(begun) {
		return p.began
	}
	return t
}

// find returns the cell of an endpoint for reading its values, or nil. Its times
// may be those of what is shared, see begun.
func (p *plane) find(id EndpointID) *cell {
	if c, ok := p.own[id]; ok {
		return c
	}
	return p.shared(id)
}

// shared returns the cell of an endpoint as the plane has it in common with
// others, or nil.
func (p *plane) shared(id EndpointID) *cell {
	if p.root == nil {
		return p.common[id]
	}
	v := p.root.want[id]
	if (id == EndpointID{}) {
		v = p.rootFront
	}
	if v == absent {
		return nil
	}
	return p.rooted(id, v)
}

// begunMember is the history of an endpoint that has been there since begun. It
// is not written.
var begunMember = []MemberChange{{At: begun, Want: true, Have: true, Agrees: true}}

// rooted gives the cell of an endpoint that is wanted and had since begun. It is not
// written.
func (p *plane) rooted(id EndpointID, v val) *cell {
	c := p.root.rooted[id]
	if c == nil || c.want != v { // another frontend's
		if p.root.rooted == nil {
			p.root.rooted = make(map[EndpointID]*cell, len(p.root.want)+1)
		}
		c = p.makeRooted(id, v)
		p.root.rooted[id] = c
	}
	return c
}

func (p *plane) makeRooted(id EndpointID, v val) *cell {
	return &cell{id: id, want: v, had: v, wantAt: begun, hadAt: begun, since: begun, hadBaseline: true, wasWanted: true,
		ports: p.svc.values.info(v).ports, changes: series[MemberChange]{items: begunMember}}
}

// compact lets the class stand for the cells of a group's plane, if they are just
// what it wants, since begun. So a Service on which nothing happens has none.
func (p *plane) compact() {
	if p.class == nil || !p.counts.Agrees() || p.root != nil {
		return
	}
	n, front := 0, absent
	for c := range p.cells() {
		is := *c
		is.changes, is.open = series[MemberChange]{}, nil
		want := p.class.want[c.id]
		if (c.id == EndpointID{}) {
			want, front = c.want, c.want
		} else {
			n++
		}
		if !slices.Equal(c.changes.items, begunMember) {
			return
		}
		root := p.makeRooted(c.id, want)
		root.changes = is.changes
		if want == absent || !is.same(root) || len(c.open) > 0 {
			return
		}
	}
	if n == len(p.class.want) {
		p.root, p.rootFront, p.common, p.own = p.class, front, nil, map[EndpointID]*cell{}
		p.there, p.odd, p.retold = nil, nil, true
	}
}

// same compares all but the histories.
func (c *cell) same(o *cell) bool {
	return c.id == o.id && c.want == o.want && c.had == o.had && c.wantAt.Equal(o.wantAt) && c.hadAt.Equal(o.hadAt) && c.hadNB.Equal(o.hadNB) && c.since.Equal(o.since) &&
		c.hadRV == o.hadRV && c.hadBaseline == o.hadBaseline && c.wasWanted == o.wasWanted && c.class == o.class && c.stopped == o.stopped && c.after == o.after && slices.Equal(c.ports, o.ports)
}

// cell returns the cell of an endpoint for writing, making it.
func (p *plane) cell(id EndpointID) *cell {
	p.turn(id)
	c, dropped := p.own[id]
	switch {
	case c != nil:
		return c
	case dropped:
		c = &cell{id: id}
	default:
		if shared := p.shared(id); shared != nil {
			c = p.copyOf(shared)
		} else {
			c = &cell{id: id}
		}
	}
	p.own[id] = c
	p.place(c)
	return c
}

// turn notes for the next view that a cell of own is written.
func (p *plane) turn(id EndpointID) {
	switch {
	case p.shown == nil || p.retold:
	case len(p.turned) > len(p.own):
		p.retold = true
	default:
		p.turned = append(p.turned, id)
	}
}

// place keeps the indexes of cells that are there and that differ. c is one of own.
func (p *plane) place(c *cell) {
	switch {
	case p.odd == nil:
	case c.class != agrees:
		p.odd[c.id] = c
	default:
		delete(p.odd, c.id)
	}
	switch {
	case p.there == nil:
	case c.want != absent || c.had != absent:
		p.there[c.id] = c
	default:
		delete(p.there, c.id)
	}
}

// present are the cells that the plane has or wants, for reading as with find, and
// maybe others that are shared. They come in no order.
func (p *plane) present() iter.Seq[*cell] {
	if p.there == nil {
		p.there = make(map[EndpointID]*cell, len(p.own))
		for _, c := range p.own {
			if c != nil {
				p.place(c)
			}
		}
	}
	return func(yield func(*cell) bool) {
		if p.root != nil || len(p.common) > 0 {
			for c := range p.beneath() {
				if !yield(c) {
					return
				}
			}
		}
		for _, c := range p.there {
			if !yield(c) {
				return
			}
		}
	}
}

// differing are the cells that differ, for reading as with find. They come in no order.
func (p *plane) differing() iter.Seq[*cell] {
	if p.odd == nil {
		p.odd = map[EndpointID]*cell{}
		for _, c := range p.own {
			if c != nil {
				p.place(c)
			}
		}
	}
	return func(yield func(*cell) bool) {
		for id, c := range p.common { // what the class stands for agrees
			if c.class == agrees {
				continue
			}
			if _, replaced := p.own[id]; !replaced && !yield(c) {
				return
			}
		}
		for _, c := range p.odd {
			if !yield(c) {
				return
			}
		}
	}
}

// unshare gives up what is shared once the plane has something of its own in place of
// all endpoints in it.
func (p *plane) unshare() {
	if p.group != nil || p.root == nil && len(p.common) == 0 {
		return
	}
	for c := range p.beneath() {
		if (c.id != EndpointID{}) {
			return
		}
	}
	if p.find(EndpointID{}) != nil {
		p.cell(EndpointID{})
	}
	p.root, p.rootFront, p.common = nil, absent, nil
	for id, c := range p.own {
		if c == nil {
			delete(p.own, id)
		}
	}
	p.retold = true
}

// copyOf makes a shared cell the plane's own.
func (p *plane) copyOf(shared *cell) *cell {
	c := *shared
	c.wantAt, c.hadAt, c.hadNB, c.since = p.when(c.wantAt), p.when(c.hadAt), p.when(c.hadNB), p.when(c.since)
	c.changes = series[MemberChange]{items: slices.Clone(c.changes.items)}
	for i := range c.changes.items {
		c.changes.items[i].At = p.when(c.changes.items[i].At)
	}
	return &c
}

// forget drops a cell.
func (p *plane) forget(id EndpointID) {
	p.turn(id)
	if p.shared(id) != nil {
		p.own[id] = nil
	} else {
		delete(p.own, id)
	}
	delete(p.there, id)
	delete(p.odd, id)
}

// cells are all cells, for reading as with find. They come in no order.
func (p *plane) cells() iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for c := range p.beneath() {
			if !yield(c) {
				return
			}
		}
		for _, c := range p.own {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

// beneath are the shared cells that nothing of the plane's own takes the place of.
func (p *plane) beneath() iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		if p.root != nil {
			for id, v := range p.root.want {
				if _, replaced := p.own[id]; !replaced && !yield(p.rooted(id, v)) {
					return
				}
			}
			if _, replaced := p.own[EndpointID{}]; !replaced && p.rootFront != absent && !yield(p.rooted(EndpointID{}, p.rootFront)) {
				return
			}
		}
		for id, c := range p.common {
			if _, replaced := p.own[id]; !replaced && !yield(c) {
				return
			}
		}
	}
}

// held are the cells that are kept as such.
func (p *plane) held() iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for id, c := range p.common {
			if _, replaced := p.own[id]; !replaced && !yield(c) {
				return
			}
		}
		for _, c := range p.own {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

func (p *plane) empty() bool {
	for range p.cells() {
		return false
	}
	return true
}

// share puts all cells where other planes can build on them: together with root
// they are all. They are never written again.
func (p *plane) share() map[EndpointID]*cell {
	switch {
	case len(p.own) == 0:
		return p.common
	case p.root != nil:
		all := map[EndpointID]*cell{}
		for c := range p.cells() {
			all[c.id] = c
		}
		p.root, p.common = nil, all
	case len(p.common) == 0:
		p.common = p.own
	default:
		p.common = maps.Clone(p.common)
		for id, c := range p.own {
			if c == nil {
				delete(p.common, id)
			} else {
				p.common[id] = c
			}
		}
	}
	p.own, p.there, p.odd, p.aging, p.retold = map[EndpointID]*cell{}, nil, nil, nil, true
	return p.common
}

// sortedOwn lists the plane's own cells by id. Only they can have open steps.
func (p *plane) sortedOwn() []*cell {
	out := make([]*cell, 0, len(p.own))
	for _, c := range p.own {
		if c != nil {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *cell) int { return compareIDs(a.id, b.id) })
	return out
}
