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

// outcome is what a model comes to in the end: how every plane stands, and what
// became of every path.
type outcome struct {
	planes string
	hops   map[string]hopOutcome // by path, endpoint and plane
}

type hopOutcome struct {
	what  string // cause of the path and status of the hop
	lag   time.Duration
	error time.Duration
	ahead time.Duration // how long before its step it arrived
}

// lookedFar reports that the hop arrived about as long before its step as the model
// looks back, so that lateness decides whether it does.
func (h hopOutcome) lookedFar(most time.Duration) bool {
	return h.ahead > Options{}.withDefaults().LookBack-most
}

func outcomeOf(events []collect.Event, end time.Time) outcome {
	m := New(Options{})
	for _, e := range events {
		m.Apply(e)
	}
	m.Apply(advance(end))
	s := m.Snapshot()
	out := outcome{planes: withoutTimes(planesByModel(s)), hops: map[string]hopOutcome{}}
	for _, svc := range s.Services {
		for _, p := range svc.Paths {
			hops := p.Rules
			if p.Slice != nil {
				hops = append(slices.Clone(hops), *p.Slice)
				hops[len(hops)-1].Plane = PlaneID{Kind: PlaneSlices}
			}
			for _, h := range hops {
				out.hops[fmt.Sprint(p.ID, " ", p.Endpoint.EndpointID, " ", h.Plane)] = hopOutcome{fmt.Sprint(p.Cause, " ", h.Status), h.Lag, h.Error, -h.FromStep}
			}
		}
	}
	return out
}

// withoutTimes leaves out what lateness moves: since when something differs and
// whether that is too long, the watermark.
func withoutTimes(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i, w := range words {
			if i > 0 && words[i-1] == "since" {
				words[i] = strings.TrimLeft(w, "0123456789.msµn-")
			}
		}
		switch {
		case strings.HasPrefix(line, "default/"):
			words = slices.Delete(words, 2, 3) // Since
			// A difference may be at the end of its budget.
			words[1] = strings.Replace(words[1], string(Stalled), string(Converging), 1)
		case strings.HasPrefix(line, "["):
			words = words[:len(words)-1]
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, "\n")
}

// TestInterleavingsWithinTheWindowComeToTheSame: every watch and every node is a
// source of its own, each late by less than the window and in its own order. However
// late, in the end the planes stand the same, the same events are found to be behind
// the same steps, and every hop has the same status with a lag that is the same
// within the stated errors and what the receipts were late by.
//
// The nodes' rules have no versions, so that their place among the slices is known
// to the disorder of receipts only: here they keep clear of the slices by more than
// the window. TestPlanesComeToTheSameHoweverClose has no such distance.
func TestInterleavingsWithinTheWindowComeToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(t)
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			w.turn()
		}
		events := apart(w.events, 40*time.Millisecond)
		end := events[len(events)-1].At.Add(time.Second)
		const most = 29 * time.Millisecond
		on, off := outcomeOf(events, end), outcomeOf(delivered(t, events, most, "late by"), end)
		if on.planes != off.planes {
			t.Fatalf("on time\n%s\nlate\n%s", on.planes, off.planes)
		}
		for k, a := range on.hops {
			b, ok := off.hops[k]
			if a.lookedFar(most) || b.lookedFar(most) {
				continue
			}
			if !ok || a.what != b.what {
				t.Fatalf("%s: on time %s, late %q", k, a.what, b.what)
			}
			if d := (a.lag - b.lag).Abs(); d > max(a.error, b.error)+most {
				t.Fatalf("%s: on time %v ± %v, late %v ± %v", k, a.lag, a.error, b.lag, b.error)
			}
		}
		for k, b := range off.hops {
			if _, ok := on.hops[k]; !ok && !b.lookedFar(most) {
				t.Fatalf("%s: %s when late only", k, off.hops[k].what)
			}
		}
	})
}

// apart puts a distance between what nodes tell and what watches do, where one
// follows the other.
func apart(events []collect.Event, distance time.Duration) []collect.Event {
	out := slices.Clone(events)
	var shift time.Duration
	for i := range out {
		if i > 0 && isKube(out[i].Source) != isKube(out[i-1].Source) {
			shift += distance
		}
		out[i].At = out[i].At.Add(shift)
		switch p := out[i].Payload.(type) {
		case *collect.Vouch:
			x := *p
			x.Until = x.Until.Add(shift)
			out[i].Payload = &x
		case *collect.Gap:
			x := *p
			x.From = x.From.Add(shift)
			out[i].Payload = &x
		}
	}
	return out
}

// TestPlanesComeToTheSameHoweverClose: the same of planes, counts and differences
// where nodes and watches tell at the same moments. Then it may not be known whether
// what a node has too many was wanted before.
func TestPlanesComeToTheSameHoweverClose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(t)
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			w.turn()
		}
		end := w.now.Add(time.Second)
		on, off := outcomeOf(w.events, end), outcomeOf(delivered(t, w.events, 29*time.Millisecond, "late by"), end)
		stale := strings.NewReplacer("unexpected", "stale")
		if stale.Replace(on.planes) != stale.Replace(off.planes) {
			t.Fatalf("on time\n%s\nlate\n%s", on.planes, off.planes)
		}
	})
}
