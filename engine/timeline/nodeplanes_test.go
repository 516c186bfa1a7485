package timeline

import (
	"reflect"
	"slices"
	"testing"
	"time"
	"weak"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
)

// A node's plane that is found again, because the snapshot before had it too, is
// what would be made anew, whatever has happened: to its rules, to those of other
// nodes, to the names of endpoints, to what is known of the node.
func TestAPlaneFoundAgainIsTheOneThatWouldBeMade(t *testing.T) {
	m, loop := benchCluster(1, 4)
	now := m.Snapshot().Now
	var events []collect.Event
	for i, e := range loop { // n3 never follows, and so has a plane of its own
		if r, ok := e.Payload.(*collect.Rules); ok && r.Node == "n3" {
			continue
		}
		e.At = now.Add(time.Duration(i) * time.Second)
		events = append(events, e, advance(e.At.Add(time.Second/2)))
	}
	at := events[len(events)-1].At.Add(time.Second)
	events = append(events,
		collect.Event{At: at, Source: collect.RulesSource("n3"), Payload: &collect.Gap{From: at.Add(-time.Millisecond), Why: "lost"}},
		advance(at.Add(time.Second)))
	found := 0
	var kept []*Plane
	for _, e := range events {
		m.Apply(e)
		v := m.Snapshot().Services[0].Rules.view
		var planes []*Plane
		for _, p := range v.singles {
			got := v.plane(p, nil)
			for _, k := range kept {
				if k == got {
					found++
				}
			}
			planes = append(planes, got)
			p.made = weak.Pointer[Plane]{}
			if want := v.plane(p, nil); !reflect.DeepEqual(got, want) {
				t.Errorf("after %v: found again\n%+v\nmade anew\n%+v", e, got, want)
			}
			p.made = weak.Make(got)
		}
		kept = planes
	}
	if found == 0 {
		t.Error("no plane was found again")
	}
}

func TestTheLatestChangesAreThoseOfTheFirstPlanesByName(t *testing.T) {
	m, loop := benchCluster(1, 12)
	for i := range 14 { // some nodes apart from the others
		m.Apply(loop[min(i, len(loop)-1)])
	}
	rules := m.Snapshot().Services[0].Rules
	for _, n := range []int{0, 1, 5, 12, 20} {
		latest, all := rules.Latest(n), m.Snapshot().Services[0].Rules.All()
		if len(latest) != min(n, 12) || len(PlanesOf(all...).Latest(n)) != min(n, 12) {
			t.Fatalf("%d changes, want %d", len(latest), min(n, 12))
		}
		for i, c := range latest {
			if c != lastOf(all[i]) || c != PlanesOf(all...).Latest(n)[i] {
				t.Errorf("of plane %d it is %v, want %v", i, c, lastOf(all[i]))
			}
		}
	}
}

// TestPlanesMadeAfterOthersAreThoseMadeAnew: whatever happened since the planes before
// were made, and however often others were made meanwhile, what is taken from them is
// what would be told anew.
func TestPlanesMadeAfterOthersAreThoseMadeAnew(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		w, m := newTown(t), New(Options{Retention: time.Duration(rapid.IntRange(1, 60).Draw(t, "retention")) * time.Minute})
		w.breaks = true
		kept := map[string]*MadePlanes{}
		fed := 0
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			w.turn()
			for ; fed < len(w.events); fed++ {
				m.Apply(w.events[fed])
			}
			if rapid.IntRange(0, 9).Draw(t, "later") == 0 {
				w.now = w.now.Add(2 * time.Minute)
			}
			w.now = w.now.Add(31 * time.Millisecond)
			m.Apply(advance(w.now))
			snap := m.Snapshot()
			for _, s := range m.services {
				for _, p := range s.planes() {
					differ := map[EndpointID]bool{}
					for c := range p.cells() {
						if c.class != agrees {
							differ[c.id] = true
						}
					}
					for c := range p.differing() {
						if c.class == agrees || !differ[c.id] || p.find(c.id).class == agrees {
							t.Fatalf("%s of %s does not differ in %v", p.id, s.name, c.id)
						}
						delete(differ, c.id)
					}
					if len(differ) > 0 {
						t.Fatalf("%s of %s differs in %v as well", p.id, s.name, differ)
					}
					if p.group != nil || p.id.Kind != PlaneRules {
						continue
					}
					if p.shown != nil && !p.dirty && !slices.EqualFunc(p.shown.own, p.showOwn(), func(a, b cellView) bool { return reflect.DeepEqual(a, b) }) {
						t.Fatalf("%s of %s shows\n%+v\nbut has\n%+v", p.id, s.name, p.shown.own, p.showOwn())
					}
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "unseen") == 0 {
				continue
			}
			for _, svc := range snap.Services {
				key := svc.Namespace + "/" + svc.Name
				made := svc.Rules.Make(kept[key])
				v := svc.Rules.view
				for _, p := range v.singles {
					if !v.shows(p) {
						continue
					}
					got := p.made.Value()
					if before := kept[key]; before != nil && before.view.single(p.node) != nil {
						taken++
					}
					p.made = weak.Pointer[Plane]{}
					if want := v.plane(p, nil); !reflect.DeepEqual(got, want) {
						t.Fatalf("after %s: %s of %s made after another\n%+v\nmade anew\n%+v", eventText(w.events[fed-1]), p.node, key, got, want)
					}
					p.made = weak.Make(got)
				}
				kept[key] = made
			}
		}
	})
	if taken == 0 {
		t.Error("no plane was made after another")
	}
}
