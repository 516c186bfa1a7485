package timeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline/reference"
)

// planesByReference says how every plane of every Service stands, by the
// reference; planesByModel says the same by the model.
func planesByReference(h *reference.History, now time.Time) string {
	var b strings.Builder
	for _, svc := range h.Services() {
		diffs := map[string][]string{}
		state, since := Converged, time.Time{}
		for _, d := range h.Differences(svc) {
			diffs[d.Plane] = append(diffs[d.Plane], fmt.Sprint(d.Kind, " ", d.Endpoint, " since ", sinceEpoch(d.Since)))
			if !d.Counts {
				continue
			}
			budget := 10 * time.Second
			if d.Plane == reference.Slices {
				budget = 5 * time.Second
			}
			if state != Stalled {
				state = Converging
			}
			if now.Sub(d.Since) > budget {
				state = Stalled
			}
			if since.IsZero() || d.Since.Before(since) {
				since = d.Since
			}
		}
		fmt.Fprintln(&b, svc, state, sinceEpoch(since), "wanted", h.Wanted(svc))
		for _, plane := range h.Planes(svc) {
			p := h.Look(svc, plane)
			if want, have := reference.Count(p.Want), reference.Count(p.Had); want+have+len(diffs[plane]) > 0 {
				slices.Sort(diffs[plane])
				fmt.Fprintln(&b, " ", plane, "want", want, "have", have, "gap", h.InGap(plane), diffs[plane])
			}
		}
	}
	c := h.Coverage()
	if !h.Routed() {
		c = reference.Coverage{} // nobody asks
	}
	fmt.Fprintln(&b, c.Expected, c.Seen, c.Blind, c.Gap, c.LeftOut, sinceEpoch(h.Watermark()))
	return b.String()
}

func planesByModel(s *Snapshot) string {
	var b strings.Builder
	var c Coverage
	for _, svc := range s.Services {
		diffs := map[PlaneID][]string{}
		for _, d := range svc.Differences {
			diffs[d.Plane] = append(diffs[d.Plane], fmt.Sprint(d.Kind, " ", reference.Endpoint{UID: d.Endpoint.UID, IP: d.Endpoint.IP}, " since ", sinceEpoch(d.Since)))
		}
		wanted := 0
		if n := len(svc.Wanted); n > 0 {
			wanted = svc.Wanted[n-1].N
		}
		fmt.Fprintln(&b, svc.Namespace+"/"+svc.Name, svc.State, sinceEpoch(svc.Since), "wanted", wanted)
		planes := append([]*Plane{svc.Endpoints}, svc.Rules.All()...) // in the order of their names
		for _, p := range append(planes, svc.Slices) {
			if p == nil {
				continue
			}
			x, _ := p.At(s.Now)
			if d := diffs[p.ID]; x.Want+x.Have+len(d) > 0 {
				slices.Sort(d)
				fmt.Fprintln(&b, " ", p.ID, "want", x.Want, "have", x.Have, "gap", x.Knowledge == InGap, d)
			}
		}
		if svc.RoutedByProxy {
			c = svc.Coverage
		}
	}
	fmt.Fprintln(&b, c.Expected, c.Seen, c.Blind, c.Gap, c.LeftOut, sinceEpoch(s.Watermark))
	return b.String()
}

// TestTheModelAgreesWithTheReference: after each turn of a town, and once the
// reordering window has passed, every plane of every Service stands as a reference
// says that knows neither the model nor engine/desired and looks at everything
// anew: counts, differences with their kind and since when, state, coverage and
// watermark.
func TestTheModelAgreesWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m, h := newTown(t), New(Options{}), &reference.History{}
		w.breaks = true
		fed := 0
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			w.turn()
			for ; fed < len(w.events); fed++ {
				m.Apply(w.events[fed])
				h.Add(w.events[fed])
			}
			w.now = w.now.Add(31 * time.Millisecond)
			m.Apply(advance(w.now))
			s := m.Snapshot()
			if got, want := planesByModel(s), planesByReference(h, w.now); got != want {
				t.Fatalf("after %s\nthe model says\n%s\nthe reference\n%s", eventText(w.events[fed-1]), got, want)
			}
		}
	})
}

// eventText prints an event for people.
func eventText(e collect.Event) string {
	return fmt.Sprintf("%s %s %s %s rv %d %+v", sinceEpoch(e.At), e.Source, e.Op, e.Object.Name, e.ResourceVersion, e.Payload)
}

// pathsByReference lists paths with their hops, by the reference; pathsByModel by
// the model.
func pathsByReference(h *reference.History) string {
	var out []string
	for _, svc := range h.Services() {
		for _, p := range h.Paths(svc) {
			line := fmt.Sprint(svc, " ", p.Root, " ", p.Endpoint, " ", p.Cause, " ", sinceEpoch(p.Origin), "<", sinceEpoch(p.NotBefore))
			planes := slices.Sorted(maps.Keys(p.Hops))
			for _, plane := range planes {
				x := p.Hops[plane]
				line += fmt.Sprint("; ", plane, " ", x.Status, " ", sinceEpoch(x.Step), " ", sinceEpoch(x.At), "<", sinceEpoch(x.NotBefore))
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func pathsByModel(s *Snapshot) string {
	var out []string
	for _, svc := range s.Services {
		for _, p := range svc.Paths {
			if (p.Endpoint.EndpointID == EndpointID{}) {
				continue
			}
			name := svc.Namespace + "/" + svc.Name
			root, _, _ := strings.Cut(strings.TrimPrefix(p.ID, name+"/"), "/")
			line := fmt.Sprint(name, " ", root, " ", reference.Endpoint{UID: p.Endpoint.UID, IP: p.Endpoint.IP}, " ", p.Cause, " ", sinceEpoch(p.Origin.At), "<", sinceEpoch(p.Origin.NotBefore))
			hops := slices.Clone(p.Rules)
			if p.Slice != nil {
				hops = append(hops, *p.Slice)
			}
			for _, x := range hops {
				line += fmt.Sprint("; ", x.Plane, " ", x.Status, " ", sinceEpoch(x.Step), " ", sinceEpoch(x.At), "<", sinceEpoch(x.NotBefore))
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestPathsAgreeWithTheReference: the steps of a town's endpoints, what each stems
// from and why, and what became of it in the slices and on each node, are what the
// reference reads off the list of all moments.
func TestPathsAgreeWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m, h := newTown(t), New(Options{}), &reference.History{}
		w.breaks = rapid.Bool().Draw(t, "watches may break")
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			w.turn()
		}
		for _, e := range w.events {
			m.Apply(e)
			h.Add(e)
		}
		m.Apply(advance(w.now.Add(time.Second)))
		if got, want := pathsByModel(m.Snapshot()), pathsByReference(h); got != want {
			t.Fatalf("%s", differing(got, want))
		}
	})
}

// differing prints the lines that only one of two texts has.
func differing(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	var out strings.Builder
	for _, l := range a {
		if !slices.Contains(b, l) {
			fmt.Fprintln(&out, "the first only: ", l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			fmt.Fprintln(&out, "the second only:", l)
		}
	}
	return out.String()
}
