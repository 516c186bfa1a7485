package rulesync

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// flows says which UDP flows may go on, by the rules of kube-proxy's
// CleanStaleEntries (pkg/proxy/conntrack/cleanup.go): a flow that was sent to a
// Service goes on while its endpoint serves, whatever the policies and whatever
// else becomes of the Service. Without rules for it a flow is left alone.
type flows struct {
	frontends map[netip.AddrPort]map[netip.AddrPort]bool
	// nodePorts are matched by the port only. One without a serving endpoint
	// is left out: what else uses that port could not be told from it.
	nodePorts map[nodePort]map[netip.AddrPort]bool
}

type nodePort struct {
	family collect.Family
	port   uint16
}

// stale reports that a flow to a Service goes to what is no endpoint of it any
// more. to is where the client sends, from where it is answered.
func (f flows) stale(to, from netip.AddrPort) bool {
	if serving, ok := f.frontends[to]; ok && !serving[from] {
		return true
	}
	serving, ok := f.nodePorts[nodePort{collect.FamilyOf(to.Addr()), to.Port()}]
	return ok && !serving[from]
}

// udpFlows are those of the Services.
func udpFlows(services map[types.NamespacedName]input, node desired.NodeRef) flows {
	out := flows{map[netip.AddrPort]map[netip.AddrPort]bool{}, map[nodePort]map[netip.AddrPort]bool{}}
	for name, in := range services {
		if in.service == nil {
			continue
		}
		ref := desired.ServiceRef{Namespace: name.Namespace, Name: name.Name, Service: in.service}
		for _, p := range portsOf(name, in.service, in.slices, node) {
			if p.Protocol != collect.UDP {
				continue
			}
			serving := map[netip.AddrPort]bool{}
			for _, ep := range desired.Serving(ref, in.slices, &collect.ServicePort{Name: p.Name, Protocol: p.Protocol}, p.Family) {
				serving[ep] = true
			}
			p.eachFrontend(func(f collect.Frontend) {
				switch {
				case f.Kind != collect.FrontendNodePort:
					out.frontends[f.Addr] = serving
				case len(serving) > 0:
					out.nodePorts[nodePort{p.Family, f.Addr.Port()}] = serving
				}
			})
		}
	}
	return out
}

// hasUDP reports that a slice has a UDP port.
func hasUDP(s *collect.EndpointSlice) bool {
	if s == nil {
		return false
	}
	for i := range s.Ports {
		if s.Ports[i].Protocol == collect.UDP {
			return true
		}
	}
	return false
}
