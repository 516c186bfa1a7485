package desired

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// MaxEndpointsV1 is how many addresses a legacy Endpoints object holds
// (maxCapacity in k8s.io/kubernetes/pkg/controller/endpoint).
const MaxEndpointsV1 = 1000

// EndpointsV1 says what the legacy v1 Endpoints object of the Service should
// hold, by the rules of the Endpoints controller
// (k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go,
// syncService): one address for each selected pod, in the Service's first
// family; terminating pods are left out unless publishNotReadyAddresses; a pod
// that resolves none of the Service's ports is left out.
//
// Above 1,000 addresses the object is cut, the ready ones first. Upstream picks
// which by subset and hash; here it is by address, so only the number of a cut
// object may be relied on.
//
// The result is sorted by address, then UID.
func EndpointsV1(svc *collect.Service, pods []PodRef) []collect.EndpointsAddress {
	if svc == nil || len(svc.Selector) == 0 || svc.Kind == "ExternalName" {
		return nil
	}
	out := make([]collect.EndpointsAddress, 0, len(pods))
	for i := range pods {
		p := &pods[i]
		if !Selects(svc, p.Pod.Labels) || p.Pod.Terminal() || len(p.Pod.IPs) == 0 {
			continue
		}
		if p.Pod.Terminating() && !svc.PublishNotReadyAddresses {
			continue
		}
		ip, ok := legacyAddress(svc, p.Pod)
		if !ok {
			continue
		}
		ports := resolvePorts(svc, p.Pod)
		if len(ports) == 0 && (len(svc.Ports) > 0 || !svc.Headless) {
			continue
		}
		out = append(out, collect.EndpointsAddress{
			IP: ip, PodName: p.Name, PodUID: p.UID, Ports: ports,
			Ready: svc.PublishNotReadyAddresses || p.Pod.IsReady(),
		})
	}
	if len(out) > MaxEndpointsV1 {
		slices.SortFunc(out, func(a, b collect.EndpointsAddress) int {
			if a.Ready != b.Ready {
				if a.Ready {
					return -1
				}
				return 1
			}
			return compareLegacy(a, b)
		})
		out = out[:MaxEndpointsV1]
	}
	slices.SortFunc(out, compareLegacy)
	return out
}

func compareLegacy(a, b collect.EndpointsAddress) int {
	return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.PodUID, b.PodUID))
}

// legacyAddress is podToEndpointAddressForService's choice of an address.
func legacyAddress(svc *collect.Service, pod *collect.Pod) (netip.Addr, bool) {
	family := collect.IPv4
	switch {
	case len(svc.Families) > 0:
		family = svc.Families[0]
	case !svc.Headless && len(svc.ClusterIPs) > 0:
		family = collect.FamilyOf(svc.ClusterIPs[0])
	default:
		family = collect.FamilyOf(pod.IPs[0])
	}
	return firstOf(pod.IPs, family)
}
