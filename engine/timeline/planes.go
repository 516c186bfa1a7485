package timeline

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// diffClass is how a cell's had and wanted disagree.
type diffClass uint8

const (
	agrees diffClass = iota
	missing
	stale
	unexpected
	changed
)

var diffNames = [...]string{"", "missing", "stale", "unexpected", "changed"}

// cell is one endpoint in one plane. In a rules plane the zero EndpointID is
// the Service's own cell: its frontends.
type cell struct {
	id        EndpointID
	want, had val
	// wantAt and hadAt are when they last changed; hadNB bounds the latter
	// from below when it is only known to lie in an interval.
	wantAt, hadAt, hadNB time.Time
	hadRV                uint64 // of the event that brought had, 0 for rules
	// hadBaseline: had is what a first list or dump brought.
	hadBaseline bool
	// wasWanted: it was to be routable at some time.
	wasWanted bool
	class     diffClass
	since     time.Time // of the difference
	stopped   bool      // stale, and nothing can answer behind it
	ports     []int32   // as last seen here
	open      []*step
	after     *aftermath // nil for most
	changes   series[MemberChange]
}

// aftermath is what a cell remembers of steps that are over. They have it by a
// pointer because there are very many cells.
type aftermath struct {
	// edited is the path that this cell's last change in the slices plane
	// rooted, because nothing wanted the change.
	edited *path
	lost   []*step // superseded, the latest last
}

func (a *aftermath) forgetLost() {
	if a != nil {
		a.lost = nil
	}
}

func (c *cell) remember() *aftermath {
	if c.after == nil {
		c.after = &aftermath{}
	}
	return c.after
}

// plane is one plane of one Service: of its slices, of its Endpoints, of the
// rules of one node, or of those of all nodes that have been alike (groups.go).
type plane struct {
	id  PlaneID
	svc *service
	// common are cells that others build on too, own those that this plane has
	// in their place or beside them; nil for one that it has no more. See
	// cells.go.
	common, own map[EndpointID]*cell
	// there are those of own that the plane has or wants: an endpoint that has
	// left stays in own for as long as its history is kept. nil when it has to be
	// told anew.
	there map[EndpointID]*cell `graph:"-"`
	// odd are those of own that differ; nil when it has to be told anew.
	odd map[EndpointID]*cell `graph:"-"`
	// aging are the cells of own that changed, by when, for retention; nil before
	// it has looked at all.
	aging []agingCell
	// root, when set, takes the place of common: all that it wants is had since
	// begun, and so are the frontends rootFront.
	root      *ruleClass
	rootFront val
	began     time.Time // what begun stands for here
	group     *group    // nil for a plane of one node or none
	// live: both had and wanted are known, so changes are steps.
	live     bool
	baseline bool
	// counts are the current state; its At is not used.
	counts   PlaneChange
	changes  series[PlaneChange]
	arrivals series[Arrival]
	note     string
	// base is the baseline that ended the plane's past, its At zero without one;
	// moved: something other than a baseline has told of the plane. claims are
	// the past by the objects' words.
	base   PlaneChange
	moved  bool
	claims []PastChange
	// class is what a rules plane wants, see classes.go; ports are what the
	// node's rules do for the Service now, sorted, and gen the generation in
	// which they were last looked at.
	class *ruleClass
	ports []collect.RulePort
	gen   uint32
	// lastFronts are the frontends of ports when these were looked at last and were
	// frontPorts, front their value.
	frontPorts []collect.RulePort `graph:"-"`
	lastFronts []front            `graph:"-"`
	front      val                `graph:"-"`
	// arrived collects the hops that arrived during the current event.
	arrived []*hopState

	touched bool       // since the last record
	pending bool       // in the Service's list of those to be recorded
	dropped bool       // it is no plane of the Service any more
	dirty   bool       // since the last view
	view    *Plane     `graph:"-"`
	shown   *planeView `graph:"-"` // of a node's rules
	// turned are the cells of own that may have changed since shown was made; retold:
	// own has been made anew.
	turned []EndpointID `graph:"-"`
	retold bool         `graph:"-"`
	// excluded: the node does not count now, see leftOut. waits: what it is
	// compared with is not listed yet, see waits.go.
	excluded, waits bool
	early           []PastChange
}

func newPlane(svc *service, id PlaneID) *plane {
	return &plane{id: id, svc: svc, own: map[EndpointID]*cell{}, counts: PlaneChange{Knowledge: Known}, waits: svc.m.waits(id)}
}

// touch makes the plane be recorded at the end of the event.
func (p *plane) touch() {
	p.touched = true
	if !p.pending && p.id.Kind == PlaneRules {
		p.pending = true
		p.svc.pending = append(p.svc.pending, p)
	}
}

// weight is how many nodes the plane stands for.
func (p *plane) weight() int {
	if p.group != nil {
		return p.group.n
	}
	return 1
}

// differences is how many differences each node of the plane has.
func (p *plane) differences() int {
	return p.counts.Missing + p.counts.Stale + p.counts.Unexpected + p.counts.Changed
}

// weigh takes the plane's differences into those of the Service (n = 1), or out
// of them (n = -1).
func (p *plane) weigh(n int) {
	if p.counted() {
		p.svc.diffs += n * p.differences() * p.weight()
	}
}

