package desired

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// ep is "address[@node] flags… [z=zone,…] [n=node,…]"; flags: ready serving
// terminating.
func ep(s string) collect.SliceEndpoint {
	f := strings.Fields(s)
	addr, node, _ := strings.Cut(f[0], "@")
	e := collect.SliceEndpoint{Address: netip.MustParseAddr(addr), Node: node}
	for _, x := range f[1:] {
		switch {
		case x == "ready":
			e.Ready, e.Serving = true, true
		case x == "serving":
			e.Serving = true
		case x == "terminating":
			e.Terminating = true
		case strings.HasPrefix(x, "z="):
			e.HintZones = strings.Split(x[2:], ",")
		case strings.HasPrefix(x, "n="):
			e.HintNodes = strings.Split(x[2:], ",")
		default:
			panic(x)
		}
	}
	return e
}

func slice(eps ...string) *collect.EndpointSlice {
	s := &collect.EndpointSlice{Service: "web", Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
	for _, e := range eps {
		s.Endpoints = append(s.Endpoints, ep(e))
	}
	return s
}

func show(ports []collect.RulePort) (out []string) {
	for _, p := range ports {
		s := fmt.Sprintf("%s/%s/%s/%s", p.Port, p.Protocol, p.Family, p.Policy)
		for _, f := range p.Frontends {
			s += fmt.Sprintf(" %s=%s", f.Kind, f.Addr)
		}
		s += " ->"
		for _, e := range p.Endpoints {
			s += " " + e.String()
		}
		if p.Sources != nil {
			s += fmt.Sprint(" from ", p.Sources)
		}
		if p.Affinity > 0 {
			s += fmt.Sprint(" affinity ", p.Affinity)
		}
		out = append(out, s)
	}
	return out
}

func slicesOf(s ...*collect.EndpointSlice) []*collect.EndpointSlice { return s }

// Sources: k8s.io/kubernetes v1.37.2 pkg/proxy; the file is named in each case.
func TestRulesFollowKubeProxy(t *testing.T) {
	internalLocal := func(s *collect.Service) { s.InternalPolicy = "Local" }
	externalLocal := func(s *collect.Service) { s.ExternalPolicy = "Local" }
	nodePort := func(s *collect.Service) { s.Kind, s.Ports[0].NodePort = "NodePort", 30080 }
	affinity := func(s *collect.Service) { s.SessionAffinity = "ClientIP" }
	balanced := func(ranges ...string) func(*collect.Service) {
		return func(s *collect.Service) {
			s.Kind, s.LoadBalancerIPs = "LoadBalancer", []netip.Addr{netip.MustParseAddr("192.0.2.8")}
			for _, r := range ranges {
				s.SourceRanges = append(s.SourceRanges, netip.MustParsePrefix(r))
			}
		}
	}
	const front = "/TCP/IPv4/Cluster ClusterIP=10.96.0.11:80 ->"
	for _, tt := range []struct {
		name, source string
		svc          *collect.Service
		slices       []*collect.EndpointSlice
		want         []string
	}{
		{"ready endpoints only", "topology.go", service(), slicesOf(slice("10.0.0.2 ready", "10.0.0.1 ready", "10.0.0.3", "10.0.0.4 serving terminating")),
			[]string{front + " 10.0.0.1:8080 10.0.0.2:8080"}},
		{"serving terminating ones when none is ready", "topology.go", service(), slicesOf(slice("10.0.0.3", "10.0.0.4 serving terminating", "10.0.0.5 terminating")),
			[]string{front + " 10.0.0.4:8080"}},
		{"publishNotReadyAddresses is in the slice's ready", "endpoint.go IsReady", service(publish), slicesOf(slice("10.0.0.4 ready terminating")),
			[]string{front + " 10.0.0.4:8080"}},
		{"frontends stay without endpoints", "nftables/proxier.go no-endpoint-services", service(nodePort), nil,
			[]string{"/TCP/IPv4/Cluster ClusterIP=10.96.0.11:80 NodePort=0.0.0.0:30080 ->"}},
		{"an endpoint in two slices counts once", "endpointslicecache.go addEndpoints", service(), slicesOf(slice("10.0.0.1 ready"), slice("10.0.0.1 ready")),
			[]string{front + " 10.0.0.1:8080"}},
		{"of two with one address the one not terminating wins", "endpointslicecache.go addEndpoints", service(),
			slicesOf(slice("10.0.0.1 ready", "10.0.0.2 serving terminating"), slice("10.0.0.1 serving terminating")), []string{front + " 10.0.0.1:8080"}},
		{"even when that one is not ready", "endpointslicecache.go addEndpoints", service(),
			slicesOf(slice("10.0.0.1"), slice("10.0.0.1 serving terminating")), []string{front}},
		{"slices labelled headless are ignored", "cmd/kube-proxy/app/server.go", service(),
			slicesOf(&collect.EndpointSlice{Service: "web", Headless: true, Family: collect.IPv4, Ports: slice().Ports, Endpoints: slice("10.0.0.1 ready").Endpoints}), []string{front}},
		{"a slice port of another name is not the Service's", "endpointslicecache.go endpointInfoByServicePort", service(),
			slicesOf(&collect.EndpointSlice{Service: "web", Family: collect.IPv4, Ports: []collect.SlicePort{{Name: "x", Protocol: collect.TCP, Port: 8080}}, Endpoints: slice("10.0.0.1 ready").Endpoints}), []string{front}},
		{"slice port 0 is ignored", "endpointslicecache.go endpointInfoByServicePort", service(),
			slicesOf(&collect.EndpointSlice{Service: "web", Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP}}, Endpoints: slice("10.0.0.1 ready").Endpoints}), []string{front}},
		{"headless has no rules", "util/utils.go ShouldSkipService", service(headless), slicesOf(slice("10.0.0.1 ready")), nil},
		{"ExternalName has no rules", "util/utils.go ShouldSkipService", service(func(s *collect.Service) { s.Kind = "ExternalName" }), nil, nil},
		{"a foreign service-proxy-name has no rules", "cmd/kube-proxy/app/server.go", service(func(s *collect.Service) { s.ProxyName = "cilium" }), slicesOf(slice("10.0.0.1 ready")), nil},
		{"internal policy Local restricts to the node", "topology.go", service(internalLocal), slicesOf(slice("10.0.0.1@n1 ready", "10.0.0.2@n2 ready")),
			[]string{"/TCP/IPv4/Local ClusterIP=10.96.0.11:80 -> 10.0.0.1:8080"}},
		{"internal policy Local without local ones keeps the frontend", "nftables/proxier.go", service(internalLocal), slicesOf(slice("10.0.0.2@n2 ready")),
			[]string{"/TCP/IPv4/Local ClusterIP=10.96.0.11:80 ->"}},
		{"external policy Local has both sets", "serviceport.go UsesLocalEndpoints", service(nodePort, externalLocal), slicesOf(slice("10.0.0.1@n1 ready", "10.0.0.2@n2 ready")),
			[]string{front + " 10.0.0.1:8080 10.0.0.2:8080", "/TCP/IPv4/Local NodePort=0.0.0.0:30080 -> 10.0.0.1:8080"}},
		{"external policy Local means nothing without outside frontends", "pkg/api/v1/service/util.go", service(externalLocal), slicesOf(slice("10.0.0.1@n1 ready")),
			[]string{front + " 10.0.0.1:8080"}},
		{"both Local: the Cluster set serves the short circuit", "serviceport.go UsesClusterEndpoints", service(nodePort, externalLocal, internalLocal), slicesOf(slice("10.0.0.1@n1 ready", "10.0.0.2@n2 ready")),
			[]string{"/TCP/IPv4/Cluster -> 10.0.0.1:8080 10.0.0.2:8080", "/TCP/IPv4/Local ClusterIP=10.96.0.11:80 NodePort=0.0.0.0:30080 -> 10.0.0.1:8080"}},
		{"the fallback is independent for Cluster and Local", "topology.go", service(nodePort, externalLocal), slicesOf(slice("10.0.0.1@n1 serving terminating", "10.0.0.2@n2 ready")),
			[]string{front + " 10.0.0.2:8080", "/TCP/IPv4/Local NodePort=0.0.0.0:30080 -> 10.0.0.1:8080"}},
		{"zone hints restrict when all have one and one matches", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z1", "10.0.0.2 ready z=z2")),
			[]string{front + " 10.0.0.1:8080"}},
		{"zone hints are ignored when one ready endpoint has none", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z1", "10.0.0.2 ready")),
			[]string{front + " 10.0.0.1:8080 10.0.0.2:8080"}},
		{"zone hints are ignored when none is for this zone", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z3", "10.0.0.2 ready z=z2")),
			[]string{front + " 10.0.0.1:8080 10.0.0.2:8080"}},
		{"hints of endpoints that are not ready do not count", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z1", "10.0.0.2 ready z=z2", "10.0.0.3", "10.0.0.4 serving terminating")),
			[]string{front + " 10.0.0.1:8080"}},
		{"node hints come before zone hints", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z1 n=n2", "10.0.0.2 ready z=z1 n=n1")),
			[]string{front + " 10.0.0.2:8080"}},
		{"node hints for other nodes leave the zone hints", "topology.go topologyModeFromHints", service(), slicesOf(slice("10.0.0.1 ready z=z1 n=n2", "10.0.0.2 ready z=z2 n=n3")),
			[]string{front + " 10.0.0.1:8080"}},
		{"hints do not restrict the Local policy", "topology.go", service(nodePort, externalLocal), slicesOf(slice("10.0.0.1@n1 ready z=z2", "10.0.0.2@n2 ready z=z1")),
			[]string{front + " 10.0.0.2:8080", "/TCP/IPv4/Local NodePort=0.0.0.0:30080 -> 10.0.0.1:8080"}},
		{"the fallback ignores hints", "topology.go", service(), slicesOf(slice("10.0.0.1 serving terminating z=z1", "10.0.0.2 serving terminating z=z2")),
			[]string{front + " 10.0.0.1:8080 10.0.0.2:8080"}},
		{"all kinds of frontends", "nftables/proxier.go", service(nodePort, func(s *collect.Service) {
			s.Kind = "LoadBalancer"
			s.ExternalIPs = []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}
			s.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("192.0.2.8")}
		}), slicesOf(slice("10.0.0.1 ready")),
			[]string{"/TCP/IPv4/Cluster ClusterIP=10.96.0.11:80 ExternalIP=192.0.2.7:80 LoadBalancer=192.0.2.8:80 NodePort=0.0.0.0:30080 -> 10.0.0.1:8080"}},
		{"source ranges limit the load balancer's addresses", "serviceport.go", service(balanced("203.0.113.0/25", "203.0.113.128/25", "fd00::/8")), slicesOf(slice("10.0.0.1 ready")),
			[]string{front[:len(front)-2] + "LoadBalancer=192.0.2.8:80 -> 10.0.0.1:8080 from [203.0.113.0/24]"}},
		{"ranges with every address limit nothing", "serviceport.go IsZeroCIDR", service(balanced("203.0.113.0/25", "0.0.0.0/0")), slicesOf(slice("10.0.0.1 ready")),
			[]string{front[:len(front)-2] + "LoadBalancer=192.0.2.8:80 -> 10.0.0.1:8080"}},
		{"ranges with the node have the address itself", "nftables/proxier.go allowFromNode", service(balanced("198.51.100.0/30")), slicesOf(slice("10.0.0.1 ready")),
			[]string{front[:len(front)-2] + "LoadBalancer=192.0.2.8:80 -> 10.0.0.1:8080 from [192.0.2.8/32 198.51.100.0/30]"}},
		{"ranges without a load balancer's address limit nothing", "nftables/proxier.go usesFWChain", service(balanced("203.0.113.0/25"), func(s *collect.Service) { s.LoadBalancerIPs = nil }), slicesOf(slice("10.0.0.1 ready")),
			[]string{front + " 10.0.0.1:8080"}},
		{"sources and frontends stand under the same policy", "nftables/proxier.go", service(balanced("203.0.113.0/25"), externalLocal, affinity), slicesOf(slice("10.0.0.1@n2 ready")),
			[]string{front + " 10.0.0.1:8080 affinity 3h0m0s", "/TCP/IPv4/Local LoadBalancer=192.0.2.8:80 -> from [203.0.113.0/25]"}},
		{"a family without cluster IP has no rules", "util/utils.go GetClusterIPByFamily", service(dual, func(s *collect.Service) { s.ClusterIPs = s.ClusterIPs[:1] }),
			slicesOf(slice("10.0.0.1 ready")), []string{front + " 10.0.0.1:8080"}},
		{"families do not mix", "endpointschangetracker.go EndpointSliceUpdate", service(dual),
			slicesOf(slice("10.0.0.1 ready"), &collect.EndpointSlice{Service: "web", Family: collect.IPv6, Ports: slice().Ports, Endpoints: []collect.SliceEndpoint{ep("fd01::1 serving terminating")}}),
			[]string{front + " 10.0.0.1:8080", "/TCP/IPv6/Cluster ClusterIP=[fd00::11]:80 -> [fd01::1]:8080"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := show(Rules(ServiceRef{Namespace: "default", Name: "web", Service: tt.svc}, tt.slices, NodeRef{Name: "n1", Zone: "z1", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}}))
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s\n got %q\nwant %q", tt.source, got, tt.want)
			}
		})
	}
}

