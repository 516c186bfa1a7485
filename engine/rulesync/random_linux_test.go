package rulesync

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// randomService changes a world by one Service or its slices.
func randomService(r *rand.Rand, w world) types.NamespacedName {
	i := r.IntN(6)
	name := types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("dice-%d", i)}
	in := w[name]
	if r.IntN(8) == 0 {
		delete(w, name)
		return name
	}
	if in.service == nil || r.IntN(3) == 0 {
		in.service = randomSpec(r, i)
	}
	if in.slices == nil || r.IntN(6) > 0 {
		in.slices = randomSlices(r, name.Name)
	}
	w[name] = in
	return name
}

func randomSpec(r *rand.Rand, i int) *collect.Service {
	policy := func() string { return []string{"Cluster", "Cluster", "Local"}[r.IntN(3)] }
	s := &collect.Service{
		Kind: "ClusterIP", InternalPolicy: policy(), Families: []collect.Family{collect.IPv4},
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 7, byte(i + 1)})},
	}
	if r.IntN(3) == 0 {
		s.Families = append(s.Families, collect.IPv6)
		s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(fmt.Sprintf("fd00:96::%d", i+1)))
	}
	protocols := []collect.Protocol{collect.TCP, collect.TCP, collect.UDP, collect.SCTP}
	for k, name := range []string{"http", "metrics", ""}[:1+r.IntN(3)] {
		s.Ports = append(s.Ports, collect.ServicePort{Name: name, Protocol: protocols[r.IntN(4)], Port: int32(80 + k + 10*r.IntN(2))})
	}
	if r.IntN(3) == 0 {
		s.Kind, s.ExternalPolicy = "NodePort", policy()
		for k := range s.Ports {
			s.Ports[k].NodePort = int32(30100 + 10*i + k)
		}
	}
	if s.Kind == "NodePort" && r.IntN(2) == 0 {
		s.Kind = "LoadBalancer"
		for k := range r.IntN(3) {
			s.LoadBalancerIPs = append(s.LoadBalancerIPs, netip.AddrFrom4([4]byte{203, 0, 113, byte(10*i + k)}), netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", 10*i+k)))
		}
		for range r.IntN(4) {
			s.SourceRanges = append(s.SourceRanges,
				netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(r.IntN(256))}), 24+r.IntN(9)).Masked(),
				netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 15: byte(r.IntN(256))}), 120+r.IntN(9)).Masked())
		}
		if r.IntN(4) == 0 { // the nodes' own
			s.SourceRanges = append(s.SourceRanges, nodes.DefaultNodeCIDR, netip.MustParsePrefix("fd00::/64"))
		}
	}
	if r.IntN(4) == 0 {
		s.ExternalPolicy = policy()
		for k := range 1 + r.IntN(2) {
			s.ExternalIPs = append(s.ExternalIPs, netip.AddrFrom4([4]byte{192, 0, 2, byte(10*i + k)}))
		}
	}
	if r.IntN(4) == 0 {
		s.SessionAffinity, s.AffinityTimeout = "ClientIP", []time.Duration{0, time.Minute}[r.IntN(2)]
	}
	return s
}

func randomSlices(r *rand.Rand, name string) (out []*collect.EndpointSlice) {
	calm := r.IntN(4) > 0
	for _, f := range []collect.Family{collect.IPv4, collect.IPv4, collect.IPv6} {
		s := &collect.EndpointSlice{Service: name, Family: f}
		for _, p := range []string{"http", "metrics", ""} {
			for _, proto := range []collect.Protocol{collect.TCP, collect.UDP} {
				if r.IntN(5) > 0 {
					s.Ports = append(s.Ports, collect.SlicePort{Name: p, Protocol: proto, Port: int32(8080 + r.IntN(2))})
				}
			}
		}
		for range r.IntN(7) {
			a := netip.AddrFrom4([4]byte{10, 244, byte(1 + r.IntN(3)), byte(10 + r.IntN(12))})
			if f == collect.IPv6 {
				a = netip.MustParseAddr(fmt.Sprintf("fd00:244::%d", 1+r.IntN(12)))
			}
			// By its address: one address is one endpoint.
			b := a.AsSlice()
			last := int(b[len(b)-1])
			s.Endpoints = append(s.Endpoints, collect.SliceEndpoint{
				Address: a, Node: fmt.Sprintf("node-%d", 1+last%3), Ready: calm && last%4 > 0, Serving: last%4 > 0 || last%3 > 0, Terminating: !calm && last%2 == 0,
			})
		}
		out = append(out, s)
	}
	return out
}

