package timeline

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// earlyMost is how many states of a plane are kept from before it can be compared.
const earlyMost = 2000

// upstream are the sources whose first list tells what a plane has to be
// compared with.
var upstream = map[PlaneKind][]collect.SourceID{
	PlaneSlices:    {collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices},
	PlaneEndpoints: {collect.SourcePods, collect.SourceServices, collect.SourceEndpoints},
	PlaneRules:     {collect.SourceServices, collect.SourceEndpointSlices},
}

// waits reports that a plane cannot be compared yet, because a first list is
// still to come: an agent's log tells of rules long before. What it has meanwhile
// is no difference, or every attach would begin with an episode. A source that
// will not tell is not waited for.
func (m *Model) waits(p PlaneID) bool {
	for _, id := range upstream[p.Kind] {
		if s := m.sources[id]; s == nil || !s.synced && !s.blind() {
			return true
		}
	}
	return false
}

// endWaits brings in the planes that need not wait any more: what they differ in
// now was found now.
func (ch *change) endWaits() {
	for _, s := range ch.m.services {
		for _, g := range slices.Clone(s.groups) {
			if g.waits && !ch.m.waits(g.id) {
				ch.open(g)
			}
		}
		for _, p := range s.planes() {
			if !p.waits || ch.m.waits(p.id) {
				continue
			}
			ch.touch(s)
			ch.baseline = true
			ch.endWait(p)
		}
	}
}

func (ch *change) endWait(p *plane) {
	p.recount(func() { p.waits = false })
	p.touch()
	for _, c := range p.sortedCells() {
		c = p.cell(c.id)
		if c.class != agrees {
			c.since = ch.at
		}
		// What it had and was compared with before is nothing that its lane may
		// tell.
		c.changes = series[MemberChange]{}
		p.member(c, ch.at)
	}
}

// recordEarly keeps how many endpoints a node's rules have while nothing is there
// to compare them with. It becomes a part of the past.
func (p *plane) recordEarly(at time.Time, baseline bool) (recorded bool) {
	if p.id.Kind != PlaneRules {
		return false
	}
	n := len(p.early)
	if n > 0 && p.early[n-1].Have == p.counts.Have {
		return false
	}
	c := PastChange{At: at, Kind: PastHad, Have: p.counts.Have, Note: p.note}
	if clock := p.svc.m.clockOf(p.id); clock.OneSided {
		c.OneSided = true
	} else {
		c.Error = clock.Error
	}
	if baseline {
		c.Note = ""
	}
	if n == earlyMost {
		p.early = p.early[1:]
	}
	p.early = append(p.early, c)
	return true
}
