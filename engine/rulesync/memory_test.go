package rulesync

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// oneService is default/web with these endpoints.
func oneService(endpoints ...string) map[types.NamespacedName][]Port {
	p := Port{
		Service: types.NamespacedName{Namespace: "default", Name: "web"}, Name: "http", Protocol: collect.TCP, Family: collect.IPv4,
		ClusterIP: netip.MustParseAddr("10.96.0.1"), Port: 80, HasEndpoints: len(endpoints) > 0,
	}
	for _, e := range endpoints {
		p.Cluster = append(p.Cluster, netip.MustParseAddrPort(e))
	}
	return map[types.NamespacedName][]Port{p.Service: {p}}
}

func TestRulesInMemoryAreToldLikeThoseOfTheKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory("node-1", collect.SystemClock{}, 10*time.Second)
		write := func(full bool, services map[types.NamespacedName][]Port) uint32 {
			t.Helper()
			res, err := m.Write(t.Context(), Change{Full: full, Services: services})
			if err != nil {
				t.Fatal(err)
			}
			return res.Generation
		}
		before := write(true, oneService("10.244.1.2:8080"))
		var mu sync.Mutex
		var told []collect.Event
		// take returns what was told since it was last asked.
		take := func() []collect.Event {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			events := told
			told = nil
			return events
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- m.Run(ctx, collect.SinkFunc(func(e collect.Event) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e)
			}))
		}()
		events := take()
		if len(events) != 3 {
			t.Fatalf("at first %d events, want the baseline, synced and a vouch: %+v", len(events), events)
		}
		base := events[0].Payload.(*collect.Rules)
		if !base.Baseline || base.Generation != before || base.Layout != MemoryLayout || len(base.Ports) != 1 || len(base.Ports[0].Endpoints) != 1 {
			t.Errorf("baseline %+v", base)
		}
		if s := events[1].Payload.(*collect.SourceState); s.State != collect.SourceSynced || s.Count != 1 {
			t.Errorf("state %+v", s)
		}

		time.Sleep(time.Second)
		at := time.Now()
		gen := write(false, oneService("10.244.1.2:8080", "10.244.2.2:8080"))
		if gen != before+1 {
			t.Errorf("generation %d after %d", gen, before)
		}
		if same := write(false, oneService("10.244.1.2:8080", "10.244.2.2:8080")); same != gen {
			t.Errorf("a write that changes nothing made generation %d after %d", same, gen)
		}
		events = take()
		if len(events) != 2 {
			t.Fatalf("after a change %d events, want the change and a vouch: %+v", len(events), events)
		}
		if r := events[0].Payload.(*collect.Rules); r.Baseline || r.Generation != gen || len(r.Ports) != 1 || len(r.Ports[0].Endpoints) != 2 || !events[0].At.Equal(at) {
			t.Errorf("change %+v at %v", r, events[0].At)
		}
		if v := events[1].Payload.(*collect.Vouch); v.Generation != gen || !v.Until.Equal(at) {
			t.Errorf("vouch %+v", v)
		}

		write(true, nil)
		events = take()
		if r := events[0].Payload.(*collect.Rules); len(r.Ports) != 1 || !r.Ports[0].Empty() {
			t.Errorf("a Service that went is told as %+v", r)
		}

		time.Sleep(time.Minute)
		m.Vouch()
		events = take()
		if len(events) != 7 {
			t.Errorf("%d vouches in a minute of silence and for one question, want 7", len(events))
		}
		if i := slices.IndexFunc(events, func(e collect.Event) bool { _, ok := e.Payload.(*collect.Vouch); return !ok }); i >= 0 {
			t.Errorf("in silence came %+v", events[i])
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestOfTwoServicesWithOneFrontendTheFirstByNameHasIt(t *testing.T) {
	services := oneService("10.244.1.2:8080")
	other := oneService("10.244.1.3:8080")[types.NamespacedName{Namespace: "default", Name: "web"}][0]
	other.Service.Name = "aweb"
	services[other.Service] = []Port{other}
	got := routed(services)
	if len(got) != 1 || got[0].Service != "aweb" || got[0].Endpoints[0].Addr() != netip.MustParseAddr("10.244.1.3") {
		t.Errorf("routed: %+v", got)
	}
}
