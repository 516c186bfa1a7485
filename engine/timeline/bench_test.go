package timeline

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// benchCluster feeds a model a cluster of so many Services with ten pods each,
// on so many nodes, all converged.
func benchCluster(services, nodes int) (*Model, []collect.Event) {
	m := New(Options{})
	at := epoch
	rv := uint64(0)
	kube := func(src collect.SourceID, kind, name string, op collect.Op, p collect.Payload) collect.Event {
		rv++
		at = at.Add(time.Microsecond)
		return collect.Event{At: at, Source: src, Op: op, UID: "u-" + name, ResourceVersion: rv,
			Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p}
	}
	ready := &collect.Condition{Status: true}
	for i := range nodes {
		m.Apply(kube(collect.SourceNodes, "Node", fmt.Sprintf("n%d", i), collect.OpListed, &collect.Node{Ready: ready}))
	}
	var pods []*collect.Pod
	var rules []collect.RulePort
	for s := range services {
		name := fmt.Sprintf("svc%d", s)
		ip, svc := benchService(name)
		m.Apply(kube(collect.SourceServices, "Service", name, collect.OpListed, svc))
		sl := &collect.EndpointSlice{Service: name, ManagedBy: controllerName, Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
		rp := collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "default", Service: name, Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
			Frontends: []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(ip, 80)}}}
		for p := range 10 {
			pn := fmt.Sprintf("%s-%d", name, p)
			pip := netip.AddrFrom4([4]byte{10, byte(s>>8 + 1), byte(s), byte(p + 1)})
			pod := &collect.Pod{Labels: map[string]string{"app": name, "tier": "web"}, Node: fmt.Sprintf("n%d", p%nodes), IPs: []netip.Addr{pip}, Ready: ready, Phase: "Running"}
			m.Apply(kube(collect.SourcePods, "Pod", pn, collect.OpListed, pod))
			pods = append(pods, pod)
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: pip, Ready: true, Serving: true, Node: pod.Node, PodName: pn, PodUID: "u-" + pn})
			rp.Endpoints = append(rp.Endpoints, netip.AddrPortFrom(pip, 8080))
		}
		rules = append(rules, rp)
		m.Apply(kube(collect.SourceEndpointSlices, "EndpointSlice", name+"-1", collect.OpListed, sl))
	}
	at = at.Add(time.Millisecond)
	for _, s := range coreSources {
		m.Apply(collect.Event{At: at, Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	for i := range nodes {
		n := fmt.Sprintf("n%d", i)
		m.Apply(collect.Event{At: at, Source: collect.RulesSource(n), Payload: &collect.Rules{Node: n, Generation: 1, Baseline: true, Ports: rules}})
	}
	at = at.Add(100 * time.Millisecond)
	m.Apply(advance(at))

	// One change of Service svc0, there and back: pod, slice, every node.
	var loop []collect.Event
	for _, up := range []bool{false, true} {
		pod := *pods[0]
		pod.Ready = &collect.Condition{Status: up}
		at = at.Add(50 * time.Millisecond)
		loop = append(loop, kube(collect.SourcePods, "Pod", "svc0-0", collect.OpModified, &pod))
		sl := &collect.EndpointSlice{Service: "svc0", ManagedBy: controllerName, Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
		rp := rules[0]
		rp.Endpoints = nil
		for p := range 10 {
			isUp := up || p > 0
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: pods[p].IPs[0], Ready: isUp, Serving: isUp, Node: pods[p].Node, PodName: fmt.Sprintf("svc0-%d", p), PodUID: fmt.Sprintf("u-svc0-%d", p)})
			if isUp {
				rp.Endpoints = append(rp.Endpoints, netip.AddrPortFrom(pods[p].IPs[0], 8080))
			}
		}
		loop = append(loop, kube(collect.SourceEndpointSlices, "EndpointSlice", "svc0-1", collect.OpModified, sl))
		for i := range nodes {
			n := fmt.Sprintf("n%d", i)
			loop = append(loop, collect.Event{At: at, Source: collect.RulesSource(n), Payload: &collect.Rules{Node: n, Generation: 2, Ports: []collect.RulePort{rp}}})
		}
	}
	return m, loop
}

// benchService is the Service "svcN" of a benchCluster, with its cluster IP.
func benchService(name string) (netip.Addr, *collect.Service) {
	var n int
	fmt.Sscanf(name, "svc%d", &n)
	ip := netip.AddrFrom4([4]byte{10, 96, byte(n >> 8), byte(n)})
	return ip, &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": name},
		Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}}, ClusterIPs: []netip.Addr{ip}}
}

// BenchmarkApply measures one event, among a few Services and among many: its
// cost follows the Services that it touches.
func BenchmarkApply(b *testing.B) {
	for _, size := range []struct{ services, nodes int }{{1, 3}, {1000, 3}, {100, 100}} {
		b.Run(fmt.Sprintf("%d Services, %d nodes", size.services, size.nodes), func(b *testing.B) {
			m, loop := benchCluster(size.services, size.nodes)
			b.ReportAllocs()
			i, rv := 0, uint64(1_000_000)
			shift := time.Duration(0)
			for b.Loop() {
				e := loop[i]
				e.At = e.At.Add(shift)
				if e.ResourceVersion != 0 {
					rv++
					e.ResourceVersion = rv
				}
				m.Apply(e)
				if i++; i == len(loop) {
					i, shift = 0, shift+100*time.Millisecond
				}
			}
		})
	}
}

// BenchmarkSnapshot measures a snapshot after one Service has changed.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []struct{ services, nodes int }{{1, 3}, {1000, 3}, {100, 100}} {
		b.Run(fmt.Sprintf("%d Services, %d nodes", size.services, size.nodes), func(b *testing.B) {
			m, _ := benchCluster(size.services, size.nodes)
			m.Snapshot()
			s := m.service("default", "svc0")
			b.ReportAllocs()
			for b.Loop() {
				s.dirty = true
				for _, p := range s.planes() {
					p.dirty = true
				}
				m.Snapshot().Service("default", "svc0").Rules.All()
			}
		})
	}
}
