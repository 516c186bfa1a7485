package rulesync

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// routed says what rules for these Services would do, in the words of a decoder
// of kube-proxy's layout: a frontend without any endpoint is rejected, which
// shows under the Cluster policy; one whose endpoints are all on other nodes
// drops, which shows under Local. Of Services that want the same frontend the
// first by name has it. The result is sorted.
func routed(services map[types.NamespacedName][]Port) []collect.RulePort {
	type place struct {
		protocol collect.Protocol
		addr     netip.AddrPort
	}
	taken := map[place]bool{}
	var out []collect.RulePort
	for _, name := range sorted(services) {
		for i := range services[name] {
			p := &services[name][i]
			var ports [2]collect.RulePort // under Cluster, under Local
			for i, policy := range [...]collect.Policy{collect.PolicyCluster, collect.PolicyLocal} {
				ports[i].RulePortKey = collect.RulePortKey{
					Namespace: p.Service.Namespace, Service: p.Service.Name, Port: p.Name,
					Protocol: p.Protocol, Family: p.Family, Policy: policy,
				}
			}
			used, usedLocal := false, false
			p.eachFrontend(func(f collect.Frontend) {
				at := place{p.Protocol, f.Addr}
				if taken[at] {
					return
				}
				taken[at] = true
				external := f.Kind != collect.FrontendClusterIP
				local := p.InternalLocal && !external || p.ExternalLocal && external
				to := &ports[0]
				if local && p.HasEndpoints {
					to = &ports[1]
				}
				to.Frontends = append(to.Frontends, f)
				if f.Kind == collect.FrontendLoadBalancer {
					to.Sources = collect.CanonicalPrefixes(p.Sources)
				}
				usedLocal = usedLocal || local
				// External frontends with the Local policy use the others as
				// well: for connections from the node and its pods.
				used = used || external || !local
			})
			if used && p.HasEndpoints {
				ports[0].Endpoints = p.Cluster
			}
			if usedLocal && p.HasEndpoints {
				ports[1].Endpoints = p.Local
			}
			for _, rp := range ports {
				if p.Affinity && len(rp.Endpoints) > 0 {
					rp.Affinity = p.AffinityTimeout
				}
				if rp.Empty() {
					continue
				}
				slices.SortFunc(rp.Frontends, func(a, b collect.Frontend) int {
					return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Addr.Compare(b.Addr))
				})
				out = append(out, rp)
			}
		}
	}
	sortPorts(out)
	return out
}

// eachFrontend calls each for every address that leads to the port.
func (p *Port) eachFrontend(each func(collect.Frontend)) {
	each(collect.Frontend{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(p.ClusterIP, p.Port)})
	for _, a := range p.ExternalIPs {
		each(collect.Frontend{Kind: collect.FrontendExternalIP, Addr: netip.AddrPortFrom(a, p.Port)})
	}
	for _, a := range p.LoadBalancerIPs {
		each(collect.Frontend{Kind: collect.FrontendLoadBalancer, Addr: netip.AddrPortFrom(a, p.Port)})
	}
	if p.NodePort != 0 {
		a := netip.IPv4Unspecified()
		if p.Family == collect.IPv6 {
			a = netip.IPv6Unspecified()
		}
		each(collect.Frontend{Kind: collect.FrontendNodePort, Addr: netip.AddrPortFrom(a, p.NodePort)})
	}
}
