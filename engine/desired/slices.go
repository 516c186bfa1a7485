package desired

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// Selects reports whether the Service's selector matches the labels. A Service
// without selector selects nothing, and neither does an ExternalName Service:
// the EndpointSlice controller leaves both alone
// (k8s.io/kubernetes/pkg/controller/endpointslice, syncService).
func Selects(svc *collect.Service, labels map[string]string) bool {
	if svc == nil || len(svc.Selector) == 0 || svc.Kind == "ExternalName" {
		return false
	}
	for k, v := range svc.Selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Families are the address types that the Service's slices have: its
// ipFamilies, else that of its ClusterIP, else (headless) both
// (k8s.io/endpointslice/utils.go, getAddressTypesForService).
func Families(svc *collect.Service) []collect.Family {
	if len(svc.Families) > 0 {
		return svc.Families
	}
	if !svc.Headless && len(svc.ClusterIPs) > 0 {
		return []collect.Family{collect.FamilyOf(svc.ClusterIPs[0])}
	}
	return []collect.Family{collect.IPv4, collect.IPv6}
}

// Slices says which endpoints the Service's slices should publish, by the rules
// of the EndpointSlice controller (k8s.io/endpointslice v0.37.2: reconciler.go,
// utils.go, util/controller_utils.go). A pod is published in each of the
// Service's families in which it has an address, unless it is in a terminal
// phase or, without publishNotReadyAddresses, its node does not exist. Pods that
// are not selected are skipped, so a caller may pass more than those. How
// endpoints are spread over slice objects is not part of the answer.
//
// The result is sorted by address, then UID. It is empty for a Service without
// selector and for ExternalName.
func Slices(svc *collect.Service, pods []PodRef) []SliceEntry {
	if svc == nil || len(svc.Selector) == 0 || svc.Kind == "ExternalName" {
		return nil
	}
	families := Families(svc)
	out := make([]SliceEntry, 0, len(pods)*len(families))
	for i := range pods {
		p := &pods[i]
		if !Selects(svc, p.Pod.Labels) || p.Pod.Terminal() || len(p.Pod.IPs) == 0 {
			continue
		}
		if p.NodeGone && !svc.PublishNotReadyAddresses {
			continue
		}
		serving, terminating := p.Pod.IsReady(), p.Pod.Terminating()
		e := SliceEntry{
			PodName: p.Name, PodUID: p.UID, Node: p.Pod.Node,
			Ready:   svc.PublishNotReadyAddresses || (serving && !terminating),
			Serving: serving, Terminating: terminating,
		}
		for _, f := range families {
			ip, ok := firstOf(p.Pod.IPs, f)
			if !ok {
				continue
			}
			if e.Ports == nil {
				e.Ports = resolvePorts(svc, p.Pod)
			}
			e.Address = ip
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b SliceEntry) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.PodUID, b.PodUID))
	})
	return out
}

// Routable says which endpoints should be able to receive new connections by
// the word of the Service and its pods alone, on a node for which neither
// policy nor topology matters: the ready ones, or, in a family that has none,
// the ones that still serve while they terminate (kube-proxy's choice,
// k8s.io/kubernetes/pkg/proxy/topology.go). Sorted like Slices.
func Routable(svc *collect.Service, pods []PodRef) []SliceEntry {
	return RoutableOf(Slices(svc, pods))
}

// RoutableOf is Routable for entries that Slices returned.
func RoutableOf(all []SliceEntry) []SliceEntry {
	var ready4, ready6 bool
	for i := range all {
		if all[i].Routable() {
			if all[i].Address.Is4() {
				ready4 = true
			} else {
				ready6 = true
			}
		}
	}
	out := make([]SliceEntry, 0, len(all))
	for _, e := range all {
		hasReady := ready6
		if e.Address.Is4() {
			hasReady = ready4
		}
		if e.Routable() || (!hasReady && e.Serving && e.Terminating && len(e.Ports) > 0) {
			out = append(out, e)
		}
	}
	return out
}

func firstOf(ips []netip.Addr, f collect.Family) (netip.Addr, bool) {
	for _, ip := range ips {
		if collect.FamilyOf(ip) == f {
			return ip.Unmap(), true
		}
	}
	return netip.Addr{}, false
}

// resolvePorts gives the pod's target ports for the Service's ports
// (getEndpointPorts and FindPort): a number stands for itself, a name is looked
// up among the pod's container ports of the same protocol, and a port whose
// name the pod lacks is left out.
func resolvePorts(svc *collect.Service, pod *collect.Pod) []collect.SlicePort {
	out := make([]collect.SlicePort, 0, len(svc.Ports))
	for i := range svc.Ports {
		sp := &svc.Ports[i]
		if n, ok := findPort(pod, sp); ok {
			out = append(out, collect.SlicePort{Name: sp.Name, Protocol: sp.Protocol, Port: n})
		}
	}
	SortPorts(out)
	return out
}

func findPort(pod *collect.Pod, sp *collect.ServicePort) (int32, bool) {
	if sp.TargetName == "" {
		return sp.Target, true
	}
	for i := range pod.Ports {
		if pod.Ports[i].Name == sp.TargetName && pod.Ports[i].Protocol == sp.Protocol {
			return pod.Ports[i].Port, true
		}
	}
	return 0, false
}

// SortPorts sorts by name, protocol, port.
func SortPorts(ports []collect.SlicePort) {
	slices.SortFunc(ports, ComparePorts)
}

// ComparePorts orders by name, protocol, port.
func ComparePorts(a, b collect.SlicePort) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}