// counted says whether differences of the plane are differences of the Service.
func (p *plane) counted() bool { return p.id.Kind != PlaneEndpoints && !p.excluded && !p.waits }

// recount changes what counted tells, and the Service's differences with it.
func (p *plane) recount(change func()) {
	p.weigh(-1)
	change()
	p.weigh(1)
	p.dirty, p.svc.dirty = true, true
}

func (p *plane) routable(x val, id EndpointID) bool {
	return id != EndpointID{} && p.svc.values.info(x).routable
}

func (p *plane) classify(c *cell) diffClass {
	if c.want == c.had {
		return agrees
	}
	if (c.id == EndpointID{}) {
		switch {
		case c.had == absent:
			return missing
		case c.want == absent && c.wasWanted:
			return stale
		case c.want == absent:
			return unexpected
		}
		return changed
	}
	w, h := p.routable(c.want, c.id), p.routable(c.had, c.id)
	switch {
	case w && !h:
		return missing
	case !w && h && c.wasWanted:
		return stale
	case !w && h:
		return unexpected
	}
	return changed
}

// update brings the plane's counts in line with a cell whose want, had or
// stopped state has changed. before is the cell as it was counted.
func (p *plane) update(c *cell, before cell, at time.Time) {
	add := func(c *cell, n int) {
		if c.class != agrees {
			switch c.class {
			case missing:
				p.counts.Missing += n
			case stale:
				p.counts.Stale += n
			case unexpected:
				p.counts.Unexpected += n
			case changed:
				p.counts.Changed += n
			}
			if p.counted() {
				p.svc.diffs += n * p.weight()
			}
		}
		if c.stopped {
			p.counts.Stopped += n
		}
		if p.routable(c.want, c.id) {
			p.counts.Want += n
		}
		if p.routable(c.had, c.id) {
			p.counts.Have += n
		}
	}
	add(&before, -1)
	for _, x := range []val{c.want, c.had} {
		if ports := p.svc.values.info(x).ports; len(ports) > 0 {
			c.ports = ports
		}
	}
	if p.routable(c.want, c.id) || ((c.id == EndpointID{}) && c.want != absent) {
		c.wasWanted = true
	}
	c.class = p.classify(c)
	if before.class == agrees && c.class != agrees && !c.agreedForNoTime(at) {
		c.since = at
	}
	c.stopped = c.class == stale && p.svc.stopped(c.id)
	add(c, 1)
	p.place(c)
	p.ages(c, at)
	p.touch()
	p.dirty, p.svc.dirty = true, true
	p.member(c, at)
}

// agreedForNoTime reports that a difference was gone only between two parts of what
// happens at this moment, so that it goes on.
func (c *cell) agreedForNoTime(at time.Time) bool {
	n := len(c.changes.items)
	return n > 1 && c.changes.items[n-1].Agrees && !c.changes.items[n-2].Agrees && !at.After(c.changes.items[n-1].At)
}

func (p *plane) member(c *cell, at time.Time) {
	m := MemberChange{At: at, Want: p.routable(c.want, c.id), Have: p.routable(c.had, c.id), Agrees: c.class == agrees,
		Unexpected: c.class == unexpected, Stopped: c.stopped}
	if (c.id == EndpointID{}) {
		m.Want, m.Have = c.want != absent, c.had != absent
	}
	last, ok := c.changes.last()
	switch {
	case !ok:
	case last == m.at(last.At):
		return
	case !m.At.After(last.At):
		m.At = last.At
		c.changes.replaceLast(m)
		return
	}
	c.changes.append(m)
}

// at gives the same from another moment on.
func (c MemberChange) at(t time.Time) MemberChange {
	c.At = t
	return c
}

// record writes the plane's state after an event, if it changed.
func (p *plane) record(at time.Time, baseline bool) {
	if !p.touched || !p.svc.m.observes(p.id) {
		return
	}
	if p.waits {
		p.recordEarly(at, baseline)
		return
	}
	p.touched = false
	now := p.counts
	now.At, now.Note = at, p.note
	last, ok := p.changes.last()
	now.Baseline = baseline
	if ok {
		same := last
		same.At, same.Baseline = now.At, now.Baseline
		if same == now {
			return
		}
	}
	p.begin(now)
	if ok {
		if !at.After(last.At) {
			now.At = last.At
			p.changes.replaceLast(now)
			p.dirty, p.svc.dirty = true, true
			return
		}
	}
	p.changes.append(now)
	p.dirty, p.svc.dirty = true, true
}

// know changes how well the plane is seen.
func (p *plane) know(k Knowledge) {
	if p.counts.Knowledge != k {
		p.counts.Knowledge = k
		p.touch()
	}
}

// sortedCells lists the cells by id, for reading as with find.
func (p *plane) sortedCells() []*cell {
	out := slices.Collect(p.cells())
	slices.SortFunc(out, func(a, b *cell) int { return compareIDs(a.id, b.id) })
	return out
}

// generation is the rule generation that the plane shows, 0 for others.
func (p *plane) generation() uint32 {
	if n := p.svc.m.nodes[p.id.Node]; p.id.Kind == PlaneRules && n != nil {
		return n.generation
	}
	return 0
}
