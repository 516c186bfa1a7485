package nodelog

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// setClock is a clock that a test sets.
type setClock struct{ now time.Time }

func (c *setClock) Now() time.Time { return c.now }

// TestAWrongClockIsBroughtBackWithinItsError adds endpoints, one after the other, on a
// node whose clock is set twice, and compares with when it was.
func TestAWrongClockIsBroughtBackWithinItsError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	clock := &setClock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	causes := NewCauses()
	var ahead time.Duration
	var got []collect.Event
	var bound collect.ClockBound
	a := NewAligner(AlignOptions{Clock: clock, Causes: causes, Ahead: func() time.Duration { return ahead }, Sink: collect.SinkFunc(func(e collect.Event) {
		if b, ok := e.Payload.(*collect.ClockBound); ok {
			bound = *b
			return
		}
		got = append(got, e)
	})})
	key := collect.RulePortKey{Namespace: "default", Service: "web", Protocol: collect.TCP, Family: collect.IPv4}
	var addrs []netip.AddrPort
	sides := map[bool]int{}
	last := time.Time{}
	for i := range 300 {
		switch i {
		case 100:
			ahead = time.Hour
		case 200:
			ahead = -3 * time.Second
		}
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / 200), byte(i % 200)}), 8080)
		addrs = append(addrs, addr)
		clock.now = clock.now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
		if i >= 110 && i%3 != 0 { // else nobody tells when it was published
			causes.Emit(collect.Event{At: clock.now, Op: collect.OpAdded, Object: collect.ObjectKey{Kind: "EndpointSlice", Namespace: "default", Name: fmt.Sprint("web-", i)},
				Payload: &collect.EndpointSlice{Service: "web", Ports: []collect.SlicePort{{Port: 8080}}, Endpoints: []collect.SliceEndpoint{{Address: addr.Addr(), Ready: true}}}})
		}
		clock.now = clock.now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		was := clock.now
		clock.now = clock.now.Add(time.Duration(random.IntN(20)) * time.Millisecond) // until it is handed over
		a.Emit(collect.Event{At: was, Source: collect.RulesSource("n1"), Payload: &collect.Rules{Node: "n1", Ports: []collect.RulePort{{RulePortKey: key, Endpoints: addrs}}}})
		e := got[len(got)-1]
		switch off := e.At.Sub(was); {
		case ahead == 0 && off != 0:
			t.Fatalf("%d: a right clock is off by %s", i, off)
		case e.At.Before(last):
			t.Fatalf("%d: time goes back", i)
		case ahead != 0 && bound.OneSided && off < 0, ahead != 0 && !bound.OneSided && off.Abs() > bound.Error:
			t.Fatalf("%d: told %s after it was, by %+v", i, off, bound)
		}
		if ahead != 0 {
			sides[bound.OneSided]++
		}
		last = e.At
	}
	if sides[true] == 0 || sides[false] < 150 || bound.Error > time.Second || bound.Error == 0 {
		t.Errorf("one-sided and two-sided: %v; in the end %+v", sides, bound)
	}
	ahead = 0
	clock.now = clock.now.Add(time.Minute)
	a.Emit(collect.Event{At: clock.now, Source: collect.RulesSource("n1"), Payload: &collect.Vouch{Until: clock.now}})
	if v := got[len(got)-1].Payload.(*collect.Vouch); bound.How != oneClock || !v.Until.Equal(clock.now) {
		t.Errorf("once the clock is right again: %+v, vouched until %s", bound, v.Until)
	}
}
