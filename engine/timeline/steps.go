package timeline

import (
	"slices"
	"time"
)

// direction is what a step does to the endpoint's being routable.
type direction int8

const (
	dirRemove direction = -1
	dirChange direction = 0
	dirAdd    direction = 1
)

// step is a step of wanted that had has not caught up with.
type step struct {
	path *path
	hop  *hopState
	val  val
	dir  direction
	rv   uint64 // of the event that made it
	// lostAt is when it was superseded.
	lostAt time.Time
}

// hopState is a Hop with the plane it belongs to.
type hopState struct {
	Hop
	path *path
	// clockError is how far At may be off because it was told on another
	// clock.
	clockError time.Duration
	// write is the slice write that a hop of rules follows, nil when its step
	// was made by something else.
	write *sliceWrite
	// closedAt is when it ended without an arrival.
	closedAt time.Time
}

func (p *plane) direction(from, to val, id EndpointID) direction {
	var f, t bool
	if (id == EndpointID{}) {
		f, t = from != absent, to != absent
	} else {
		f, t = p.routable(from, id), p.routable(to, id)
	}
	switch {
	case t && !f:
		return dirAdd
	case f && !t:
		return dirRemove
	}
	return dirChange
}

// setWant moves what the plane wants of one endpoint. pathOf gives the path that
// the step belongs to; nil, or a plane that is not live, means a baseline: no
// step. It is asked only when there is a step, and may itself answer nil.
func (ch *change) setWant(p *plane, id EndpointID, v val, pathOf func(direction) *path) {
	c := p.find(id)
	if c == nil && v == absent || c != nil && c.want == v {
		return
	}
	c = p.cell(id)
	before := *c
	from := c.want
	c.want = v
	switch {
	case p.live && pathOf != nil:
		ch.step(p, c, from, v, pathOf)
	case len(c.open) > 0:
		ch.closeCell(c)
	}
	c.wantAt = ch.at
	p.update(c, before, ch.at)
}

// step opens a step, and settles what becomes of those still open.
func (ch *change) step(p *plane, c *cell, from, to val, pathOf func(direction) *path) {
	dir := p.direction(from, to, c.id)
	overtaken := false // an open step that this one takes back
	keep := c.open[:0]
	for _, s := range c.open {
		// A step in the same direction is not taken back by a further
		// change: an endpoint that was to leave and now is to be gone
		// altogether still leaves.
		goesOn := dir == dirChange && s.dir != dirChange
		if goesOn && c.had != to {
			keep = append(keep, s)
			continue
		}
		if goesOn && !c.hadBaseline && s.before(c) {
			// It had gone all the way before that was wanted.
			ch.arrive(p, s, c.hadAt, c.hadNB)
			continue
		}
		overtaken = true
		ch.close(s, StatusSuperseded)
		c.lose(s, ch.at)
	}
	clear(c.open[len(keep):])
	c.open = keep

	if c.had == to && !early(ch, p, c) && !ch.handedOver[c] && (overtaken || dir != dirAdd) {
		return // nothing had moved yet, so nothing has to move
	}
	path := pathOf(dir)
	if path == nil {
		return
	}
	for _, x := range []val{from, to} {
		if ports := p.svc.values.info(x).ports; len(ports) > 0 {
			path.Endpoint.Ports = ports
		}
	}
	if overtaken && dir == dirRemove && !p.routable(c.had, c.id) && p.id.Kind == PlaneSlices {
		path.Op = OpChange // it never was routable here
	}
	c.open = slices.DeleteFunc(c.open, func(s *step) bool { return s.path == path })
	h := path.hop(p.id)
	*h = hopState{path: path, write: ch.write, Hop: Hop{Plane: p.id, Step: ch.at, Status: StatusOpen}}
	path.touch()
	s := &step{path: path, hop: h, val: to, dir: dir, rv: ch.e.ResourceVersion}
	switch {
	case c.had != to:
		c.open = append(c.open, s)
	case ch.handedOver[c]:
		ch.close(s, StatusHandedOver)
	case early(ch, p, c):
		ch.arrive(p, s, c.hadAt, c.hadNB)
	default:
		ch.close(s, StatusAlreadyRouted)
	}
}

// keepLost is how many superseded steps a cell remembers.
const keepLost = 4

// lose remembers a superseded step: a controller that has not heard yet may
// still write what it wanted.
func (c *cell) lose(s *step, at time.Time) {
	s.lostAt = at
	a := c.remember()
	if len(a.lost) == keepLost {
		a.lost = slices.Delete(a.lost, 0, 1)
	}
	a.lost = append(a.lost, s)
}

