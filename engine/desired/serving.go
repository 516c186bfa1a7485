package desired

import (
	"net/netip"

	"github.com/kconverge/kconverge/collect"
)

// Serving lists the endpoints of one Service port in one family that serve,
// whatever else is said of them: connectionless flows to these are left alone
// (pkg/proxy/conntrack/cleanup.go).
func Serving(ref ServiceRef, epSlices []*collect.EndpointSlice, sp *collect.ServicePort, family collect.Family) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range gather(nil, ref.Name, epSlices, sp, family) {
		if e.owner.Serving {
			out = append(out, e.addr)
		}
	}
	return out
}

// LocalReady counts the addresses of one family that are ready on a node, over
// all ports of a Service: what a load balancer's health check is answered with
// (LocalReadyEndpoints in pkg/proxy/endpointschangetracker.go).
func LocalReady(ref ServiceRef, epSlices []*collect.EndpointSlice, node string, family collect.Family) int {
	ips := map[netip.Addr]bool{}
	for i := range ref.Service.Ports {
		for _, e := range gather(nil, ref.Name, epSlices, &ref.Service.Ports[i], family) {
			if e.owner.Ready && e.owner.Node == node {
				ips[e.addr.Addr()] = true
			}
		}
	}
	return len(ips)
}

// HealthCheckPort is the port on which nodes say whether they have endpoints of
// the Service; 0 when it needs none (NeedsHealthCheck in
// pkg/api/v1/service/util.go).
func HealthCheckPort(svc *collect.Service) uint16 {
	if svc.Kind != "LoadBalancer" || svc.ExternalPolicy != string(collect.PolicyLocal) || WhyNotRouted(svc) != "" {
		return 0
	}
	return uint16(svc.HealthCheckPort)
}
