package lanes

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// slowestShown is how many nodes keep a row of their own when there are too
// many for all.
const slowestShown = 4

// nodes are the lanes of the nodes' rules: one for each, or, above MaxNodes, how
// long it took until the first, half, 99 in 100 and the last of them agreed,
// and the slowest by name.
func (b *builder) nodes() []Row {
	all := b.svc.Rules.All()
	if len(all) <= b.o.MaxNodes || b.o.AllNodes {
		rows := make([]Row, 0, len(all))
		for _, p := range all {
			rows = append(rows, b.plane(p, RowNode, p.ID.Node))
		}
		return rows
	}
	n := len(all)
	groups := []struct {
		label string
		need  int
	}{{"first node", 1}, {"half the nodes", (n + 1) / 2}}
	if n >= 100 {
		groups = append(groups, struct {
			label string
			need  int
		}{"p99", (n*99 + 99) / 100})
	}
	groups = append(groups, struct {
		label string
		need  int
	}{fmt.Sprintf("all %d nodes", n), n})

	steps, told := b.agreement(all), claims(all)
	var rows []Row
	for _, g := range groups {
		r := Row{Key: "nodes/" + g.label, Kind: RowNodeGroup, Label: g.label, Cells: b.cells()}
		for i, s := range told {
			to := b.o.Now
			if i+1 < len(told) {
				to = told[i+1].At
			}
			if s.N >= g.need {
				b.paint(r.Cells, s.At, to, Had, true)
			}
		}
		b.paintAgreement(r.Cells, steps, n, g.need)
		if k := sort.Search(len(steps), func(i int) bool { return steps[i].at.After(b.o.Cursor) }); k > 0 {
			s := steps[k-1]
			r.Right, r.Tone = fmt.Sprintf("%d of %d =", s.agree, n), Good
			if s.agree < g.need {
				r.Right, r.Tone = fmt.Sprintf("%d of %d", s.agree, n), Warn
			}
		}
		rows = append(rows, r)
	}
	for _, p := range b.slowest(all) {
		r := b.plane(p, RowNode, p.ID.Node)
		r.Nested = true
		rows = append(rows, r)
	}
	return rows
}

// agreementStep counts n planes from at until the next step.
type agreementStep struct {
	at                   time.Time
	agree, unseen, stale int
}

// class is what a lane shows where need of n planes are to agree.
func (s *agreementStep) class(n, need int) Class {
	switch {
	case s.agree >= need:
		return Agrees
	case s.agree+s.unseen >= need:
		return Blind
	case s.stale > n-need:
		return Stale
	}
	return Behind
}

// paintAgreement paints steps that follow each other and look alike as one.
func (b *builder) paintAgreement(cells []Cell, steps []agreementStep, n, need int) {
	for i := 0; i < len(steps); {
		from, class, to := steps[i].at, steps[i].class(n, need), b.o.Now
		for i++; i < len(steps); i++ {
			if steps[i].class(n, need) != class {
				to = steps[i].at
				break
			}
		}
		b.paint(cells, from, to, class, false)
	}
}

// planeChange is a change of one of several planes.
type planeChange struct {
	at    int64 // nanoseconds, which compare faster than times
	plane int32 // in whose changes it is, and where
	place int32
}

// agreement counts over time how many planes agree. What lies before the picture and
// before the cursor is one step. The steps are good as long as the room is.
func (b *builder) agreement(all []*timeline.Plane) []agreementStep {
	left := b.scale.From()
	if b.o.Cursor.Before(left) {
		left = b.o.Cursor
	}
	count := agreementStep{unseen: len(all)}
	tally := func(c Class, d int) {
		switch c {
		case Agrees:
			count.agree += d
		case Empty, Blind, InGap:
			count.unseen += d
		case Stale:
			count.stale += d
		}
	}
	room := b.room
	now := append(room.classes[:0], make([]Class, len(all))...)
	set := func(plane int32, at time.Time, c Class) {
		tally(now[plane], -1)
		now[plane], count.at = c, at
		tally(c, 1)
	}
	changes := room.changes[:0]
	var first time.Time // the latest change before the picture
	for i, p := range all {
		k := sort.Search(len(p.Changes), func(k int) bool { return p.Changes[k].At.After(left) })
		if k > 0 {
			c := &p.Changes[k-1]
			set(int32(i), c.At, classOf(c))
			if c.At.After(first) {
				first = c.At
			}
		}
		for ; k < len(p.Changes); k++ {
			changes = append(changes, planeChange{p.Changes[k].At.UnixNano(), int32(i), int32(k)})
		}
	}
	out := slices.Grow(room.steps[:0], len(changes)+1)
	if !first.IsZero() {
		count.at = first
		out = append(out, count)
	}
	// What is equal here keeps its order by its place.
	room.sortByTime(changes)
	for _, x := range changes {
		c := &all[x.plane].Changes[x.place]
		set(x.plane, c.At, classOf(c))
		if n := len(out); n > 0 && out[n-1].at.Equal(c.At) {
			out[n-1] = count
			continue
		}
		out = append(out, count)
	}
	room.changes, room.steps, room.classes = changes, out, now
	return out
}

// sortByTime sorts what is spread over some time: it is dealt out by its time first, so
// that only a few at a time are compared.
func (r *room) sortByTime(list []planeChange) {
	order := func(a, b planeChange) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Or(cmp.Compare(a.plane, b.plane), cmp.Compare(a.place, b.place))
	}
	const each = 4 // in a part, on average
	parts := int64(len(list) / each)
	if parts < 2 {
		slices.SortFunc(list, order)
		return
	}
	first, last := list[0].at, list[0].at
	for i := range list {
		first, last = min(first, list[i].at), max(last, list[i].at)
	}
	width := (last-first)/parts + 1
	r.ends = slices.Grow(r.ends[:0], int(parts))[:parts]
	ends := r.ends
	clear(ends)
	for i := range list {
		ends[(list[i].at-first)/width]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	r.dealt = slices.Grow(r.dealt[:0], len(list))[:len(list)]
	dealt := r.dealt
	for i := len(list) - 1; i >= 0; i-- {
		k := (list[i].at - first) / width
		ends[k]--
		dealt[ends[k]] = list[i]
	}
	for i, from := range ends { // which are where the parts begin now
		to := len(dealt)
		if i+1 < len(ends) {
			to = ends[i+1]
		}
		slices.SortFunc(dealt[from:to], order)
	}
	copy(list, dealt)
}

// slowest are the planes that differed longest within the window.
func (b *builder) slowest(all []*timeline.Plane) []*timeline.Plane {
	type timed struct {
		p *timeline.Plane
		d time.Duration
	}
	list := make([]timed, 0, len(all))
	for _, p := range all {
		t := timed{p: p}
		for i := inForce(len(p.Changes), b.scale.From(), func(i int) time.Time { return p.Changes[i].At }); i < len(p.Changes); i++ {
			c := &p.Changes[i]
			if !classOf(c).Difference() {
				continue
			}
			from, to := c.At, b.o.Now
			if i+1 < len(p.Changes) {
				to = p.Changes[i+1].At
			}
			if from.Before(b.scale.From()) {
				from = b.scale.From()
			}
			if to.After(from) {
				t.d += to.Sub(from)
			}
		}
		if t.d > 0 {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(x, y timed) int { return cmp.Compare(y.d, x.d) })
	var out []*timeline.Plane
	for _, t := range list[:min(len(list), slowestShown)] {
		out = append(out, t.p)
	}
	return out
}
