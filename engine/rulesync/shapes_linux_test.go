package rulesync

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// shapes are Services of every kind that makes different rules, on node-1.
func shapes() world {
	ip := netip.MustParseAddr
	ips := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, ip(a))
		}
		return out
	}
	slice := func(name string, family collect.Family, port collect.SlicePort, eps ...string) *collect.EndpointSlice {
		s := &collect.EndpointSlice{Service: name, Family: family, Ports: []collect.SlicePort{port}}
		for _, e := range eps {
			addr, node, _ := strings.Cut(e, "@")
			s.Endpoints = append(s.Endpoints, collect.SliceEndpoint{Address: ip(addr), Ready: true, Serving: true, Node: node})
		}
		return s
	}
	http := collect.SlicePort{Protocol: collect.TCP, Port: 8080}
	v4 := []collect.Family{collect.IPv4}
	port := []collect.ServicePort{{Protocol: collect.TCP, Port: 80}}
	nodePort := []collect.ServicePort{{Protocol: collect.TCP, Port: 80, NodePort: 30080}}
	w := world{}
	add := func(name string, svc collect.Service, s ...*collect.EndpointSlice) {
		if svc.Kind == "" {
			svc.Kind = "ClusterIP"
		}
		if svc.Families == nil {
			svc.Families = v4
		}
		if svc.Ports == nil {
			svc.Ports = port
		}
		w[types.NamespacedName{Namespace: "default", Name: name}] = input{service: &svc, slices: s}
	}
	add("none", collect.Service{ClusterIPs: ips("10.96.1.1")})
	add("one", collect.Service{ClusterIPs: ips("10.96.1.2")}, slice("one", collect.IPv4, http, "10.244.1.2@node-1"))
	add("udp", collect.Service{ClusterIPs: ips("10.96.1.3"), Ports: []collect.ServicePort{{Name: "dns", Protocol: collect.UDP, Port: 53}, {Name: "dns-tcp", Protocol: collect.TCP, Port: 53}}},
		slice("udp", collect.IPv4, collect.SlicePort{Name: "dns", Protocol: collect.UDP, Port: 5353}, "10.244.1.2@node-1", "10.244.2.2@node-2"),
		slice("udp", collect.IPv4, collect.SlicePort{Name: "dns-tcp", Protocol: collect.TCP, Port: 5353}, "10.244.1.2@node-1", "10.244.2.2@node-2"))
	add("dual", collect.Service{ClusterIPs: ips("10.96.1.4", "fd00:96::4"), Families: []collect.Family{collect.IPv4, collect.IPv6}},
		slice("dual", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2"),
		slice("dual", collect.IPv6, http, "fd00:244::2@node-1", "fd00:244:1::2@node-2", "fd00:244:2::2@node-3"))
	add("v6", collect.Service{ClusterIPs: ips("fd00:96::5"), Families: []collect.Family{collect.IPv6}}, slice("v6", collect.IPv6, http, "fd00:244::2@node-1"))
	add("nodeport", collect.Service{Kind: "NodePort", ClusterIPs: ips("10.96.1.6"), Ports: nodePort}, slice("nodeport", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2"))
	add("external", collect.Service{ClusterIPs: ips("10.96.1.7"), ExternalIPs: ips("192.0.2.7")}, slice("external", collect.IPv4, http, "10.244.2.2@node-2"))
	// Local policies with and without an endpoint on the node.
	for name, svc := range map[string]collect.Service{
		"internal": {InternalPolicy: "Local"},
		"extern":   {Kind: "NodePort", ExternalPolicy: "Local", Ports: nodePort},
		"both":     {Kind: "NodePort", ExternalPolicy: "Local", InternalPolicy: "Local", Ports: nodePort},
	} {
		for i, where := range []string{"@node-1", "@node-2", ""} {
			svc := svc
			svc.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 2, byte(len(w))})}
			if svc.Kind == "NodePort" {
				svc.Ports = []collect.ServicePort{{Protocol: collect.TCP, Port: 80, NodePort: int32(31000 + len(w))}}
			}
			full := name + []string{"-here", "-elsewhere", "-nowhere"}[i]
			if where == "" {
				add(full, svc)
				continue
			}
			add(full, svc, slice(full, collect.IPv4, http, "10.244.1.9"+where, "10.244.3.9@node-3"))
		}
	}
	add("sticky", collect.Service{ClusterIPs: ips("10.96.1.8"), SessionAffinity: "ClientIP"}, slice("sticky", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2", "10.244.3.2@node-3"))
	add("sticky-dual", collect.Service{ClusterIPs: ips("10.96.1.9", "fd00:96::9"), Families: []collect.Family{collect.IPv4, collect.IPv6}, SessionAffinity: "ClientIP", AffinityTimeout: time.Minute},
		slice("sticky-dual", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2"), slice("sticky-dual", collect.IPv6, http, "fd00:244::2@node-1", "fd00:244:1::2@node-2"))
	add("sticky-local", collect.Service{Kind: "NodePort", ClusterIPs: ips("10.96.1.10"), SessionAffinity: "ClientIP", ExternalPolicy: "Local", Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, NodePort: 32080}}},
		slice("sticky-local", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2"))
	prefix := func(s ...string) (out []netip.Prefix) {
		for _, p := range s {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	balancer := collect.Service{Kind: "LoadBalancer", ClusterIPs: ips("10.96.1.11", "fd00:96::11"), Families: []collect.Family{collect.IPv4, collect.IPv6},
		LoadBalancerIPs: ips("192.0.2.11", "192.0.2.12", "2001:db8::11"), SourceRanges: prefix("203.0.113.0/24", "198.51.100.0/25", "fd00::/16")}
	add("balanced", balancer, slice("balanced", collect.IPv4, http, "10.244.1.2@node-1", "10.244.2.2@node-2"), slice("balanced", collect.IPv6, http, "fd00:244::2@node-1"))
	balancer.ClusterIPs, balancer.LoadBalancerIPs, balancer.ExternalPolicy = ips("10.96.1.12", "fd00:96::12"), ips("192.0.2.13", "2001:db8::13"), "Local"
	add("balanced-elsewhere", balancer, slice("balanced-elsewhere", collect.IPv4, http, "10.244.2.2@node-2"))
	return w
}

func TestEveryShapeOfServiceIsReadBackAsWanted(t *testing.T) {
	inBothLayouts(t, everyShapeIsReadBack)
}

func everyShapeIsReadBack(t *testing.T, n *nodes.Node, table Table, ref desired.NodeRef) {
	w := shapes()
	res, err := table.Write(t.Context(), w.change(true, ref))
	if err != nil {
		t.Fatal(err)
	}
	if res.Note != "" {
		t.Errorf("note %q", res.Note)
	}
	checkRules(t, n, w.wanted(ref))

	// Without its endpoints, and back: by partial syncs, one Service at a time.
	for name, in := range w {
		if len(in.slices) == 0 {
			continue
		}
		w[name] = input{service: in.service}
		if _, err := table.Write(t.Context(), w.change(false, ref, name)); err != nil {
			t.Fatalf("%s without endpoints: %v", name, err)
		}
		checkRules(t, n, w.wanted(ref))
		w[name] = in
		if _, err := table.Write(t.Context(), w.change(false, ref, name)); err != nil {
			t.Fatalf("%s with endpoints again: %v", name, err)
		}
		checkRules(t, n, w.wanted(ref))
	}

	// Everything goes; nothing may stay but emptied chains.
	for name := range w {
		delete(w, name)
		if _, err := table.Write(t.Context(), w.change(false, ref, name)); err != nil {
			t.Fatalf("%s removed: %v", name, err)
		}
	}
	checkRules(t, n, nil)
	out, err := n.Exec(t.Context(), "nft", "list", "ruleset")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := table.(*kernelTable); ok && strings.Contains(string(out), "set affinity-") {
		t.Errorf("a set of clients is left:\n%s", out)
	}
	for _, left := range []string{"dnat to 10.", " : goto ", "10.96.1.", "10.96.2.", "fd00:96:"} {
		if strings.Contains(string(out), left) {
			t.Errorf("%q is left of Services that are gone:\n%s", left, out)
		}
	}
}

func TestOneEndpointWantedByTwoServicesStaysWithTheOther(t *testing.T) {
	n, table, ref := kernelNode(t)
	w := shapes()
	if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
		t.Fatal(err)
	}
	hairpin := func() bool {
		t.Helper()
		out, err := n.Exec(t.Context(), "nft", "list", "set", "ip", "kube-proxy", "hairpin-connections")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), "10.244.1.2 . 10.244.1.2 . tcp . 8080")
	}
	// 10.244.1.2:8080 on this node is an endpoint of several.
	users := []string{"one", "dual", "nodeport", "sticky", "sticky-dual", "sticky-local", "balanced"}
	for i, name := range users {
		if !hairpin() {
			t.Fatalf("the hairpin element went with %s, others still have the endpoint", users[i-1])
		}
		key := types.NamespacedName{Namespace: "default", Name: name}
		delete(w, key)
		if _, err := table.Write(t.Context(), w.change(false, ref, key)); err != nil {
			t.Fatal(err)
		}
	}
	if hairpin() {
		t.Error("the hairpin element outlived the last Service that has the endpoint")
	}
}
