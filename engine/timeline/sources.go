package timeline

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// source is how one source of events is.
type source struct {
	id     collect.SourceID
	state  collect.SourceStateName
	detail string
	// synced: its first list is complete.
	synced bool
	// vouched is the latest time up to which it has told everything.
	vouched time.Time
	gap     *Gap // the open one
	// clock is how its times were brought to the viewer's clock; zero when
	// they are of that clock.
	clock collect.ClockBound
}

// vouch takes the source's word up to t. An object's event is such a word,
// unless the source is between a break and the end of its next list.
func (s *source) vouch(t time.Time) {
	if isKube(s.id) && s.state != collect.SourceSynced {
		return
	}
	if t.After(s.vouched) {
		s.vouched = t
	}
}

// onVouch takes a source's word that nothing is missing.
func (ch *change) onVouch() {
	v := ch.e.Payload.(*collect.Vouch)
	ch.src.vouch(v.Until.Round(0).UTC())
	ch.m.nodesDirty = true
}

// onClockBound takes how far the times of the source's events may be off.
func (ch *change) onClockBound() {
	ch.src.clock, ch.m.clocks = *ch.e.Payload.(*collect.ClockBound), nil
}

// clockOf is how the times of what the plane has were brought to the viewer's
// clock.
func (m *Model) clockOf(p PlaneID) collect.ClockBound {
	if p.Kind == PlaneRules {
		if s := m.sources[collect.RulesSource(p.Node)]; s != nil {
			return s.clock
		}
	}
	return collect.ClockBound{}
}

// coreSources are those whose first list makes the planes known.
var coreSources = []collect.SourceID{
	collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes,
}

// onSourceState takes how a source is.
func (ch *change) onSourceState() {
	st := ch.e.Payload.(*collect.SourceState)
	s, m := ch.src, ch.m
	if st.State == collect.SourceStopped && st.Detail == "" && s.blind() {
		return // told to stop, it still has not seen what it might not see
	}
	s.state, s.detail = st.State, st.Detail
	m.coverageChanged()
	switch st.State {
	case collect.SourceForbidden:
		ch.endWaits()
	case collect.SourceSynced:
		s.vouch(ch.at)
		s.closeGap(m, ch.at)
		if !s.synced {
			s.synced = true
			ch.endWaits()
			if slices.Contains(coreSources, s.id) {
				ch.rebaseline()
			}
		}
	case collect.SourceBroken, collect.SourceStopped:
		// One that stopped without a word was told to.
		if s.gap == nil && (s.synced || !isKube(s.id)) && (st.State == collect.SourceBroken || st.Detail != "") {
			from := s.vouched
			if from.IsZero() {
				from = ch.at
			}
			m.openGap(s, Gap{Source: s.id, From: from, Why: st.Detail})
		}
		ch.endWaits()
	}
}

// openGapOf is the open gap of what the plane has, or nil.
func (m *Model) openGapOf(p PlaneID) *Gap {
	if s := m.sources[sourceOf(p)]; s != nil {
		return s.gap
	}
	return nil
}

func (m *Model) openGap(s *source, g Gap) {
	s.gap = &g
	m.gaps = append(m.gaps, &g)
	m.gapsChanged()
}

// closeGap ends the source's open gap, if there is one.
func (s *source) closeGap(m *Model, at time.Time) {
	if s.gap == nil {
		return
	}
	closed := *s.gap
	closed.To = at
	m.replaceGap(s.gap, &closed)
	s.gap = nil
}

// replaceGap puts a new record in the place of one that snapshots may show.
func (m *Model) replaceGap(old, now *Gap) {
	if i := slices.Index(m.gaps, old); i >= 0 {
		m.gaps[i] = now
	}
	m.gapsChanged()
}

func (m *Model) lastGap(id collect.SourceID) *Gap {
	for i := len(m.gaps) - 1; i >= 0; i-- {
		if m.gaps[i].Source == id {
			return m.gaps[i]
		}
	}
	return nil
}

// gapsChanged makes every plane be drawn anew: a gap may lie in the past.
func (m *Model) gapsChanged() {
	m.coverageChanged()
	for _, s := range m.services {
		s.slices.dirty, s.endpoints.dirty = true, true
	}
}

// onGap takes an interval that a source missed.
func (ch *change) onGap() {
	g := ch.e.Payload.(*collect.Gap)
	s, m := ch.src, ch.m
	now := Gap{Source: s.id, From: g.From.Round(0).UTC(), Why: g.Why}
	if !g.To.IsZero() {
		now.To = g.To.Round(0).UTC()
	}
	m.dropped += g.Lost
	last := m.lastGap(s.id)
	switch {
	case s.gap == nil && now.To.IsZero():
		m.openGap(s, now)
	case s.gap == nil && last != nil && last.From.Equal(now.From):
		m.replaceGap(last, &now) // closed before, by what the source then found
	case s.gap == nil:
		m.gaps = append(m.gaps, &now)
		m.gapsChanged()
	default:
		// Another loss while one is open takes nothing from the first.
		if s.gap.From.Before(now.From) {
			now.From = s.gap.From
		}
		m.replaceGap(s.gap, &now)
		if s.gap = &now; !now.To.IsZero() {
			s.gap = nil
		}
	}
}

