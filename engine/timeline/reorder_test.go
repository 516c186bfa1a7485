package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func TestReorderWindow(t *testing.T) {
	ev := func(ms int, source collect.SourceID, rv uint64) collect.Event {
		op := collect.OpModified
		if rv == 0 {
			op = collect.OpNone
		}
		return collect.Event{At: epoch.Add(time.Duration(ms) * time.Millisecond), Source: source, ResourceVersion: rv, Op: op, Payload: &collect.Vouch{}}
	}
	pods, slicesOf, rules := collect.SourcePods, collect.SourceEndpointSlices, collect.RulesSource("n1")
	for _, tt := range []struct {
		name string
		in   []collect.Event
		now  int
		want []int // ms of the events that leave, in order
	}{
		{"nothing leaves before the window has passed", []collect.Event{ev(0, pods, 1)}, 29, nil},
		{"an event leaves when it has", []collect.Event{ev(0, pods, 1)}, 30, []int{0}},
		{"the lower version leaves first though it came later", []collect.Event{ev(5, slicesOf, 2), ev(9, pods, 1)}, 40, []int{9, 5}},
		{"and early, when one that follows it has to leave", []collect.Event{ev(5, slicesOf, 2), ev(9, pods, 1)}, 35, []int{9, 5}},
		{"a higher version waits for its own time", []collect.Event{ev(5, pods, 1), ev(9, slicesOf, 2)}, 35, []int{5}},
		{"a source's own order stays", []collect.Event{ev(5, pods, 0), ev(6, pods, 1), ev(7, pods, 0)}, 60, []int{5, 6, 7}},
		{"rules leave by their time", []collect.Event{ev(7, rules, 0), ev(5, pods, 1), ev(9, slicesOf, 2)}, 60, []int{5, 7, 9}},
		{"an event without version waits like any other", []collect.Event{ev(5, pods, 0), ev(9, slicesOf, 2)}, 39, []int{5, 9}},
		{"a clock that goes back does not turn a source's order", []collect.Event{ev(9, rules, 0), ev(4, rules, 0)}, 60, []int{9, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reorder{window: 30 * time.Millisecond, keys: map[collect.SourceID]time.Time{}}
			for _, e := range tt.in {
				r.push(e)
			}
			var got []int
			for {
				e, ok := r.pop(epoch.Add(time.Duration(tt.now) * time.Millisecond))
				if !ok {
					break
				}
				got = append(got, int(e.At.Sub(epoch).Milliseconds()))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("left %v, want %v", got, tt.want)
			}
		})
	}
}
