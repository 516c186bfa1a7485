package timeline

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// coverageChanged makes coverage be told anew.
func (m *Model) coverageChanged() {
	m.coverage, m.expected, m.needs, m.ctx = nil, nil, nil, nil
	m.standing.dirty, m.standing.view = true, nil
	m.nodesDirty = true
	for _, s := range m.services {
		s.dirty = true
	}
}

// hasRules reports that something reads the node's rules.
func (m *Model) hasRules(name string) bool {
	if n := m.nodes[name]; n != nil && n.ruled {
		return true
	}
	return m.sources[collect.RulesSource(name)] != nil
}

// expectedNodes are the nodes that should have rules: those that exist and are
// ready, when the session says that rules are read everywhere; else those whose
// rules something reads.
func (m *Model) expectedNodes() map[string]bool {
	if m.expected == nil {
		m.expected = map[string]bool{}
		for _, name := range m.allNodes() {
			if !m.leftOut(name) && (m.hasRules(name) || m.session.NodesExpected) {
				m.expected[name] = true
			}
		}
	}
	return m.expected
}

// allNodes names the nodes that are known by their object or by a source of
// their rules.
func (m *Model) allNodes() []string {
	names := slices.Clone(m.nodeNames)
	for id := range m.sources {
		if name, ok := rulesNode(id); ok && m.nodes[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func rulesNode(id collect.SourceID) (string, bool) {
	const p = collect.SourceRulesPrefix
	if len(id) > len(p) && string(id[:len(p)]) == p {
		return string(id[len(p):]), true
	}
	return "", false
}

// observes reports that what the plane has is known, or was before a gap.
func (m *Model) observes(p PlaneID) bool {
	if p.Kind == PlaneRules {
		n := m.nodes[p.Node]
		return n != nil && n.ruled
	}
	return m.ready(sourceOf(p))
}

// ruleKnowledge is how a node's rules are seen now.
func (m *Model) ruleKnowledge(name string) Knowledge {
	s := m.sources[collect.RulesSource(name)]
	switch n := m.nodes[name]; {
	case s != nil && s.gap != nil:
		return InGap
	case n != nil && n.ruled && (s == nil || !s.blind()):
		return Known
	}
	return Blind
}

// coverageOf says what a statement about the Service rests on.
func (m *Model) coverageOf(s *service, routed bool) Coverage {
	c := Coverage{BlindPlanes: m.blindPlanes(s, routed)}
	if !routed {
		return c
	}
	if m.coverage == nil {
		m.coverage = m.nodeCoverage()
	}
	c.Expected, c.Seen, c.Blind, c.Gap, c.LeftOut = m.coverage.Expected, m.coverage.Seen, m.coverage.Blind, m.coverage.Gap, m.coverage.LeftOut
	c.BlindWhy = m.coverage.BlindWhy
	return c
}

func (m *Model) nodeCoverage() *Coverage {
	c := &Coverage{}
	expected := m.expectedNodes()
	for _, name := range m.allNodes() {
		n := m.nodes[name]
		switch {
		case expected[name]:
			c.Expected = append(c.Expected, name)
			switch m.ruleKnowledge(name) {
			case Known:
				c.Seen = append(c.Seen, name)
			case InGap:
				c.Gap = append(c.Gap, name)
			default:
				c.Blind = append(c.Blind, name)
				if n != nil && n.elsewhere != "" {
					if c.BlindWhy == nil {
						c.BlindWhy = map[string]string{}
					}
					c.BlindWhy[name] = n.elsewhere
				}
			}
		case m.leftOut(name) && (m.hasRules(name) || n != nil && n.exists):
			c.LeftOut = append(c.LeftOut, name)
		}
	}
	return c
}

// blind reports that the source will not tell anything.
func (s *source) blind() bool {
	return s.state == collect.SourceForbidden || s.state == collect.SourceStopped && s.detail != ""
}

// blindPlanes names the planes of a Service that nothing observes.
func (m *Model) blindPlanes(s *service, routed bool) map[PlaneID]string {
	var out map[PlaneID]string
	blind := func(p PlaneKind, why string) {
		if out == nil {
			out = map[PlaneID]string{}
		}
		out[PlaneID{Kind: p}] = why
	}
	out = m.blindSources()
	for _, x := range observedPlanes {
		if src := m.sources[x.source]; src != nil && !src.blind() && src.gap != nil {
			blind(x.plane, notWatched(src.gap))
		}
	}
	if routed && len(m.expectedNodes()) == 0 {
		blind(PlaneRules, m.whyNoRules())
	}
	return out
}

// observedPlanes are the planes other than rules, by the source of what they have.
var observedPlanes = []struct {
	source collect.SourceID
	plane  PlaneKind
}{
	{collect.SourcePods, PlanePods}, {collect.SourceEndpointSlices, PlaneSlices}, {collect.SourceEndpoints, PlaneEndpoints},
}

func notWatched(g *Gap) string {
	return "not watched since " + g.From.Format(time.TimeOnly) + " UTC: " + g.Why
}

// blindSources names the planes whose source will not tell anything; nil when there
// is none.
func (m *Model) blindSources() map[PlaneID]string {
	var out map[PlaneID]string
	for _, x := range observedPlanes {
		src := m.sources[x.source]
		if src == nil || !src.blind() {
			continue
		}
		why := string(src.state)
		if src.detail != "" {
			why += ": " + src.detail
		}
		if out == nil {
			out = map[PlaneID]string{}
		}
		out[PlaneID{Kind: x.plane}] = why
	}
	return out
}

// whyNoRules tells why no node is expected to have rules.
func (m *Model) whyNoRules() string {
	if a := m.sources[collect.SourceAgents]; a != nil && a.detail != "" {
		return a.detail
	}
	return "nothing reads the rules of any node"
}
