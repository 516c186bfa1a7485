package desired

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// WhyNotRouted tells why kube-proxy keeps no rules for the Service, or "" when
// it does (k8s.io/kubernetes v1.37.2 pkg/proxy/util/utils.go ShouldSkipService,
// and the label selector in cmd/kube-proxy/app/server.go).
func WhyNotRouted(svc *collect.Service) string {
	switch {
	case svc.ProxyName != "":
		return "left to service proxy " + svc.ProxyName
	case svc.Kind == "ExternalName":
		return "ExternalName: resolved by DNS, no rules"
	case svc.Headless:
		return "headless: resolved by DNS, no rules"
	case len(svc.ClusterIPs) == 0:
		return "no cluster IP"
	}
	return ""
}

// Rules says what the rules of a node should be for one Service, given the
// Service's slices as published, by kube-proxy's rules (k8s.io/kubernetes
// v1.37.2: pkg/proxy/topology.go CategorizeEndpoints, endpointslicecache.go,
// serviceport.go, nftables/proxier.go).
//
// There is one entry for each Service port, family in which the Service has a
// cluster IP, and policy that the port uses. The cluster IP stands under the
// internal policy, the external frontends under the external one. An entry
// without endpoints keeps its frontends (connections are rejected or dropped);
// an entry without both is left out. A port under policy Local that is reached
// from outside has a Cluster entry as well, without external frontends: it
// serves the node's own connections. An entry with load balancer frontends says
// where they may be reached from, one with endpoints how long clients stay with
// theirs.
//
// Entries are sorted by port name, protocol, family and policy; frontends by
// kind and address; endpoints by address and port. Nothing of the arguments is
// kept. The result is nil when kube-proxy leaves the Service alone.
func Rules(ref ServiceRef, epSlices []*collect.EndpointSlice, node NodeRef) []collect.RulePort {
	svc := ref.Service
	if svc == nil || WhyNotRouted(svc) != "" {
		return nil
	}
	out := make([]collect.RulePort, 0, len(svc.Ports)*2)
	var buf []ruleEndpoint
	for i := range svc.Ports {
		sp := &svc.Ports[i]
		for _, family := range [...]collect.Family{collect.IPv4, collect.IPv6} {
			clusterIP, ok := clusterIPOf(svc, family)
			if !ok {
				continue
			}
			buf = gather(buf[:0], ref.Name, epSlices, sp, family)
			out = appendPort(out, ref, sp, family, clusterIP, buf, node)
		}
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	return out
}

// ruleEndpoint is one address and port with what kube-proxy decides by.
type ruleEndpoint struct {
	addr  netip.AddrPort
	owner *collect.SliceEndpoint
}

// gather lists the endpoints of one Service port in one family over all slices,
// without duplicates, sorted by address and port. Slices labelled headless are
// not watched by kube-proxy at all. When two endpoints share an address and
// port (an endpoint moving between slices, or an address used again), one that
// is not terminating wins, as in endpointslicecache.go addEndpoints; where
// upstream leaves the choice to map order a ready one wins here.
func gather(buf []ruleEndpoint, service string, epSlices []*collect.EndpointSlice, sp *collect.ServicePort, family collect.Family) []ruleEndpoint {
	for _, s := range epSlices {
		if s.Headless || s.Family != family || s.Service != service {
			continue
		}
		for _, p := range s.Ports {
			if p.Name != sp.Name || p.Protocol != sp.Protocol || p.Port <= 0 || p.Port > 65535 {
				continue
			}
			for i := range s.Endpoints {
				e := &s.Endpoints[i]
				buf = append(buf, ruleEndpoint{addr: netip.AddrPortFrom(e.Address, uint16(p.Port)), owner: e})
			}
		}
	}
	slices.SortStableFunc(buf, func(a, b ruleEndpoint) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(rank(a.owner), rank(b.owner)))
	})
	return slices.CompactFunc(buf, func(a, b ruleEndpoint) bool { return a.addr == b.addr })
}

// rank orders endpoints that share an address: lower wins.
func rank(e *collect.SliceEndpoint) int {
	switch {
	case !e.Terminating && e.Ready:
		return 0
	case !e.Terminating:
		return 1
	case e.Ready:
		return 2
	case e.Serving:
		return 3
	}
	return 4
}

