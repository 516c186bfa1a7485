package lanestest

import (
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// flip is one change of what a plane wants or has of one pod.
type flip struct {
	at         time.Time
	pod        int
	want, have bool // which of the two flips
	to         bool
}

// plane derives one plane's history; lag gives, for an addition or removal, when
// its wanted moved and when its had followed, both from the root.
func (s Spec) plane(id timeline.PlaneID, lag func(Lags) (step, arrival time.Duration)) *timeline.Plane {
	var flips []flip
	arrivals := map[time.Time]*timeline.Arrival{}
	for i, p := range s.Pods {
		if p.Base {
			flips = append(flips, flip{at: s.First, pod: i, want: true, to: true}, flip{at: s.First, pod: i, have: true, to: true})
		}
		for _, op := range []timeline.Op{timeline.OpAdd, timeline.OpRemove} {
			at, lags, ok := s.origin(i, op)
			if !ok {
				continue
			}
			step, arrival := lag(lags)
			if step != Never {
				flips = append(flips, flip{at: at.Add(step), pod: i, want: true, to: op == timeline.OpAdd})
			}
			if arrival == Never || at.Add(arrival).After(s.Now) {
				continue
			}
			t := at.Add(arrival)
			flips = append(flips, flip{at: t, pod: i, have: true, to: op == timeline.OpAdd})
			a := arrivals[t]
			if a == nil {
				a = &timeline.Arrival{At: t}
				arrivals[t] = a
			}
			a.Lag, a.Error = max(a.Lag, arrival), 200*time.Microsecond
			a.Paths = append(a.Paths, string(op)+"-"+p.Name)
		}
		// A stop changes what a stale endpoint means.
		if !p.Stop.IsZero() && !p.Stop.After(s.Now) {
			flips = append(flips, flip{at: p.Stop, pod: i})
		}
	}
	sort.SliceStable(flips, func(i, j int) bool { return flips[i].at.Before(flips[j].at) })

	pl := &timeline.Plane{ID: id}
	want, have := make([]bool, len(s.Pods)), make([]bool, len(s.Pods))
	members := make([]timeline.Member, len(s.Pods))
	for i := range members {
		members[i].Endpoint = s.endpoint(i)
	}
	for k := 0; k < len(flips); {
		t := flips[k].at
		touched := map[int]bool{}
		for ; k < len(flips) && flips[k].at.Equal(t); k++ {
			f := flips[k]
			touched[f.pod] = true
			if f.want {
				want[f.pod] = f.to
			}
			if f.have {
				have[f.pod] = f.to
			}
		}
		c := timeline.PlaneChange{At: t, Knowledge: timeline.Known, Baseline: t.Equal(s.First), Note: s.note(id)}
		for i, p := range s.Pods {
			if want[i] {
				c.Want++
			}
			if have[i] {
				c.Have++
			}
			switch {
			case want[i] && !have[i]:
				c.Missing++
			case have[i] && !want[i]:
				c.Stale++
				if !p.Stop.IsZero() && !p.Stop.After(t) {
					c.Stopped++
				}
			}
		}
		pl.Changes = append(pl.Changes, c)
		if a := arrivals[t]; a != nil {
			a.Settled = c.Agrees()
			pl.Arrivals = append(pl.Arrivals, *a)
		}
		for i := range touched {
			c := timeline.MemberChange{At: t, Want: want[i], Have: have[i], Agrees: want[i] == have[i]}
			stop := s.Pods[i].Stop
			c.Stopped = c.Have && !c.Want && !stop.IsZero() && !stop.After(t)
			last := members[i].At(t)
			if last.At.IsZero() || last.Want != c.Want || last.Have != c.Have || last.Stopped != c.Stopped {
				members[i].Changes = append(members[i].Changes, c)
			}
		}
	}
	for _, m := range members {
		if len(m.Changes) > 0 {
			pl.Members = append(pl.Members, m)
		}
	}
	sort.Slice(pl.Members, func(i, j int) bool { return pl.Members[i].Endpoint.IP.Less(pl.Members[j].Endpoint.IP) })
	return pl
}

func (s Spec) note(id timeline.PlaneID) string {
	switch id.Kind {
	case timeline.PlaneSlices:
		return s.Name + "-bx4wq rev 1841"
	case timeline.PlaneEndpoints:
		return "rev 1842"
	}
	for i, n := range s.Nodes {
		if n == id.Node {
			return "generation " + strconv.Itoa(77+i)
		}
	}
	return ""
}

// episodes are the maximal stretches with at least one difference.
func (s Spec) episodes(svc *timeline.Service) []timeline.Episode {
	type edge struct {
		at time.Time
		d  int
	}
	var edges []edge
	for _, p := range append([]*timeline.Plane{svc.Slices}, svc.Rules.All()...) {
		bad := false
		for _, c := range p.Changes {
			if now := c.Knowledge == timeline.Known && !c.Agrees(); now != bad {
				bad = now
				d := -1
				if now {
					d = 1
				}
				edges = append(edges, edge{c.At, d})
			}
		}
	}
	sort.SliceStable(edges, func(i, j int) bool {
		if edges[i].at.Equal(edges[j].at) {
			return edges[i].d > edges[j].d
		}
		return edges[i].at.Before(edges[j].at)
	})
	var out []timeline.Episode
	n := 0
	for _, e := range edges {
		if n == 0 {
			out = append(out, timeline.Episode{N: len(out) + 1, Start: e.at})
		}
		n += e.d
		if n == 0 {
			out[len(out)-1].End = e.at
		}
	}
	for i := range out {
		e := &out[i]
		for _, p := range svc.Paths {
			if p.Origin.At.Before(e.Start) || !e.End.IsZero() && p.Origin.At.After(e.End) {
				continue
			}
			e.Paths = append(e.Paths, p.ID)
			if p.Op == timeline.OpAdd {
				e.Adds++
			} else {
				e.Removes++
			}
		}
	}
	return out
}

func (s Spec) state(svc *timeline.Service) {
	svc.State = timeline.Converged
	svc.Coverage = timeline.Coverage{Expected: s.Nodes}
	for _, p := range svc.Rules.All() {
		if n := len(p.Changes); n > 0 && p.Changes[n-1].Knowledge == timeline.Blind {
			svc.Coverage.Blind = append(svc.Coverage.Blind, p.ID.Node)
		} else {
			svc.Coverage.Seen = append(svc.Coverage.Seen, p.ID.Node)
		}
	}
	for _, p := range append([]*timeline.Plane{svc.Slices}, svc.Rules.All()...) {
		for _, m := range p.Members {
			c := m.At(s.Now)
			if c.Agrees {
				continue
			}
			d := timeline.Difference{Plane: p.ID, Endpoint: m.Endpoint, Kind: "missing", Since: c.At}
			for i := len(m.Changes) - 1; i >= 0 && !m.Changes[i].Agrees; i-- {
				d.Since = m.Changes[i].At
			}
			if c.Have {
				d.Kind = "stale"
			}
			for _, pod := range s.Pods {
				if pod.uid() == m.Endpoint.UID && d.Kind == "stale" && !pod.Stop.IsZero() && !pod.Stop.After(s.Now) {
					d.Stopped = pod.Stop
				}
			}
			svc.Differences = append(svc.Differences, d)
			svc.State = timeline.Converging
			if svc.Since.IsZero() || d.Since.Before(svc.Since) {
				svc.Since = d.Since
			}
		}
	}
	sort.SliceStable(svc.Differences, func(i, j int) bool { return svc.Differences[i].Since.Before(svc.Differences[j].Since) })
}
