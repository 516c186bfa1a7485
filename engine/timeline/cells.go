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
	return p.common[id]
}

// cell returns the cell of an endpoint for writing, making it.
func (p *plane) cell(id EndpointID) *cell {
	c, dropped := p.own[id]
	switch {
	case c != nil:
		return c
	case dropped || p.common[id] == nil:
		c = &cell{id: id}
	default:
		c = p.copyOf(p.common[id])
	}
	p.own[id] = c
	return c
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
	if p.common[id] != nil {
		p.own[id] = nil
		return
	}
	delete(p.own, id)
}

// cells are all cells, for reading as with find. They come in no order.
func (p *plane) cells() iter.Seq[*cell] {
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

// share puts all cells where other planes can build on them. They are never
// written again.
func (p *plane) share() map[EndpointID]*cell {
	switch {
	case len(p.own) == 0:
		return p.common
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
	p.own = map[EndpointID]*cell{}
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
