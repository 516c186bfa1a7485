package timeline

import (
	"maps"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// standing is what the Model remembers of how nodes and sources counted, for
// instants of the past.
type standing struct {
	nodes  map[string]*series[nodeChange]
	blinds series[blindChange]
	dirty  bool     // something may have changed since it was recorded
	view   *history `graph:"-"`
}

// record writes down how nodes and sources count from now on.
func (m *Model) recordStanding(at time.Time) {
	if !m.standing.dirty {
		return
	}
	m.standing.dirty, m.standing.view = false, nil
	expected := m.expectedNodes()
	names := map[string]bool{}
	for _, name := range m.allNodes() {
		names[name] = true
		n := m.nodes[name]
		c := nodeChange{at: at, expected: expected[name], leftOut: m.leftOut(name)}
		c.named = c.leftOut && (m.hasRules(name) || n != nil && n.exists)
		s := m.sources[collect.RulesSource(name)]
		if c.ruled = n != nil && n.ruled && (s == nil || !s.blind()); !c.ruled && n != nil {
			c.why = n.elsewhere
		}
		m.standing.note(name, c)
	}
	for name := range m.standing.nodes {
		if !names[name] {
			m.standing.note(name, nodeChange{at: at, leftOut: m.leftOut(name)})
		}
	}
	b := blindChange{at: at, planes: m.blindSources(), noRules: m.whyNoRules()}
	last, ok := m.standing.blinds.last()
	switch {
	case ok && last.noRules == b.noRules && maps.Equal(last.planes, b.planes):
	case ok && !at.After(last.at):
		b.at = last.at
		m.standing.blinds.replaceLast(b)
	default:
		m.standing.blinds.append(b)
	}
}

func (s *standing) note(name string, c nodeChange) {
	l := s.nodes[name]
	if l == nil {
		l = &series[nodeChange]{}
		s.nodes[name] = l
	}
	last, ok := l.last()
	same := last
	same.at = c.at
	switch {
	case ok && same == c:
	case ok && !c.at.After(last.at):
		c.at = last.at
		l.replaceLast(c)
	default:
		l.append(c)
	}
}

// historyNow gives it in its immutable form.
func (m *Model) historyNow() *history {
	if m.standing.view != nil {
		return m.standing.view
	}
	h := &history{budgets: m.opt.Budgets, blinds: m.standing.blinds.view()}
	for _, name := range slices.Sorted(maps.Keys(m.standing.nodes)) {
		h.nodes = append(h.nodes, nodeHistory{name, m.standing.nodes[name].view()})
	}
	for _, g := range m.gaps {
		h.gaps = append(h.gaps, *g)
	}
	m.standing.view = h
	return h
}

// retainStanding drops what is older than the cut.
func (m *Model) retainStanding(cut time.Time) {
	for name, l := range m.standing.nodes {
		trimSteps(l, cut, func(c nodeChange) time.Time { return c.at })
		if last, ok := l.last(); ok && last == (nodeChange{at: last.at, leftOut: last.leftOut}) && last.at.Before(cut) && m.nodes[name] == nil {
			delete(m.standing.nodes, name)
		}
	}
	trimSteps(&m.standing.blinds, cut, func(b blindChange) time.Time { return b.at })
	m.standing.view = nil
}
