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
		for i, s := range steps {
			to := b.o.Now
			if i+1 < len(steps) {
				to = steps[i+1].at
			}
			switch {
			case s.agree >= g.need:
				b.paint(r.Cells, s.at, to, Agrees, false)
			case s.agree+s.unseen >= g.need:
				b.paint(r.Cells, s.at, to, Blind, false)
			case s.stale > n-g.need:
				b.paint(r.Cells, s.at, to, Stale, false)
			default:
				b.paint(r.Cells, s.at, to, Behind, false)
			}
			if !s.at.After(b.o.Cursor) {
				r.Right, r.Tone = fmt.Sprintf("%d of %d =", s.agree, n), Good
				if s.agree < g.need {
					r.Right, r.Tone = fmt.Sprintf("%d of %d", s.agree, n), Warn
				}
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

type agreementStep struct {
	at                   time.Time
	agree, unseen, stale int
}

// agreement counts over time how many planes agree.
func (b *builder) agreement(all []*timeline.Plane) []agreementStep {
	type change struct {
		at    time.Time
		plane int // in whose changes it is, and where
		place int
		class Class
	}
	n := 0
	for _, p := range all {
		n += len(p.Changes)
	}
	changes := make([]change, 0, n)
	for i, p := range all {
		for k, c := range p.Changes {
			changes = append(changes, change{c.At, i, k, classOf(c)})
		}
	}
	// Not a stable sort, which takes several times as long: what is equal here
	// keeps its order by its place.
	slices.SortFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.plane, b.plane), cmp.Compare(a.place, b.place))
	})
	now := make([]Class, len(all))
	var out []agreementStep
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
	for _, c := range changes {
		tally(now[c.plane], -1)
		now[c.plane] = c.class
		tally(c.class, 1)
		count.at = c.at
		if n := len(out); n > 0 && out[n-1].at.Equal(c.at) {
			out[n-1] = count
			continue
		}
		out = append(out, count)
	}
	return out
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
		for i, c := range p.Changes {
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
	sort.SliceStable(list, func(i, j int) bool { return list[i].d > list[j].d })
	var out []*timeline.Plane
	for _, t := range list[:min(len(list), slowestShown)] {
		out = append(out, t.p)
	}
	return out
}
