package timeline

import (
	"iter"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// Snapshot says what is known now. It is immutable, and a Service that nothing
// happened to since the last one is the same pointer.
func (m *Model) Snapshot() *Snapshot {
	s := &Snapshot{
		Session: m.session, Seq: m.seq, Now: m.now, First: m.first,
		Watermark: m.watermark(), Sources: m.sourceViews(),
		Marks: m.marks.view(), Faults: m.faults, Narration: m.narration, Reconciler: m.reconcile, Controllers: m.controllers, Work: m.work, Dropped: m.dropped,
		MaxInversion: m.inv.max, MaxResourceVersion: m.maxRV, Workloads: m.workloadViews(),
		Budgets: m.opt.Budgets, Unselected: m.unselected(),
	}
	s.Nodes = m.nodeViews()
	for _, g := range m.gaps {
		s.Gaps = append(s.Gaps, *g)
	}
	for _, svc := range m.services {
		if v := svc.viewNow(); v != nil {
			s.Services = append(s.Services, v)
		}
	}
	return s
}

// viewNow gives the Service's immutable form, or nil when it was never seen.
func (s *service) viewNow() *Service {
	if s.spec == nil {
		return nil
	}
	if s.view != nil && !s.dirty && !s.ages() {
		return s.view
	}
	s.dirty = false
	why := desired.WhyNotRouted(s.spec)
	v := &Service{
		Namespace: s.namespace, Name: s.name, UID: s.uid, Spec: s.spec, Deleted: s.deleted,
		RoutedByProxy: why == "", WhyNot: why,
		Coverage: s.m.coverageOf(s, why == ""), Workloads: s.workloads(),
		Wanted: s.wanted.view(), Pods: s.trackViews(), SliceList: s.sliceViews(),
		Episodes: s.episodeViews(), Marks: s.marks.view(), Facts: s.facts(),
		Connections: s.conns.view(), Failures: s.failures.view(),
		specs: s.specs.view(), dropped: s.dropped.view(), hist: s.m.historyNow(),
	}
	v.Slices = s.slices.viewNow(s.m)
	if s.m.sources[sourceOf(s.endpoints.id)] != nil {
		v.Endpoints = s.endpoints.viewNow(s.m)
	}
	v.Rules = s.ruleViews(v.RoutedByProxy, v.Coverage.Expected)
	s.growing = false
	v.Paths = make([]*Path, len(s.paths))
	for i, p := range s.paths {
		if p.Op == OpRemove && p.view != nil && p.view.Risk.grows() {
			p.view = nil
		}
		v.Paths[i] = p.fullView()
		s.growing = s.growing || v.Paths[i].Risk.grows()
	}
	s.judge(v)
	s.view = v
	return v
}

// ages reports that the last view is no longer right because time has passed: a
// difference has outgrown its budget, or a risk has grown.
func (s *service) ages() bool {
	return s.growing || !s.stallsAt.IsZero() && s.m.now.After(s.stallsAt)
}

// judge lists the differences and says what state the Service is in.
func (s *service) judge(v *Service) {
	v.State, s.stallsAt = Converged, time.Time{}
	now := s.m.now
	planes, n := s.planes(), 0
	for _, p := range planes {
		if !p.waits {
			n += p.differences() * p.weight()
		}
	}
	if n > 0 {
		v.Differences = make([]Difference, 0, n)
	}
	for _, p := range planes {
		if p.waits || p.counts.Agrees() {
			continue
		}
		counted := p.counted()
		budget := s.m.opt.Budgets.Rules
		if p.id.Kind == PlaneSlices {
			budget = s.m.opt.Budgets.Slices
		}
		for d := range p.differ() {
			v.Differences = append(v.Differences, d)
			if !counted {
				continue
			}
			if v.Since.IsZero() || d.Since.Before(v.Since) {
				v.Since = d.Since
			}
			stalls := d.Since.Add(budget)
			if now.After(stalls) {
				v.State = Stalled
				continue
			}
			if v.State == Converged {
				v.State = Converging
			}
			if s.stallsAt.IsZero() || stalls.Before(s.stallsAt) {
				s.stallsAt = stalls
			}
		}
	}
	if v.State == Converged && s.slices.waits {
		v.State = Unknown
	}
	sortDifferences(v.Differences)
}

// differ are the plane's differences, those of each node.
func (p *plane) differ() iter.Seq[Difference] {
	return func(yield func(Difference) bool) {
		for c := range p.differing() {
			d := Difference{Plane: p.id, Endpoint: p.svc.endpoint(c.id, c.ports), Kind: diffNames[c.class], Since: p.when(c.since)}
			if c.stopped {
				d.Stopped = p.svc.stoppedAt(c.id)
			}
			if p.group == nil {
				if !yield(d) {
					return
				}
				continue
			}
			since := d.Since
			for _, n := range p.members() {
				d.Plane.Node = n.name
				if since.Equal(begun) {
					d.Since, _ = p.group.start(n)
				}
				if !yield(d) {
					return
				}
			}
		}
	}
}

func (s *service) sliceViews() []Slice {
	out := make([]Slice, 0, len(s.epSlice))
	for _, sl := range s.sortedSlices() {
		out = append(out, Slice{Name: sl.name, ResourceVersion: sl.rv, Family: sl.slice.Family, Endpoints: len(sl.slice.Endpoints)})
	}
	return out
}

// viewNow gives the immutable form of a plane other than of rules.
func (p *plane) viewNow(m *Model) *Plane {
	if p.view != nil && !p.dirty {
		return p.view
	}
	p.dirty = false
	v := &Plane{ID: p.id, Changes: withGaps(p.changes.view(), m.gaps, p.id), Arrivals: p.arrivals.view(), Past: pastOf(p.base, p.claims, nil)}
	if s := m.sources[sourceOf(p.id)]; len(v.Changes) == 0 && s != nil && s.blind() {
		v.Changes = []PlaneChange{{At: m.first, Knowledge: Blind}}
	}
	cells := p.sortedCells()
	v.Members = make([]Member, 0, len(cells))
	for _, c := range cells {
		if (c.id == EndpointID{}) {
			v.Frontends = c.changes.view()
		} else if c.changes.len() > 0 {
			v.Members = append(v.Members, Member{Endpoint: p.svc.endpoint(c.id, c.ports), Changes: c.changes.view()})
		}
	}
	if len(v.Members) == 0 {
		v.Members = nil
	}
	p.view = v
	return v
}

// withGaps draws the gaps over a plane's changes. Without any they are the same, not
// written anew: a busy plane has very many.
func withGaps(out []PlaneChange, gaps []*Gap, id PlaneID) []PlaneChange {
	if !slices.ContainsFunc(gaps, func(g *Gap) bool { return gapConcerns(g.Source, id) }) && !repeats(out) {
		return out
	}
	for _, g := range gaps {
		if gapConcerns(g.Source, id) {
			out = overlay(out, g.From, g.To)
		}
	}
	// Where gaps overlap, the end of one changes nothing.
	return slices.CompactFunc(slices.Clone(out), func(a, b PlaneChange) bool {
		b.At = a.At
		return a == b
	})
}

// repeats tells that a change is, but for its time, the one before it.
func repeats(changes []PlaneChange) bool {
	for i := 1; i < len(changes); i++ {
		a, b := &changes[i-1], &changes[i]
		if a.Have == b.Have && a.Want == b.Want && a.Note == b.Note {
			x := *b
			if x.At = a.At; x == *a {
				return true
			}
		}
	}
	return false
}

// overlay marks [from, to) as a gap; a zero to means that it is still open.
func overlay(in []PlaneChange, from, to time.Time) []PlaneChange {
	if !to.IsZero() && !to.After(from) {
		return in
	}
	var out []PlaneChange
	var cur PlaneChange
	have, begun, ended := false, false, to.IsZero()
	begin := func(at time.Time) {
		begun = true
		if have {
			c := cur
			c.At, c.Knowledge = at, InGap
			out = append(out, c)
		}
	}
	end := func(at time.Time) {
		ended = true
		if have {
			c := cur
			c.At = at
			out = append(out, c)
		}
	}
	for _, c := range in {
		if !begun && c.At.After(from) {
			begin(from)
		}
		if begun && !ended && c.At.After(to) {
			end(to)
		}
		cur, have = c, true
		inside := !c.At.Before(from) && (to.IsZero() || c.At.Before(to))
		if inside {
			begun = true
			c.Knowledge = InGap
		}
		if begun && !ended && c.At.Equal(to) {
			ended = true
		}
		out = append(out, c)
	}
	if !begun {
		begin(from)
	}
	if !ended {
		end(to)
	}
	return out
}

// sourceOf is the source of what a plane has.
func sourceOf(p PlaneID) collect.SourceID {
	switch p.Kind {
	case PlanePods:
		return collect.SourcePods
	case PlaneEndpoints:
		return collect.SourceEndpoints
	case PlaneRules:
		return collect.RulesSource(p.Node)
	}
	return collect.SourceEndpointSlices
}