// early reports that had came to be so because of the event that only now shows
// that it was wanted. Between objects of one etcd the versions tell: had was
// written later. A node's rules have no version: there had must have moved
// shortly before, after what was wanted last.
func early(ch *change, p *plane, c *cell) bool {
	switch {
	case c.hadBaseline || c.hadAt.IsZero():
		return false
	case c.hadRV != 0 && ch.e.ResourceVersion != 0:
		return c.hadRV > ch.e.ResourceVersion
	}
	return c.hadAt.After(c.wantAt) && !c.hadAt.Before(ch.at.Add(-ch.m.opt.LookBack-ch.m.clockOf(p.id).Error))
}

// before reports that the step was made before had came to be as it is.
func (s *step) before(c *cell) bool {
	if c.hadRV != 0 && s.rv != 0 {
		return c.hadRV > s.rv
	}
	return !c.hadAt.Before(s.hop.Step)
}

// setHad moves what the plane has of one endpoint.
func (ch *change) setHad(p *plane, id EndpointID, v val) {
	c := p.find(id)
	if c == nil && v == absent || c != nil && c.had == v {
		return
	}
	c = p.cell(id)
	before := *c
	c.had, c.hadAt, c.hadNB, c.hadBaseline = v, ch.at, ch.notBefore, !p.live || ch.baseline
	c.hadRV = ch.e.ResourceVersion
	if p.live {
		ch.arrivals(p, c)
	}
	if c.had == c.want {
		c.after.forgetLost() // whoever wrote it has heard of everything
	}
	p.update(c, before, ch.at)
}

// arrivals closes the open steps that had has caught up with. A step that was
// overtaken by a further change in its own direction arrives with either.
func (ch *change) arrivals(p *plane, c *cell) {
	keep := c.open[:0]
	for _, s := range c.open {
		if c.had == s.val || c.had == c.want {
			ch.arrive(p, s, ch.at, ch.notBefore)
			if p.id.Kind == PlaneSlices {
				if ch.satisfied == nil {
					ch.satisfied = map[EndpointID][]*step{}
				}
				ch.satisfied[c.id] = append(ch.satisfied[c.id], s)
				ch.satisfiedAll = append(ch.satisfiedAll, s)
			}
		} else {
			keep = append(keep, s)
		}
	}
	clear(c.open[len(keep):])
	c.open = keep
}

func (ch *change) arrive(p *plane, s *step, at, notBefore time.Time) {
	h := s.hop
	if g := ch.m.openGapOf(p.id); g != nil && notBefore.IsZero() && !h.Step.After(g.From) && g.From.Before(at) {
		notBefore = g.From // it may have arrived in what nobody saw
	}
	h.At, h.NotBefore, h.Note, h.Generation, h.Status = at, notBefore, p.note, p.generation(), StatusArrived
	clock := ch.m.clockOf(p.id)
	h.clockError = clock.Error
	if disorder := h.Step.Sub(at) - clock.Error; p.id.Kind == PlaneRules && disorder > 0 {
		// kube-proxy's watch was quicker than ours.
		ch.m.inv.record(ch.m.slicesSource(), rulesSide, disorder)
	}
	if clock.OneSided && h.Step.Before(at) && h.NotBefore.Before(h.Step) {
		h.NotBefore = h.Step // at is the latest possible; an effect follows its cause
	}
	if p.id.Kind == PlaneRules {
		h.Official, h.Trigger, h.OfficialWhy = ch.official(p, h)
	}
	ch.m.measure(s.path, h)
	p.arrived = append(p.arrived, h)
	p.touch()
	s.path.touch()
}

// close ends a step without an arrival.
func (ch *change) close(s *step, status Status) {
	s.hop.Status, s.hop.closedAt = status, ch.at
	s.path.touch()
}

// closeCell gives up the cell's open steps.
func (ch *change) closeCell(c *cell) {
	for _, s := range c.open {
		ch.close(s, StatusSuperseded)
		c.lose(s, ch.at)
	}
	clear(c.open)
	c.open = c.open[:0]
}

// writeArrivals turns the hops that arrived during this event into one lag to
// write on the lane: that of the slowest.
func (p *plane) writeArrivals() {
	if len(p.arrived) == 0 {
		return
	}
	a := Arrival{Settled: p.counts.Agrees()}
	for i, h := range p.arrived {
		if i == 0 || h.At.After(a.At) {
			a.At = h.At
		}
		if i == 0 || h.Lag > a.Lag {
			a.Lag, a.Error = h.Lag, h.Error
		}
		a.Paths = append(a.Paths, h.path.ID)
	}
	slices.Sort(a.Paths)
	clear(p.arrived)
	p.arrived = p.arrived[:0]
	p.arrivals.append(a)
	p.dirty, p.svc.dirty = true, true
}
