package report

import (
	"math"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Build makes the document from a snapshot. keep chooses the Services; nil
// keeps all. A Service that was deleted is reported while it still has paths.
func Build(s *timeline.Snapshot, keep func(*timeline.Service) bool) *Report {
	r := &Report{
		Schema:   Schema,
		Source:   Source{Kind: s.Session.Kind, Name: s.Session.Name, ControlPlane: s.Session.ControlPlane, Rules: s.Session.Rules},
		AsOf:     s.Watermark.UTC(),
		Window:   Window{From: s.First.UTC(), To: s.Now.UTC()},
		Services: []Service{},
		Findings: []Finding{},
		Gaps:     []Gap{},
	}
	for _, svc := range s.Services {
		if keep == nil || keep(svc) {
			r.Services = append(r.Services, service(svc, s))
		}
	}
	for _, g := range s.Gaps {
		r.Gaps = append(r.Gaps, Gap{Source: string(g.Source), From: g.From.UTC(), To: timeOrNil(g.To), Why: g.Why})
	}
	r.Faults = faults(s)
	for _, f := range findings.Find(s, keep) {
		r.Findings = append(r.Findings, Finding{
			Code: f.Code.ID, Severity: string(f.Code.Severity), Object: f.Object, Message: f.Message, Fix: f.Fix, Since: timeOrNil(f.Since),
		})
	}
	return r
}

func service(svc *timeline.Service, s *timeline.Snapshot) Service {
	out := Service{
		Namespace: svc.Namespace,
		Name:      svc.Name,
		State:     string(svc.State),
		Coverage: Coverage{
			Expected: len(svc.Coverage.Expected),
			Seen:     len(svc.Coverage.Seen),
			Blind:    list(svc.Coverage.Blind),
			Gap:      list(svc.Coverage.Gap),
			LeftOut:  list(svc.Coverage.LeftOut),
			BlindWhy: svc.Coverage.BlindWhy,
		},
		Planes: Planes{
			Slices:    plane(svc.Slices, s.Now),
			Endpoints: plane(svc.Endpoints, s.Now),
			Rules:     map[string]Plane{},
		},
		Paths:    []Path{},
		Episodes: []Episode{},
	}
	gap := slices.ContainsFunc(s.Gaps, func(g timeline.Gap) bool { return g.Source == collect.SourcePods && g.To.IsZero() })
	if _, blind := svc.Coverage.BlindPlanes[timeline.PlaneID{Kind: timeline.PlanePods}]; !blind || gap {
		out.Planes.Pods = &Have{Have: podsOf(svc, s.Now), Gap: gap}
	}
	for id, why := range svc.Coverage.BlindPlanes {
		if out.Coverage.BlindPlanes == nil {
			out.Coverage.BlindPlanes = map[string]string{}
		}
		out.Coverage.BlindPlanes[id.String()] = why
	}
	for _, p := range svc.Rules.All() {
		if seen := plane(p, s.Now); seen != nil {
			out.Planes.Rules[p.ID.Node] = *seen
		}
	}
	for _, p := range svc.Paths {
		out.Paths = append(out.Paths, path(p, s.Watermark))
	}
	for i := range svc.Episodes {
		out.Episodes = append(out.Episodes, episode(svc, &svc.Episodes[i], s.Now))
	}
	out.Connections = connections(svc, s.Nodes, func(_, _ time.Time) bool { return true })
	out.Advice = advice(svc.Advice(svc.Paths))
	out.Rollouts = together(svc.Together(s.First, s.Now), s.Now)
	return out
}

// podsOf is how many pods should be routable at t: each once, though it is an
// endpoint at each of its addresses.
func podsOf(svc *timeline.Service, t time.Time) int {
	n := wanted(svc)
	if n == 0 || svc.Spec == nil || len(svc.Spec.Families) < 2 {
		return n
	}
	planes := svc.Rules.All() // in a fallback only the rules want anything
	if svc.Slices != nil {
		if c, ok := svc.Slices.At(t); ok && c.Want > 0 {
			planes = []*timeline.Plane{svc.Slices}
		}
	}
	pods := map[string]bool{}
	for _, p := range planes {
		for i := range p.Members {
			if m := &p.Members[i]; m.At(t).Want && m.Endpoint.IP.IsValid() {
				who := m.Endpoint.UID
				if who == timeline.ManualUID {
					who = m.Endpoint.IP.String()
				}
				pods[who] = true
			}
		}
	}
	if len(pods) == 0 {
		return n
	}
	return len(pods)
}

func wanted(svc *timeline.Service) int {
	if n := len(svc.Wanted); n > 0 {
		return svc.Wanted[n-1].N
	}
	return 0
}

// plane gives what a plane has and should have, nil when nothing observes it.
func plane(p *timeline.Plane, now time.Time) *Plane {
	if p == nil {
		return nil
	}
	c, ok := p.At(now)
	if !ok || c.Knowledge == timeline.Blind {
		return nil
	}
	return &Plane{Want: c.Want, Have: c.Have, Agree: c.Agrees(), Gap: c.Knowledge == timeline.InGap}
}

func path(p *timeline.Path, asOf time.Time) Path {
	out := Path{
		ID: p.ID, Op: string(p.Op), Cause: string(p.Cause), By: p.By, Status: string(p.Status),
		Endpoint: Endpoint{Family: string(p.Endpoint.Family), Pod: p.Endpoint.Pod, UID: p.Endpoint.UID, Node: p.Endpoint.Node},
		Origin: Origin{
			At:                 p.Origin.At.UTC(),
			ClaimedAt:          timeOrNil(p.Origin.Claimed),
			ClaimedPrecisionMS: ms(p.Origin.ClaimedPrecision),
		},
		Before: before(&p.Before),
		After:  after(&p.After),
		RiskMS: Risk{FromTermination: msOrNil(p.Risk.FromTermination), FromExit: msOrNil(p.Risk.FromExit), Growing: p.Risk.Growing,
			Width: ms(p.Risk.Width), Error: ms(p.Risk.Error)},
	}
	if p.Risk.WrongPod > 0 {
		out.RiskMS.WrongPod = msOrNil(&p.Risk.WrongPod)
	}
	if p.Endpoint.IP.IsValid() {
		out.Endpoint.IP = p.Endpoint.IP.String()
	}
	if p.Slice != nil {
		h := hop(p.Slice)
		out.Slice = &h
	}
	if p.Endpoints != nil {
		h := hop(p.Endpoints)
		out.Endpoints = &h
	}
	if len(p.Rules) > 0 {
		r := rules(p, asOf)
		out.Rules = &r
	}
	if end := p.End(); p.Status != timeline.StatusOpen && !end.IsZero() {
		d := ms(end.Sub(p.Origin.At))
		out.EndMS, out.End = &d, end
	}
	return out
}

func hop(h *timeline.Hop) Hop {
	out := Hop{Status: string(h.Status), ErrorMS: ms(h.Error), Note: h.Note, At: timeOrNil(h.At), NotBefore: timeOrNil(h.NotBefore)}
	if !h.At.IsZero() {
		lag := ms(h.Lag)
		out.LagMS = &lag
	}
	return out
}

func rules(p *timeline.Path, asOf time.Time) Rules {
	out := Rules{ByNode: map[string]NodeHop{}, Missing: list(p.Missing())}
	var lags []time.Duration
	for i := range p.Rules {
		h := &p.Rules[i]
		nh := NodeHop{Hop: hop(h), Generation: h.Generation}
		if !h.At.IsZero() && p.Slice != nil && !p.Slice.At.IsZero() {
			d := ms(h.At.Sub(p.Slice.At))
			nh.FromSliceMS = &d
		}
		nh.OfficialMS, nh.OfficialFrom, nh.OfficialWhy = msOrNil(h.Official), timeOrNil(h.Trigger), h.OfficialWhy
		if w := h.Width(); w > 0 && h.Official != nil {
			least := *h.Official - w
			nh.OfficialAtLeastMS = msOrNil(&least)
		}
		out.ByNode[h.Plane.Node] = nh
		if !h.At.IsZero() {
			lags = append(lags, h.Lag)
		}
	}
	slices.Sort(lags)
	out.N = len(lags) + len(out.Missing)
	if age := asOf.Sub(p.Origin.At); len(out.Missing) > 0 && age > 0 {
		out.AtLeastMS = msOrNil(&age)
	}
	out.FirstMS = quantile(lags, out.N, 0)
	out.P50MS = quantile(lags, out.N, 0.5)
	out.LastMS = quantile(lags, out.N, 1)
	if out.N >= 100 {
		out.P99MS = quantile(lags, out.N, 0.99)
	}
	return out
}

// quantile gives the nearest-rank quantile of n values of which only the sorted
// arrived ones are known and the rest is larger than any: nil when the rank
// falls among those.
func quantile(arrived []time.Duration, n int, q float64) *float64 {
	if n == 0 {
		return nil
	}
	rank := int(math.Ceil(q*float64(n))) - 1
	rank = min(max(rank, 0), n-1)
	if rank >= len(arrived) {
		return nil
	}
	v := ms(arrived[rank])
	return &v
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func msOrNil(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	v := ms(*d)
	return &v
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// before takes what was observed, else what was claimed, and says which.
func before(b *timeline.Before) Before {
	out := Before{Probes: []Probe{}, Pulls: []Pull{}}
	out.Claimed = moments([]namedMoment{
		{"created", b.Created, &out.Created}, {"scheduled", b.Scheduled, &out.Scheduled}, {"initialised", b.Initialized, &out.Initialised},
		{"started", b.Started, &out.Started}, {"ready", b.Ready, &out.Ready},
	})
	for _, p := range b.Pulls {
		out.Pulls = append(out.Pulls, Pull{At: p.At.UTC(), TookMS: ms(p.Took), Init: p.Init})
	}
	for _, p := range b.Probes {
		out.Probes = append(out.Probes, Probe{Kind: p.Kind, Count: int(p.Count), First: p.First.UTC(), Last: p.Last.UTC(), Message: p.Message})
	}
	return out
}

func after(a *timeline.After) After {
	var out After
	list := []namedMoment{
		{"terminating", a.Terminating, &out.Terminating}, {"stopped", a.Stopped, &out.Stopped}, {"terminal", a.Terminal, &out.Terminal},
		{"unpublished", a.Unpublished, &out.Unpublished}, {"gone", a.Gone, &out.Gone},
	}
	out.Claimed = moments(list)
	for _, x := range list {
		if !x.m.NotBefore.IsZero() && x.m.NotBefore.Before(x.m.At) {
			if out.NotBefore == nil {
				out.NotBefore = map[string]time.Time{}
			}
			out.NotBefore[x.name] = x.m.NotBefore.UTC()
		}
	}
	return out
}

type namedMoment struct {
	name string
	m    timeline.Moment
	to   **time.Time
}

// moments fills in what was observed, else what was claimed, and returns the names
// of the latter.
func moments(list []namedMoment) []string {
	claimed := []string{}
	for _, x := range list {
		*x.to = timeOrNil(x.m.At)
		if x.m.At.IsZero() && !x.m.Claimed.IsZero() {
			*x.to = timeOrNil(x.m.Claimed)
			claimed = append(claimed, x.name)
		}
	}
	return claimed
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
