package timeline

import (
	"reflect"
	"testing"
	"time"
	"weak"

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
			got := v.plane(p)
			for _, k := range kept {
				if k == got {
					found++
				}
			}
			planes = append(planes, got)
			p.made = weak.Pointer[Plane]{}
			if want := v.plane(p); !reflect.DeepEqual(got, want) {
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

func TestTheFirstPlanesAreThoseByName(t *testing.T) {
	m, loop := benchCluster(1, 12)
	for i := range 14 { // some nodes apart from the others
		m.Apply(loop[min(i, len(loop)-1)])
	}
	rules := m.Snapshot().Services[0].Rules
	for _, n := range []int{0, 1, 5, 12, 20} {
		first, all := rules.First(n), m.Snapshot().Services[0].Rules.All()
		if len(first) != min(n, 12) {
			t.Fatalf("%d planes, want %d", len(first), min(n, 12))
		}
		for i, p := range first {
			if !reflect.DeepEqual(p, all[i]) {
				t.Errorf("plane %d is %v, want %v", i, p, all[i])
			}
		}
	}
}
