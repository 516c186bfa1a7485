package timeline

import (
	"math/bits"
	"slices"
	"time"
)

// Most nodes do the same for a Service, and have done so since they came: their
// rules are one plane, that of a group. What differs between them is kept apart
// from it: the moment from which each has been as it is (begun stands for it in
// the group's plane) and the generation that it was then.
//
// A group only ever goes through what happens to all its members in the same
// way and makes no step: first lists, and what is found with them. A node that
// is to make a step, or whose own rules change, leaves the group first (single)
// and has a plane of its own from there on, built on the group's cells. It goes
// back to a group once retention has let go of what it had of its own (fold.go).

// nodeSet is a set of nodes by their index.
type nodeSet []uint64

func (b nodeSet) has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

func (b *nodeSet) add(i int) {
	for i>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b nodeSet) remove(i int) { b[i>>6] &^= 1 << (i & 63) }

// each calls f with every member, from the lowest index.
func (b nodeSet) each(f func(int)) {
	for w, x := range b {
		for ; x != 0; x &= x - 1 {
			f(w<<6 + bits.TrailingZeros64(x))
		}
	}
}

// group is what a plane of several nodes has beside those of one.
type group struct {
	members nodeSet
	n       int
	// starts say when each member began to be as it is and with which
	// generation; nil when that was with its first dump (node.birth).
	starts *starts
	latest time.Time // the latest start
	// sources is node.sourcesLater of all members.
	sources bool
	// pristine: nothing has happened to it since its members' first dumps.
	pristine bool
	// noted are the generations at which the members' rules were looked at
	// last, as of notedSeq; nil for those of their starts. A later dump of a
	// node counts more.
	noted    []uint32
	notedSeq uint64
	// marks give the notes of the plane's changes, earlyMarks the clocks of
	// the early ones: one for each, nil for that of the member's start.
	marks, earlyMarks []*noted
}

// noted is what the nodes, by index, had at some moment: the generation of their
// rules, and, where it matters, how far their times could be off. It is not
// written once it is made.
type noted struct {
	gens   []uint32
	clocks []clockError
}

// starts are indexed by node. They are not written once a view may have them.
type starts struct {
	at  []int64 // in Unix nanoseconds
	gen []uint32
}

// clockError is how far a node's times may be off.
type clockError struct {
	err      time.Duration
	oneSided bool
}

// birth is when and with what a node's rules became known.
type birth struct {
	at    time.Time
	gen   uint32
	clock clockError
}

func (g *group) start(n *node) (at time.Time, gen uint32) {
	if g.starts == nil {
		return n.birth.at, n.birth.gen
	}
	return time.Unix(0, g.starts.at[n.index]).UTC(), g.starts.gen[n.index]
}

// generation is the one at which the node's rules were looked at last.
func (p *plane) generationOf(n *node) uint32 {
	g := p.group
	switch {
	case n.dumpSeq > g.notedSeq && len(p.ports) > 0:
		return n.dumpGen
	case g.noted != nil:
		return g.noted[n.index]
	}
	_, gen := g.start(n)
	return gen
}

// lastNoted is the generation in the note of the plane's last change.
func (p *plane) lastNoted(n *node) uint32 {
	if m := p.group.marks[len(p.group.marks)-1]; m != nil {
		return m.gens[n.index]
	}
	_, gen := p.group.start(n)
	return gen
}

// eachMember calls f with the nodes of a group.
func (p *plane) eachMember(f func(*node)) {
	p.group.members.each(func(i int) { f(p.svc.m.byIndex[i]) })
}

// members lists the nodes of a group.
func (p *plane) members() []*node {
	out := make([]*node, 0, p.group.n)
	p.eachMember(func(n *node) { out = append(out, n) })
	return out
}

func (s *service) newGroup(sources bool) *plane {
	p := newPlane(s, PlaneID{Kind: PlaneRules})
	p.group = &group{sources: sources}
	p.began = begun
	s.groups = append(s.groups, p)
	return p
}

// groupOf finds the group that a node is in, or nil.
func (s *service) groupOf(n *node) *plane {
	for _, g := range s.groups {
		if g.group.members.has(n.index) {
			return g
		}
	}
	return nil
}

// enter takes a node into a group.
func (p *plane) enter(n *node, at time.Time) {
	p.weigh(-1)
	p.group.members.add(n.index)
	p.group.n++
	if at.After(p.group.latest) {
		p.group.latest = at
	}
	p.weigh(1)
	p.dirty, p.svc.dirty = true, true
}

// leave takes a node out of a group.
func (p *plane) leave(n *node) {
	p.weigh(-1)
	p.group.members.remove(n.index)
	p.group.n--
	p.weigh(1)
	p.dirty, p.svc.dirty = true, true
	if p.group.n == 0 {
		p.dropped = true
		p.svc.groups = slices.DeleteFunc(p.svc.groups, func(g *plane) bool { return g == p })
	}
}

// hasRules reports that there is a plane of the node's rules.
func (s *service) hasRules(node string) bool {
	if s.rules[node] != nil {
		return true
	}
	n := s.m.nodes[node]
	return n != nil && s.groupOf(n) != nil
}

