package timeline

import (
	"slices"
	"time"
)

// recordRules records those planes of nodes' rules that something happened to.
func (ch *change) recordRules(s *service) {
	// What must not count for all of a group leaves it first. This may add to
	// the list.
	for i := 0; i < len(s.pending); i++ {
		if p := s.pending[i]; p.group != nil && !p.dropped && p.counted() && !p.counts.Agrees() {
			for _, n := range p.members() {
				if ch.m.leftOut(n.name) {
					p.extract(n)
				}
			}
		}
	}
	for i := 0; i < len(s.pending); i++ {
		switch p := s.pending[i]; {
		case p.dropped:
			p.touched = false
		case p.group != nil:
			p.recordGroup(ch.at, ch.baseline, false)
		default:
			p.writeArrivals()
			p.record(ch.at, ch.baseline)
		}
	}
	s.pending = slices.DeleteFunc(s.pending, func(p *plane) bool {
		p.pending = p.touched
		return !p.touched
	})
}

// gensOf are the generations, by node, at which the group's rules were looked at
// last.
func (p *plane) gensOf() []uint32 {
	if p.group.noted != nil && !slices.ContainsFunc(p.members(), func(n *node) bool { return p.generationOf(n) != p.group.noted[n.index] }) {
		return p.group.noted
	}
	out := make([]uint32, len(p.svc.m.byIndex))
	p.eachMember(func(n *node) { out[n.index] = p.generationOf(n) })
	return out
}

// recordGroup is record for a group; starting says that it is at the members'
// starts.
func (p *plane) recordGroup(at time.Time, baseline, starting bool) {
	if !p.touched {
		return
	}
	var by *noted
	if p.waits {
		if p.recordEarly(at, baseline) {
			if !starting {
				by = &noted{gens: p.gensOf(), clocks: p.svc.m.clocksNow()}
			}
			p.group.earlyMarks = append(slices.Clone(p.group.earlyMarks), by)
		}
		return
	}
	if !starting {
		by = &noted{gens: p.gensOf()}
	}
	p.touched = false
	now := p.counts
	now.At, now.Note, now.Baseline = at, "", baseline
	last, ok := p.changes.last()
	if ok && by != nil {
		same := last
		same.At, same.Baseline = now.At, now.Baseline
		if same == now {
			// Only those for whom the note is another one.
			var others []*node
			p.eachMember(func(n *node) {
				if p.lastNoted(n) != by.gens[n.index] {
					others = append(others, n)
				}
			})
			if len(others) == 0 {
				return
			}
			if o := p.split(others); o != p {
				o.touched = true
				o.recordGroup(at, baseline, starting)
				return
			}
		}
	}
	p.begin(now)
	p.dirty, p.svc.dirty = true, true
	marks := slices.Clone(p.group.marks)
	if ok && !at.After(last.At) {
		now.At = last.At
		p.changes.replaceLast(now)
		marks[len(marks)-1] = by
	} else {
		p.changes.append(now)
		marks = append(marks, by)
	}
	p.group.marks = marks
}