func appendPort(out []collect.RulePort, ref ServiceRef, sp *collect.ServicePort, family collect.Family, clusterIP netip.Addr, eps []ruleEndpoint, node NodeRef) []collect.RulePort {
	svc := ref.Service
	port := uint16(sp.Port)
	external := externalFrontends(svc, sp, family, port)
	internalPolicy, externalPolicy := policyOf(svc.InternalPolicy), collect.PolicyCluster
	if externalPolicyLocal(svc) {
		externalPolicy = collect.PolicyLocal
	}
	internal := collect.Frontend{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(clusterIP, port)}
	affinity := AffinityTimeout(svc)

	entry := func(policy collect.Policy) collect.RulePort {
		p := collect.RulePort{RulePortKey: collect.RulePortKey{
			Namespace: ref.Namespace, Service: ref.Name, Port: sp.Name,
			Protocol: sp.Protocol, Family: family, Policy: policy,
		}}
		if internalPolicy == policy {
			p.Frontends = append(p.Frontends, internal)
		}
		if externalPolicy == policy {
			p.Frontends = append(p.Frontends, external...)
			p.Sources = collect.CanonicalPrefixes(LoadBalancerSources(svc, family, node))
		}
		if policy == collect.PolicyCluster {
			p.Endpoints = clusterEndpoints(eps, node)
		} else {
			p.Endpoints = localEndpoints(eps, node.Name)
		}
		if len(p.Endpoints) > 0 {
			p.Affinity = affinity
		}
		return p
	}
	// UsesClusterEndpoints and UsesLocalEndpoints of serviceport.go.
	if internalPolicy == collect.PolicyCluster || len(external) > 0 {
		if p := entry(collect.PolicyCluster); !p.Empty() {
			out = append(out, p)
		}
	}
	if internalPolicy == collect.PolicyLocal || (externalPolicy == collect.PolicyLocal && len(external) > 0) {
		if p := entry(collect.PolicyLocal); !p.Empty() {
			out = append(out, p)
		}
	}
	return out
}

// clusterIPOf is GetClusterIPByFamily.
func clusterIPOf(svc *collect.Service, family collect.Family) (netip.Addr, bool) {
	for _, ip := range svc.ClusterIPs {
		if collect.FamilyOf(ip) == family && (len(svc.Families) == 0 || slices.Contains(svc.Families, family)) {
			return ip.Unmap(), true
		}
	}
	return netip.Addr{}, false
}

func policyOf(s string) collect.Policy {
	if s == string(collect.PolicyLocal) {
		return collect.PolicyLocal
	}
	return collect.PolicyCluster
}

// externalPolicyLocal is ExternalPolicyLocal of pkg/api/v1/service/util.go.
func externalPolicyLocal(svc *collect.Service) bool {
	accessible := svc.Kind == "LoadBalancer" || svc.Kind == "NodePort" ||
		((svc.Kind == "ClusterIP" || svc.Kind == "") && len(svc.ExternalIPs) > 0)
	return accessible && svc.ExternalPolicy == string(collect.PolicyLocal)
}

// externalFrontends lists what is reached from outside, sorted by kind and
// address, in the given family.
func externalFrontends(svc *collect.Service, sp *collect.ServicePort, family collect.Family, port uint16) []collect.Frontend {
	if sp.NodePort == 0 && len(svc.ExternalIPs) == 0 && len(svc.LoadBalancerIPs) == 0 {
		return nil
	}
	var out []collect.Frontend
	add := func(kind collect.FrontendKind, ips []netip.Addr) {
		for _, ip := range ips {
			if collect.FamilyOf(ip) == family {
				out = append(out, collect.Frontend{Kind: kind, Addr: netip.AddrPortFrom(ip.Unmap(), port)})
			}
		}
	}
	add(collect.FrontendExternalIP, svc.ExternalIPs)
	add(collect.FrontendLoadBalancer, svc.LoadBalancerIPs)
	if sp.NodePort != 0 {
		any := netip.IPv4Unspecified()
		if family == collect.IPv6 {
			any = netip.IPv6Unspecified()
		}
		out = append(out, collect.Frontend{Kind: collect.FrontendNodePort, Addr: netip.AddrPortFrom(any, uint16(sp.NodePort))})
	}
	slices.SortFunc(out, CompareFrontends)
	return slices.Compact(out)
}

// CompareFrontends orders by kind, then address and port.
func CompareFrontends(a, b collect.Frontend) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Addr.Compare(b.Addr))
}
