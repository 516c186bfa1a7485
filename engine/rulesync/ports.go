package rulesync

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// portsOf says what the node should hold for a Service: engine/desired decides
// on endpoints and frontends; here they are brought together for each port and
// family.
func portsOf(name types.NamespacedName, svc *collect.Service, epSlices []*collect.EndpointSlice, node desired.NodeRef) []Port {
	if svc == nil {
		return nil
	}
	ref := desired.ServiceRef{Namespace: name.Namespace, Name: name.Name, Service: svc}
	var out []Port
	at := map[portKey]int{}
	for _, rp := range desired.Rules(ref, epSlices, node) {
		k := portKey{rp.Port, rp.Protocol, rp.Family}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, Port{Service: name, Name: rp.Port, Protocol: rp.Protocol, Family: rp.Family})
		}
		out[i].add(rp)
	}
	// A Service has its ClusterIP in every family it has rules in; without
	// one there is nothing to reach the port by.
	out = slices.DeleteFunc(out, func(p Port) bool { return !p.ClusterIP.IsValid() })
	anywhere := anyEndpoint(ref, epSlices, out)
	onNode := addressesOn(node.Name, epSlices)
	for i := range out {
		p := &out[i]
		p.HasEndpoints = len(p.Cluster) > 0 || len(p.Local) > 0 || anywhere[portKey{p.Name, p.Protocol, p.Family}]
		for _, ep := range slices.Concat(p.Cluster, p.Local) {
			if onNode[ep.Addr()] {
				p.OnNode = append(p.OnNode, ep)
			}
		}
		slices.SortFunc(p.OnNode, netip.AddrPort.Compare)
		p.OnNode = slices.Compact(p.OnNode)
		p.AffinityTimeout = desired.AffinityTimeout(svc)
		p.Affinity = p.AffinityTimeout > 0
		p.Sources = desired.LoadBalancerSources(svc, p.Family, node)
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol))
	})
	return out
}

type portKey struct {
	name     string
	protocol collect.Protocol
	family   collect.Family
}

// add takes in one routed set of the port.
func (p *Port) add(rp collect.RulePort) {
	local := rp.Policy == collect.PolicyLocal
	if local {
		p.Local = rp.Endpoints
	} else {
		p.Cluster = rp.Endpoints
	}
	for _, f := range rp.Frontends {
		switch f.Kind {
		case collect.FrontendClusterIP:
			p.ClusterIP, p.Port, p.InternalLocal = f.Addr.Addr(), f.Addr.Port(), local
		case collect.FrontendNodePort:
			p.NodePort, p.ExternalLocal = f.Addr.Port(), local
		case collect.FrontendExternalIP:
			p.ExternalIPs, p.ExternalLocal = append(p.ExternalIPs, f.Addr.Addr()), local
		case collect.FrontendLoadBalancer:
			p.LoadBalancerIPs, p.ExternalLocal = append(p.LoadBalancerIPs, f.Addr.Addr()), local
		}
	}
}

// anyEndpoint answers, for ports that this node serves with its own endpoints
// only, whether there is a usable endpoint on any node: without one kube-proxy
// rejects connections, with one elsewhere it drops them. Under the Cluster
// policy the question is the same as whether there is an endpoint at all.
func anyEndpoint(ref desired.ServiceRef, epSlices []*collect.EndpointSlice, ports []Port) map[portKey]bool {
	if !slices.ContainsFunc(ports, func(p Port) bool { return p.InternalLocal && !p.External() }) {
		return nil
	}
	svc := *ref.Service
	svc.InternalPolicy = string(collect.PolicyCluster)
	ref.Service = &svc
	out := map[portKey]bool{}
	for _, rp := range desired.Rules(ref, epSlices, desired.NodeRef{}) {
		if rp.Policy == collect.PolicyCluster && len(rp.Endpoints) > 0 {
			out[portKey{rp.Port, rp.Protocol, rp.Family}] = true
		}
	}
	return out
}

// addressesOn are the endpoint addresses that lie on the node.
func addressesOn(node string, epSlices []*collect.EndpointSlice) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for _, s := range epSlices {
		for i := range s.Endpoints {
			if s.Endpoints[i].Node == node {
				out[s.Endpoints[i].Address] = true
			}
		}
	}
	return out
}