// single returns the plane of a node's rules as one of its own, or nil when there
// is none.
func (s *service) single(node string) *plane {
	if p := s.rules[node]; p != nil {
		return p
	}
	if n := s.m.nodes[node]; n != nil {
		if g := s.groupOf(n); g != nil {
			return g.extract(n)
		}
	}
	return nil
}

// extract makes a member's plane its own.
func (g *plane) extract(n *node) *plane {
	s := g.svc
	at, _ := g.group.start(n)
	p := newPlane(s, PlaneID{Kind: PlaneRules, Node: n.name})
	p.common, p.began = g.share(), at
	p.root, p.rootFront = g.root, g.rootFront
	p.waits, p.live, p.counts, p.class, p.ports = g.waits, g.live, g.counts, g.class, g.ports
	p.gen = g.generationOf(n)
	p.note = generationNote(p.gen)
	c := g.stateOf(n)
	p.changes = series[PlaneChange]{items: c.changes}
	p.base, p.moved, p.early = c.base, c.moved, c.early
	g.leave(n)
	p.excluded = s.m.leftOut(n.name)
	s.adopt(p)
	p.weigh(1)
	if g.touched {
		p.touch()
	}
	p.dirty = true
	return p
}

// adopt lists a plane of one node.
func (s *service) adopt(p *plane) {
	s.rules[p.id.Node] = p
	i, _ := slices.BinarySearch(s.ruleNodes, p.id.Node)
	s.ruleNodes = slices.Insert(s.ruleNodes, i, p.id.Node)
}

// split puts some members of a group into a group of their own that is the same.
func (g *plane) split(nodes []*node) *plane {
	if len(nodes) == g.group.n {
		return g
	}
	s := g.svc
	o := s.newGroup(g.group.sources)
	og := o.group
	og.starts, og.latest, og.noted, og.notedSeq = g.group.starts, g.group.latest, g.group.noted, g.group.notedSeq
	og.marks, og.earlyMarks = slices.Clone(g.group.marks), slices.Clone(g.group.earlyMarks)
	o.common = g.share()
	o.root, o.rootFront = g.root, g.rootFront
	o.waits, o.live, o.counts, o.class, o.ports = g.waits, g.live, g.counts, g.class, g.ports
	o.changes = series[PlaneChange]{items: slices.Clone(g.changes.items)}
	o.base, o.moved, o.early = g.base, g.moved, slices.Clone(g.early)
	for _, n := range nodes {
		at, _ := g.group.start(n)
		g.leave(n)
		o.enter(n, at)
	}
	if g.touched {
		o.touch()
	}
	return o
}

// open readies a group for something that happens to all its members now. Those
// for which it is not later than their start leave it.
func (ch *change) open(g *plane) {
	g.group.pristine = false
	if g.group.latest.Before(ch.at) {
		return
	}
	var latest time.Time
	for _, n := range g.members() {
		switch at, _ := g.group.start(n); {
		case !at.Before(ch.at):
			g.extract(n)
		case at.After(latest):
			latest = at
		}
	}
	g.group.latest = latest
}

// memberState is what is the member's own in the plane of its group.
type memberState struct {
	changes []PlaneChange
	base    PlaneChange
	moved   bool
	early   []PastChange
}

func (g *plane) stateOf(n *node) memberState {
	at, gen := g.group.start(n)
	var clock clockError
	if n.birth != nil {
		clock = n.birth.clock
	}
	t := groupTimes{changes: g.changes.items, marks: g.group.marks, early: g.early, earlyMarks: g.group.earlyMarks, base: g.base, moved: g.moved}
	return t.of(n.index, at, gen, clock, g.svc.m.cut)
}

// groupTimes is the history of a group's plane.
type groupTimes struct {
	changes    []PlaneChange
	marks      []*noted
	early      []PastChange
	earlyMarks []*noted
	base       PlaneChange
	moved      bool
}

// of gives the history of one member. cut is the last one of retention.
func (t *groupTimes) of(index int, at time.Time, gen uint32, clock clockError, cut time.Time) memberState {
	when := func(x time.Time) time.Time {
		if x.Equal(begun) {
			return at
		}
		return x
	}
	out := memberState{base: t.base, moved: t.moved}
	if len(t.changes) > 0 {
		out.changes = make([]PlaneChange, len(t.changes))
	}
	for i, c := range t.changes {
		g := gen
		if m := t.marks[i]; m != nil {
			g = m.gens[index]
		}
		c.At, c.Note = when(c.At), generationNote(g)
		out.changes[i] = c
	}
	out.base.At = when(t.base.At)
	if !out.base.At.IsZero() && out.base.At.Before(cut) {
		out.base, out.moved = PlaneChange{}, true
		return out
	}
	for i, c := range t.early {
		k, g := clock, gen
		if m := t.earlyMarks[i]; m != nil {
			k, g = m.clocks[index], m.gens[index]
		}
		c.At, c.Error, c.OneSided = when(c.At), k.err, k.oneSided
		if c.Note != "" {
			c.Note = generationNote(g)
		}
		out.early = append(out.early, c)
	}
	return out
}
