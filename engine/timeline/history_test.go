package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
)

// instantText prints an instant without what is known better later: gaps, for which
// some nodes are left aside, and claims of the past.
func instantText(in *Instant, inGap []string) string {
	var b strings.Builder
	fmt.Fprintln(&b, in.Exists, in.RoutedByProxy, in.State, sinceEpoch(in.Since), in.Wanted, in.WantedKnown)
	planes := slices.Clone(in.Rules)
	for _, p := range append(planes, in.Slices, in.Endpoints) {
		if p == nil || !p.Seen {
			continue
		}
		c := p.PlaneChange
		fmt.Fprintln(&b, p.ID, "want", c.Want, "have", c.Have, c.Missing, c.Stale, c.Unexpected, c.Changed, c.Stopped, c.Baseline, c.Note)
		for _, m := range p.Members {
			fmt.Fprintln(&b, "  ", m.Endpoint.EndpointID, m.Want, m.Have, m.Agrees)
		}
		for _, d := range p.Differences {
			fmt.Fprintln(&b, "  ", d.Kind, d.Endpoint.EndpointID, sinceEpoch(d.Since), sinceEpoch(d.Stopped))
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(in.Pods), func(a, b PodInstant) int { return strings.Compare(a.UID, b.UID) }) {
		if !p.Claimed {
			fmt.Fprintln(&b, p.Name, p.UID, p.Phase, sinceEpoch(p.PodChange.At))
		}
	}
	known := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(inGap, n) })
	}
	c := &in.Coverage
	fmt.Fprintln(&b, c.Expected, known(c.Seen), known(c.Blind), c.LeftOut, c.BlindWhy)
	return b.String()
}

// gapsOf names what an instant calls in a gap.
func gapsOf(in *Instant) (out []string) {
	for _, p := range append(slices.Clone(in.Rules), in.Slices, in.Endpoints) {
		if p != nil && p.Seen && p.Knowledge == InGap {
			out = append(out, p.ID.String())
		}
	}
	return append(out, in.Coverage.Gap...)
}

// lean checks that the planes alone are those of the whole instant.
func lean(t *rapid.T, svc *Service, at time.Time) {
	full, planes := svc.At(at), svc.PlanesAt(at)
	text := func(in *Instant) (s string) {
		for _, p := range append(slices.Clone(in.Rules), in.Slices, in.Endpoints) {
			if p == nil {
				continue
			}
			s += fmt.Sprintf("%s %v %+v %+v %v\n", p.ID, p.Seen, p.PlaneChange, p.Past, p.Claimed)
			for _, d := range p.Differences {
				s += fmt.Sprintf("  %+v\n", d)
			}
			if in == planes && p.Members != nil {
				t.Fatalf("%s of %s has its members", p.ID, svc.Name)
			}
		}
		return s
	}
	if got, want := text(planes), text(full); got != want {
		t.Fatalf("planes of %s at %s are\n%s\nof the instant\n%s", svc.Name, sinceEpoch(at), got, want)
	}
}

// agreesWithNow checks that an instant asked of now is what the Service says itself.
func agreesWithNow(t *rapid.T, svc *Service, in *Instant) {
	list := func(l []Difference) (out []string) {
		for _, d := range l {
			out = append(out, fmt.Sprint(d.Plane, " ", d.Endpoint.EndpointID, " ", d.Kind, " ", sinceEpoch(d.Since), " ", !d.Stopped.IsZero()))
		}
		return out
	}
	if in.State != svc.State || !in.Since.Equal(svc.Since) || !slices.Equal(list(in.Differences), list(svc.Differences)) {
		t.Fatalf("%s now: %s since %v %v, and by the instant %s since %v %v", svc.Name, svc.State, sinceEpoch(svc.Since), list(svc.Differences), in.State, sinceEpoch(in.Since), list(in.Differences))
	}
	if got, want := fmt.Sprintf("%+v", in.Coverage), fmt.Sprintf("%+v", svc.Coverage); got != want {
		t.Fatalf("%s now: coverage\n%s\nby the instant\n%s", svc.Name, want, got)
	}
	for _, p := range append(slices.Clone(in.Rules), in.Slices, in.Endpoints) {
		if p == nil || !p.Seen {
			continue
		}
		n := map[string]int{}
		for _, d := range p.Differences {
			n[d.Kind]++
		}
		if n["missing"] != p.Missing || n["stale"] != p.Stale || n["unexpected"] != p.Unexpected || n["changed"] != p.Changed {
			t.Fatalf("%s of %s counts %+v and differs in %+v", p.ID, svc.Name, p.PlaneChange, p.Differences)
		}
	}
}

