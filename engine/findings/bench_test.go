package findings

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// BenchmarkFind judges 10,000 Services of three pods on three nodes, of which each
// hundredth selects nothing.
func BenchmarkFind(b *testing.B) {
	m := timeline.New(timeline.Options{})
	at := timelinetest.Epoch
	rv := uint64(0)
	object := func(src collect.SourceID, kind, name string, p collect.Payload) {
		rv++
		m.Apply(collect.Event{At: at, Source: src, Op: collect.OpListed, UID: "u-" + name, ResourceVersion: rv,
			Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p})
	}
	for i := range 3 {
		object(collect.SourceNodes, "Node", fmt.Sprintf("n%d", i), &collect.Node{Ready: &collect.Condition{Status: true}})
	}
	for i := range 10_000 {
		name := fmt.Sprintf("svc-%05d", i)
		label := name
		if i%100 == 0 {
			label += "x"
		}
		object(collect.SourceServices, "Service", name, &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": label},
			Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}}, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")}, Families: []collect.Family{collect.IPv4}})
		for k := range 3 {
			object(collect.SourcePods, "Pod", fmt.Sprintf("%s-%d", name, k), &collect.Pod{Labels: map[string]string{"app": name}, Node: fmt.Sprintf("n%d", k),
				IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(k)})}, Ready: &collect.Condition{Status: true}})
		}
	}
	for _, s := range []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes} {
		m.Apply(collect.Event{At: at, Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	m.Apply(collect.Event{At: at.Add(time.Second), Source: collect.SourceClock, Payload: &collect.Advance{}})
	s := m.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if n := len(Find(s, nil)); n < 100 {
			b.Fatalf("%d findings", n)
		}
	}
}