// followRules watches a node's rules; the function returns what a reader of the
// events believes once everything committed so far has been told.
func followRules(t *testing.T, n *nodes.Node) func() []collect.RulePort {
	t.Helper()
	source := noderules.New(noderules.Options{Node: n.Name(), NetNS: n.NetNS()})
	events := make(chan collect.Event, 10000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, collect.SinkFunc(func(e collect.Event) { events <- e })) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	state := map[collect.RulePortKey]collect.RulePort{}
	return func() []collect.RulePort {
		t.Helper()
		now := readRules(t, n).Generation
		source.Vouch()
		for e := range events {
			switch p := e.Payload.(type) {
			case *collect.Rules:
				if len(p.Unknown) > 0 {
					t.Errorf("rules that lead to no Service: %v", p.Unknown)
				}
				for _, port := range p.Ports {
					if state[port.RulePortKey] = port; port.Empty() {
						delete(state, port.RulePortKey)
					}
				}
			case *collect.Vouch:
				if p.Generation == now {
					return slices.SortedFunc(maps.Values(state), func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
				}
			}
		}
		return nil
	}
}

// told is what kube-proxy's layout tells of rules: a load balancer's address that
// may be reached from anywhere is one address more.
func told(ports []collect.RulePort) []collect.RulePort {
	out := slices.Clone(ports)
	for i := range out {
		p := &out[i]
		p.Frontends = slices.Clone(p.Frontends)
		for k := range p.Frontends {
			if f := &p.Frontends[k]; f.Kind == collect.FrontendLoadBalancer && p.Sources == nil {
				f.Kind = collect.FrontendExternalIP
			}
		}
		slices.SortFunc(p.Frontends, desired.CompareFrontends)
	}
	return out
}

func TestBothLayoutsAndTheMemoryRouteTheSameAfterEveryRandomChange(t *testing.T) {
	flatN, flat, ref := flatNode(t)
	kubeN, kube, _ := kernelNode(t)
	six := netip.MustParseAddr("fd00::1") // for NodePorts in both families
	ref.Addresses = append(ref.Addresses, six)
	flat.node.Addresses = append(flat.node.Addresses, six)
	memory := NewMemory("node-1", collect.SystemClock{}, time.Second)
	follow := followRules(t, flatN)
	r := rand.New(rand.NewPCG(2, 200))
	w := world{}
	total, affine, limited := 0, 0, 0
	for i := range 200 {
		name := randomService(r, w)
		for _, table := range []Table{flat, kube, memory} {
			if _, err := table.Write(t.Context(), w.change(i%40 == 0, ref, name)); err != nil {
				t.Fatalf("change %d: %v", i, err)
			}
		}
		want, got := readRules(t, kubeN).Ports, told(readRules(t, flatN).Ports)
		if d := cmp.Diff(want, got, sameAddrs); d != "" {
			t.Fatalf("change %d, of %s to %+v: - kube-proxy's layout + flat:\n%s", i, name, w[name], d)
		}
		if d := cmp.Diff(want, told(routed(memory.services)), sameAddrs, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("change %d: - kube-proxy's layout + memory:\n%s", i, d)
		}
		if d := cmp.Diff(got, told(follow()), sameAddrs, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("change %d: - a dump + followed:\n%s", i, d)
		}
		for _, p := range got {
			total += len(p.Endpoints)
			if p.Affinity > 0 {
				affine++
			}
			if p.Sources != nil {
				limited++
			}
		}
	}
	if total < 2000 || affine < 100 || limited < 100 {
		t.Errorf("only %d endpoints were routed to in all, %d ports with affinity, %d with sources: the changes are too dull", total, affine, limited)
	}
}