// TestStoppingAtAPrefixEqualsAskingLater: whatever a model says of an instant that
// the reordering window has passed, a model that has seen all that came after says
// of it, too. Excepted are gaps that were found afterwards, as Instant tells.
func TestStoppingAtAPrefixEqualsAskingLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newTown(t), New(Options{})
		w.breaks = true
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			w.turn()
		}
		late := time.Duration(rapid.IntRange(0, 29).Draw(t, "latest")) * time.Millisecond
		type asked struct {
			svc  string
			at   time.Time
			then *Instant
		}
		var all []asked
		for _, e := range append(delivered(t, w.events, late, "late by"), advance(w.now.Add(time.Second))) {
			if rapid.IntRange(0, 3).Draw(t, "ask") == 0 && !m.now.IsZero() {
				s := m.Snapshot()
				at := s.Now.Add(-m.ReorderWindow())
				for _, svc := range s.Services {
					agreesWithNow(t, svc, svc.At(s.Now))
					lean(t, svc, s.Now)
					lean(t, svc, at)
					all = append(all, asked{svc.Name, at, svc.At(at)})
				}
			}
			m.Apply(e)
		}
		s := m.Snapshot()
		for _, a := range all {
			now := s.At("default", a.svc, a.at)
			were, are := gapsOf(a.then), gapsOf(now)
			inGap := append(slices.Clone(were), are...)
			if got, want := instantText(now, inGap), instantText(a.then, inGap); got != want {
				t.Fatalf("%s at %s said then\n%s\n%s", a.svc, sinceEpoch(a.at), want, differing(got, want))
			}
			for _, g := range were {
				if !slices.Contains(are, g) {
					t.Fatalf("%s at %s: %s was in a gap and is no more", a.svc, sinceEpoch(a.at), g)
				}
			}
			for _, g := range are {
				if !slices.Contains(were, g) && !foundAfter(w.events, a.at) {
					t.Fatalf("%s at %s: %s is in a gap of which nothing told later", a.svc, sinceEpoch(a.at), g)
				}
			}
		}
	})
}

// forgetWanted leaves aside whether what is there too many was wanted before: that may
// be longer ago than the retention.
func forgetWanted(p *PlaneInstant) {
	p.Stale, p.Unexpected, p.Stopped = p.Stale+p.Unexpected, 0, 0
	for i := range p.Differences {
		if d := &p.Differences[i]; d.Kind == "stale" || d.Kind == "unexpected" {
			d.Kind, d.Stopped = "too many", time.Time{}
		}
	}
}

// foundAfter reports that something told of a gap after t.
func foundAfter(events []collect.Event, t time.Time) bool {
	return slices.ContainsFunc(events, func(e collect.Event) bool {
		_, gap := e.Payload.(*collect.Gap)
		s, state := e.Payload.(*collect.SourceState)
		return e.At.After(t.Add(-30*time.Millisecond)) && (gap || state && s.State == collect.SourceBroken)
	})
}

// TestRetentionTakesNothingFromWhatItKeeps: of any instant within the retention a
// model that forgets says what one says that does not.
func TestRetentionTakesNothingFromWhatItKeeps(t *testing.T) {
	const kept = 2 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(t)
		w.slow = 100
		for range rapid.IntRange(5, 40).Draw(t, "turns") {
			w.turn()
		}
		all, some := New(Options{Retention: 24 * time.Hour}), New(Options{Retention: kept})
		for _, e := range append(w.events, advance(w.now.Add(time.Second))) {
			all.Apply(e)
			some.Apply(e)
		}
		a, b := all.Snapshot(), some.Snapshot()
		for range 10 {
			at := a.Now.Add(-time.Duration(rapid.Int64Range(0, int64(kept)).Draw(t, "ago")))
			for _, svc := range b.Services {
				x, y := svc.At(at), a.At("default", svc.Name, at)
				if !y.Exists {
					continue // it may have been forgotten
				}
				// Nodes and pods that went before are not even named.
				x.Coverage.LeftOut, y.Coverage.LeftOut = nil, nil
				for _, in := range []*Instant{x, y} {
					in.Pods = slices.DeleteFunc(in.Pods, func(p PodInstant) bool { return p.Phase == PodGone || p.Phase == PodUnselected })
					// A Service that was forgotten and comes again is a new one.
					for _, p := range append(slices.Clone(in.Rules), in.Slices, in.Endpoints) {
						if p != nil {
							p.Note, p.Baseline = "", false
							forgetWanted(p)
						}
					}
				}
				if got, want := instantText(x, nil), instantText(y, nil); got != want {
					t.Fatalf("%s at %s, %v ago\n%s\n%s", svc.Name, sinceEpoch(at), a.Now.Sub(at), want, differing(got, want))
				}
			}
		}
	})
}