// gapConcerns reports whether a gap of the source hides what the plane has or
// what is wanted of it.
func gapConcerns(id collect.SourceID, p PlaneID) bool {
	switch id {
	case collect.SourceServices:
		return true
	case collect.SourcePods:
		return p.Kind != PlaneRules
	case collect.SourceEndpointSlices:
		return p.Kind == PlaneSlices || p.Kind == PlaneRules
	case collect.SourceEndpoints:
		return p.Kind == PlaneEndpoints
	}
	return p.Kind == PlaneRules && id == collect.RulesSource(p.Node)
}

// rebaseline takes things as they are now for the state of the planes that rest
// on the source, after its first list is complete.
func (ch *change) rebaseline() {
	ch.baseline = true
	switch ch.src.id {
	case collect.SourceNodes:
		ch.rebaselineNodes()
	case collect.SourceEndpoints:
		for _, s := range ch.m.services {
			ch.touch(s)
			ch.rereadLegacy(s)
			ch.bringLive(s)
		}
	default:
		ch.rebaselineServices()
	}
}

func (ch *change) rebaselineServices() {
	m := ch.m
	for _, s := range m.services {
		ch.touch(s)
		s.unclass()
		for _, p := range s.planes() {
			p.live = false
			ch.closeOpen(p)
		}
		s.forgetWants(ch)
		affected := ch.remember(m.ns(s.namespace), s)
		ch.rewant(s, affected, nil)
		if m.ready(collect.SourceEndpointSlices) {
			ch.rereadSlices(s)
		}
		ch.rereadLegacy(s)
		for _, g := range slices.Clone(s.groups) {
			ch.replant(g)
		}
		for _, name := range slices.Clone(s.ruleNodes) {
			ch.plantRules(s, name)
		}
		ch.bringLive(s)
	}
}

// rebaselineNodes takes account of which nodes exist.
func (ch *change) rebaselineNodes() {
	m := ch.m
	for _, name := range slices.Sorted(maps.Keys(m.podsBy)) {
		if m.nodeGone(name) {
			ch.rehouse(name, false)
		}
	}
	for _, name := range m.nodeNames {
		if m.nodeGone(name) {
			for _, s := range m.services {
				if s.hasRules(name) {
					ch.touch(s)
					ch.dropRules(s, name)
				}
			}
		}
		ch.exclude(name)
	}
}

// forgetWants drops what was wanted of the slices, to be told anew.
func (s *service) forgetWants(ch *change) {
	clear(s.wants)
	s.lanes = [2]laneCount{}
	for _, p := range []*plane{s.slices, s.endpoints} {
		for _, c := range p.sortedCells() {
			ch.setWant(p, c.id, absent, nil)
			c.wasWanted = false
		}
		p.touch()
	}
}

// needed lists the sources whose word the watermark rests on: those that the
// session says are needed, and the rules of the nodes that are expected, as far
// as anything reads them. Rules of nodes that do not count are not needed.
func (m *Model) needed() []collect.SourceID {
	if m.needs != nil {
		return m.needs
	}
	needs := m.session.Needs
	if len(needs) == 0 {
		needs = []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices}
	}
	var out []collect.SourceID
	for _, id := range needs {
		node, isRules := strings.CutPrefix(string(id), collect.SourceRulesPrefix)
		if !isRules || !m.leftOut(node) {
			out = append(out, id)
		}
	}
	for node := range m.expectedNodes() {
		if id := collect.RulesSource(node); m.sources[id] != nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	m.needs = slices.Compact(out)
	return m.needs
}

// watermark is the latest time that every needed source has vouched for; zero
// before all have.
func (m *Model) watermark() time.Time {
	var w time.Time
	for i, id := range m.needed() {
		s := m.sources[id]
		if s == nil || s.vouched.IsZero() {
			return time.Time{}
		}
		if i == 0 || s.vouched.Before(w) {
			w = s.vouched
		}
	}
	return w
}

func (m *Model) sourceViews() []SourceStatus {
	needed := m.needed()
	has := func(id collect.SourceID) bool { _, ok := slices.BinarySearch(needed, id); return ok }
	out := make([]SourceStatus, 0, len(m.sources))
	for id, s := range m.sources {
		detail := s.detail
		if name, ok := rulesNode(id); ok && m.nodes[name] != nil && m.nodes[name].elsewhere != "" && !s.blind() {
			detail = m.nodes[name].elsewhere
		}
		out = append(out, SourceStatus{ID: id, State: s.state, Detail: detail, Vouched: s.vouched, Needed: has(id)})
	}
	for _, id := range needed {
		if m.sources[id] == nil {
			out = append(out, SourceStatus{ID: id, State: collect.SourceStarting, Needed: true})
		}
	}
	slices.SortFunc(out, func(a, b SourceStatus) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}
