package ui_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// town is a cluster in a real model: Services of so many pods each, on nodes whose
// rules are seen.
type town struct {
	m     *timeline.Model
	at    time.Time
	rv    uint64
	nodes []string
	pods  int
	rules []collect.RulePort // as they should be, by Service
	gen   uint32
}

func newTown(services, pods, nodes int) *town {
	t := &town{m: timeline.New(timeline.Options{}), at: lanestest.Start, pods: pods, gen: 1}
	for i := range nodes {
		t.nodes = append(t.nodes, fmt.Sprintf("node-%04d", i))
		t.kube(collect.SourceNodes, "Node", t.nodes[i], collect.OpListed, &collect.Node{Ready: &collect.Condition{Status: true}})
	}
	for s := range services {
		ip := netip.AddrFrom4([4]byte{10, 96, byte(s >> 8), byte(s)})
		name := serviceName(s)
		t.kube(collect.SourceServices, "Service", name, collect.OpListed, &collect.Service{
			Kind: "ClusterIP", Selector: map[string]string{"app": name}, ClusterIPs: []netip.Addr{ip}, Families: []collect.Family{collect.IPv4},
			Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}},
		})
		for p := range pods {
			t.pod(s, p, true, collect.OpListed)
		}
		t.slice(s, -1, collect.OpListed)
		t.rules = append(t.rules, collect.RulePort{
			RulePortKey: collect.RulePortKey{Namespace: "default", Service: name, Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
			Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(ip, 80)}},
		})
		t.rules[s].Endpoints = t.endpoints(s, -1)
	}
	t.at = t.at.Add(time.Millisecond)
	for _, id := range []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes} {
		t.apply(id, &collect.SourceState{State: collect.SourceSynced})
	}
	for _, n := range t.nodes {
		t.apply(collect.RulesSource(n), &collect.Rules{Node: n, Generation: t.gen, Baseline: true, Ports: t.rules})
	}
	t.apply(collect.SourceClock, &collect.Advance{})
	return t
}

func serviceName(s int) string { return fmt.Sprintf("svc-%05d", s) }
func podName(s, p int) string  { return fmt.Sprintf("svc-%05d-7d9c4b-%04dx", s, p) }

func (t *town) apply(id collect.SourceID, p collect.Payload) {
	t.m.Apply(collect.Event{At: t.at, Source: id, Payload: p})
}

func (t *town) kube(src collect.SourceID, kind, name string, op collect.Op, p collect.Payload) {
	t.rv++
	t.at = t.at.Add(time.Microsecond)
	t.m.Apply(collect.Event{At: t.at, Source: src, Op: op, UID: "u-" + name, ResourceVersion: t.rv,
		Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p})
}

func podIP(s, p int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(s>>8 + 128), byte(s), byte(p + 1)})
}

func (t *town) pod(s, p int, ready bool, op collect.Op) {
	t.kube(collect.SourcePods, "Pod", podName(s, p), op, &collect.Pod{
		Labels: map[string]string{"app": serviceName(s)}, Node: t.nodes[p%len(t.nodes)], IPs: []netip.Addr{podIP(s, p)}, Phase: "Running",
		Ready: &collect.Condition{Status: ready},
	})
}

// slice is written without the pod down, which is none below 0.
func (t *town) slice(s, down int, op collect.Op) {
	sl := &collect.EndpointSlice{Service: serviceName(s), ManagedBy: "endpointslice-controller.k8s.io", Family: collect.IPv4,
		Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
	for p := range t.pods {
		sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: podIP(s, p), Ready: p != down, Serving: p != down,
			Node: t.nodes[p%len(t.nodes)], PodName: podName(s, p), PodUID: "u-" + podName(s, p)})
	}
	t.kube(collect.SourceEndpointSlices, "EndpointSlice", serviceName(s)+"-x4wq", op, sl)
}

func (t *town) endpoints(s, down int) []netip.AddrPort {
	var out []netip.AddrPort
	for p := range t.pods {
		if p != down {
			out = append(out, netip.AddrPortFrom(podIP(s, p), 8080))
		}
	}
	return out
}

// change lets pod p of Service s become unready or ready again, and all planes
// follow. After every so many events it yields the snapshot of that moment.
func (t *town) change(s, p int, ready bool, every int, yield func(*timeline.Snapshot)) {
	down := p
	if ready {
		down = -1
	}
	n := 0
	step := func(after time.Duration) {
		t.at = t.at.Add(after)
		if n++; n%every == 0 {
			t.apply(collect.SourceClock, &collect.Advance{})
			yield(t.m.Snapshot())
		}
	}
	t.at = t.at.Add(40 * time.Millisecond)
	t.pod(s, p, ready, collect.OpModified)
	step(4 * time.Millisecond)
	t.slice(s, down, collect.OpModified)
	step(4 * time.Millisecond)
	rp := t.rules[s]
	rp.Endpoints = t.endpoints(s, down)
	t.gen++
	for _, n := range t.nodes {
		t.apply(collect.RulesSource(n), &collect.Rules{Node: n, Generation: t.gen, Ports: []collect.RulePort{rp}})
		step(10 * time.Millisecond)
	}
}
