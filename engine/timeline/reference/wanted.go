package reference

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// Endpoint is one backend at one address; the zero Endpoint stands for the
// Service's own frontends.
type Endpoint struct {
	UID string
	IP  netip.Addr
}

func (e Endpoint) String() string {
	if (e == Endpoint{}) {
		return "frontends"
	}
	return e.IP.String() + " " + e.UID
}

// Value is what a plane holds of one endpoint. Two are the same when their text
// is; the zero Value is "not there".
type Value struct {
	Text     string
	Routable bool
	// Fallback: not ready, but serving while it terminates.
	Fallback bool
}

// condition makes the value of an endpoint in a slice.
func condition(ready, serving, terminating bool, ports []collect.SlicePort) Value {
	words := []string{fmt.Sprint("ready=", ready, " serving=", serving, " terminating=", terminating)}
	ports = slices.Clone(ports)
	slices.SortFunc(ports, func(a, b collect.SlicePort) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, p := range slices.Compact(ports) {
		words = append(words, fmt.Sprint(p.Name, "/", p.Protocol, "=", p.Port))
	}
	return Value{
		Text:     strings.Join(words, " "),
		Routable: ready && len(ports) > 0,
		Fallback: !ready && serving && terminating && len(ports) > 0,
	}
}

// hasSelector: the EndpointSlice controller passes over other Services
// (k8s.io/kubernetes pkg/controller/endpointslice, syncService).
func (s service) hasSelector() bool {
	return s.Service != nil && len(s.Selector) > 0 && s.Kind != "ExternalName"
}

func (s service) selects(labels map[string]string) bool {
	if !s.exists || !s.hasSelector() {
		return false
	}
	for k, v := range s.Selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// families are those that a Service's slices are made for.
func (s service) families() []collect.Family {
	if len(s.Families) > 0 {
		return s.Families
	}
	if len(s.ClusterIPs) > 0 && !s.Headless {
		return []collect.Family{collect.FamilyOf(s.ClusterIPs[0])}
	}
	return []collect.Family{collect.IPv4, collect.IPv6}
}

// portsOn resolves the Service's ports on a pod; a named one that the pod lacks
// is left out.
func (s service) portsOn(p pod) (out []collect.SlicePort) {
	for _, sp := range s.Ports {
		if sp.TargetName == "" {
			out = append(out, collect.SlicePort{Name: sp.Name, Protocol: sp.Protocol, Port: sp.Target})
			continue
		}
		for _, np := range p.Ports {
			if np.Name == sp.TargetName && np.Protocol == sp.Protocol {
				out = append(out, collect.SlicePort{Name: sp.Name, Protocol: sp.Protocol, Port: np.Port})
				break
			}
		}
	}
	return out
}

// published is one endpoint that a controller should publish.
type published struct {
	Endpoint
	pod                         pod
	ready, serving, terminating bool
	ports                       []collect.SlicePort
}

// bySlices is what the EndpointSlice controller should publish of a Service: its
// selected pods that have an address of the family, are not in a terminal phase
// and whose node exists. Ready is the pod's readiness unless it terminates; with
// publishNotReadyAddresses it is always true, and the node need not exist.
func (f *facts) bySlices(svc string) (out []published) {
	s := f.services[svc]
	if !s.hasSelector() {
		return nil
	}
	for key, p := range f.pods {
		if ns, _, _ := strings.Cut(svc, "/"); !strings.HasPrefix(key, ns+"/") || !s.selects(p.Labels) {
			continue
		}
		publish := s.PublishNotReadyAddresses
		if p.Terminal() || f.nodeGone(p.Node) && !publish {
			continue
		}
		for _, family := range s.families() {
			i := slices.IndexFunc(p.IPs, func(ip netip.Addr) bool { return collect.FamilyOf(ip) == family })
			if i < 0 {
				continue
			}
			out = append(out, published{
				Endpoint: Endpoint{p.uid, p.IPs[i].Unmap()}, pod: p, ports: s.portsOn(p),
				ready: publish || p.IsReady() && !p.Terminating(), serving: p.IsReady(), terminating: p.Terminating(),
			})
		}
	}
	slices.SortFunc(out, func(a, b published) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// byEndpoints is what the legacy Endpoints controller should publish: one
// address a pod, of the Service's first family, and no terminating pods unless
// publishNotReadyAddresses (k8s.io/kubernetes pkg/controller/endpoint).
func (f *facts) byEndpoints(svc string) map[Endpoint]Value {
	s := f.services[svc]
	out := map[Endpoint]Value{}
	if !s.hasSelector() {
		return out
	}
	for key, p := range f.pods {
		if ns, _, _ := strings.Cut(svc, "/"); !strings.HasPrefix(key, ns+"/") || !s.selects(p.Labels) {
			continue
		}
		if p.Terminal() || len(p.IPs) == 0 || p.Terminating() && !s.PublishNotReadyAddresses {
			continue
		}
		family := collect.FamilyOf(p.IPs[0])
		if len(s.Families) > 0 {
			family = s.Families[0]
		} else if !s.Headless && len(s.ClusterIPs) > 0 {
			family = collect.FamilyOf(s.ClusterIPs[0])
		}
		ports := s.portsOn(p)
		if len(ports) == 0 {
			continue
		}
		for _, ip := range p.IPs {
			if collect.FamilyOf(ip) == family {
				ready := s.PublishNotReadyAddresses || p.IsReady()
				out[Endpoint{p.uid, ip.Unmap()}] = condition(ready, ready, false, ports)
				break
			}
		}
	}
	return out
}

// mirrored is what the mirroring controller should publish of hand-made
// Endpoints of a Service without selector (k8s.io/kubernetes
// pkg/controller/endpointslicemirroring): each address once for each of its ports.
func (f *facts) mirrored(svc string) map[Endpoint]Value {
	s, obj := f.services[svc], f.endpoints[svc]
	out := map[Endpoint]Value{}
	if !s.exists || len(s.Selector) > 0 || obj == nil || obj.NotMirrored {
		return out
	}
	for _, a := range obj.Addresses {
		out[Endpoint{uidOr(a.PodUID), a.IP.Unmap()}] = condition(a.Ready, true, false, a.Ports)
	}
	return out
}

// Manual is the UID of an endpoint without a pod, Unknown that of an address
// that no slice has named.
const (
	Manual  = "manual"
	Unknown = "unknown"
)

func uidOr(uid string) string {
	if uid == "" {
		return Manual
	}
	return uid
}