func TestRulesResolveEachServicePortOnItsOwn(t *testing.T) {
	svc := service(func(s *collect.Service) {
		s.Ports = []collect.ServicePort{{Name: "b", Protocol: collect.TCP, Port: 80, Target: 8080}, {Name: "a", Protocol: collect.UDP, Port: 53, Target: 5353}}
	})
	s := slice("10.0.0.1 ready")
	s.Ports = []collect.SlicePort{{Name: "a", Protocol: collect.UDP, Port: 5353}, {Name: "b", Protocol: collect.TCP, Port: 8080}}
	got := show(Rules(ServiceRef{Name: "web", Service: svc}, slicesOf(s), NodeRef{Name: "n1"}))
	want := []string{"a/UDP/IPv4/Cluster ClusterIP=10.96.0.11:53 -> 10.0.0.1:5353", "b/TCP/IPv4/Cluster ClusterIP=10.96.0.11:80 -> 10.0.0.1:8080"}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func BenchmarkRules(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d endpoints", n), func(b *testing.B) {
			var all []*collect.EndpointSlice
			for i := 0; i < n; i += 100 {
				var eps []string
				for j := i; j < min(i+100, n); j++ {
					eps = append(eps, fmt.Sprintf("10.0.%d.%d@n1 ready", j/250, j%250+1))
				}
				all = append(all, slice(eps...))
			}
			ref := ServiceRef{Namespace: "default", Name: "web", Service: service()}
			b.ReportAllocs()
			for b.Loop() {
				Rules(ref, all, NodeRef{Name: "n1"})
			}
		})
	}
}
