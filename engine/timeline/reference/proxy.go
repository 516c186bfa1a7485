package reference

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// routed reports that kube-proxy takes care of the Service.
func (s service) routed() bool {
	return s.exists && s.ProxyName == "" && s.Kind != "ExternalName" && !s.Headless && len(s.ClusterIPs) > 0
}

// backend is one address and port behind a Service port, as a slice has it.
type backend struct {
	addr netip.AddrPort
	collect.SliceEndpoint
}

// backends are those of one Service port in one family, each address and port
// once: one that does not terminate before one that does (k8s.io/kubernetes
// pkg/proxy/endpointslicecache.go). Where upstream leaves the choice to chance: a
// ready one, among those that terminate a serving one, else the first.
func (f *facts) backends(svc string, port collect.ServicePort, family collect.Family) (out []backend) {
	for _, sl := range f.slicesOf(svc) {
		if sl.Headless || sl.Family != family {
			continue
		}
		for _, p := range sl.Ports {
			if p.Name != port.Name || p.Protocol != port.Protocol {
				continue
			}
			for _, e := range sl.Endpoints {
				b := backend{netip.AddrPortFrom(e.Address, uint16(p.Port)), e}
				i := slices.IndexFunc(out, func(x backend) bool { return x.addr == b.addr })
				switch {
				case i < 0:
					out = append(out, b)
				case better(&b.SliceEndpoint, &out[i].SliceEndpoint):
					out[i] = b
				}
			}
		}
	}
	return out
}

// better reports that kube-proxy takes a and not b of one address.
func better(a, b *collect.SliceEndpoint) bool {
	switch {
	case a.Terminating != b.Terminating:
		return b.Terminating
	case a.Ready != b.Ready:
		return a.Ready
	}
	return a.Terminating && !a.Ready && a.Serving && !b.Serving
}

// forCluster is what a node should route to under policy Cluster: the ready
// ones, less those that hints give to other nodes or zones; if there is none, those
// that serve while they terminate. Hints count only if every ready endpoint has one
// and one is for here; those for nodes come first.
func forCluster(all []backend, node, zone string) (out []netip.AddrPort) {
	ready := func(b backend) bool { return b.Ready }
	every := func(has func(backend) bool) bool {
		return !slices.ContainsFunc(all, func(b backend) bool { return ready(b) && !has(b) })
	}
	some := func(has func(backend) bool) bool {
		return slices.ContainsFunc(all, func(b backend) bool { return ready(b) && has(b) })
	}
	forNode := func(b backend) bool { return slices.Contains(b.HintNodes, node) }
	forZone := func(b backend) bool { return slices.Contains(b.HintZones, zone) }
	use := ready
	switch {
	case every(func(b backend) bool { return len(b.HintNodes) > 0 }) && some(forNode):
		use = func(b backend) bool { return ready(b) && forNode(b) }
	case every(func(b backend) bool { return len(b.HintZones) > 0 }) && some(forZone):
		use = func(b backend) bool { return ready(b) && forZone(b) }
	}
	return orElse(all, use)
}

// forLocal is what it should route to under policy Local.
func forLocal(all []backend, node string) []netip.AddrPort {
	here := slices.DeleteFunc(slices.Clone(all), func(b backend) bool { return b.Node != node })
	return orElse(here, func(b backend) bool { return b.Ready })
}

// orElse picks those of use, and if there is none, those that serve while they
// terminate.
func orElse(all []backend, use func(backend) bool) (out []netip.AddrPort) {
	for _, u := range []func(backend) bool{use, func(b backend) bool { return b.Serving && b.Terminating }} {
		for _, b := range all {
			if u(b) {
				out = append(out, b.addr)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}

// byProxy is what kube-proxy should have on a node for the Service.
func (f *facts) byProxy(svc, nodeName string) (out []collect.RulePort) {
	s := f.services[svc]
	if !s.routed() {
		return nil
	}
	ns, name, _ := strings.Cut(svc, "/")
	zone := ""
	if n := f.nodes[nodeName]; n.Node != nil {
		zone = n.Zone
	}
	for _, sp := range s.Ports {
		for _, family := range []collect.Family{collect.IPv4, collect.IPv6} {
			ip := clusterIP(s, family)
			if !ip.IsValid() {
				continue
			}
			all := f.backends(svc, sp, family)
			inside := []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(ip, uint16(sp.Port))}}
			outside := frontends(s, sp, family)
			for _, policy := range []collect.Policy{collect.PolicyCluster, collect.PolicyLocal} {
				p := collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: ns, Service: name, Port: sp.Name, Protocol: sp.Protocol, Family: family, Policy: policy}}
				insideHere := (s.InternalPolicy == "Local") == (policy == collect.PolicyLocal)
				outsideHere := (s.ExternalPolicy == "Local" && s.Kind != "ClusterIP") == (policy == collect.PolicyLocal)
				if insideHere {
					p.Frontends = append(p.Frontends, inside...)
				}
				if outsideHere {
					p.Frontends = append(p.Frontends, outside...)
				}
				switch {
				case policy == collect.PolicyLocal && (insideHere || outsideHere && len(outside) > 0):
					p.Endpoints = forLocal(all, nodeName)
				case policy == collect.PolicyCluster && (insideHere || len(outside) > 0):
					// What comes from the node itself to a Local Service
					// goes to the whole cluster.
					p.Endpoints = forCluster(all, nodeName, zone)
				default:
					continue
				}
				if len(p.Endpoints) > 0 {
					p.Affinity = stay(s)
				}
				if !p.Empty() {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func stay(s service) time.Duration {
	switch {
	case s.SessionAffinity != "ClientIP":
		return 0
	case s.AffinityTimeout == 0:
		return 3 * time.Hour
	}
	return s.AffinityTimeout
}

func clusterIP(s service, family collect.Family) netip.Addr {
	for _, ip := range s.ClusterIPs {
		if collect.FamilyOf(ip) == family {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

func frontends(s service, sp collect.ServicePort, family collect.Family) (out []collect.Frontend) {
	add := func(kind collect.FrontendKind, ip netip.Addr, port int32) {
		if collect.FamilyOf(ip) == family {
			out = append(out, collect.Frontend{Kind: kind, Addr: netip.AddrPortFrom(ip, uint16(port))})
		}
	}
	for _, ip := range s.ExternalIPs {
		add(collect.FrontendExternalIP, ip, sp.Port)
	}
	for _, ip := range s.LoadBalancerIPs {
		add(collect.FrontendLoadBalancer, ip, sp.Port)
	}
	if sp.NodePort != 0 {
		add(collect.FrontendNodePort, netip.IPv4Unspecified(), sp.NodePort)
		add(collect.FrontendNodePort, netip.IPv6Unspecified(), sp.NodePort)
	}
	return out
}

// routes lists what rules do, one line for each address: "port/TCP/Cluster=8080 …".
func routes(ports []collect.RulePort) map[netip.Addr]Value {
	lines := map[netip.Addr][]string{}
	for _, p := range ports {
		for _, ep := range p.Endpoints {
			ip := ep.Addr().Unmap()
			lines[ip] = append(lines[ip], fmt.Sprint(p.Port, "/", p.Protocol, "/", p.Policy, "=", ep.Port()))
		}
	}
	out := map[netip.Addr]Value{}
	for ip, l := range lines {
		slices.Sort(l)
		out[ip] = Value{Text: strings.Join(l, " "), Routable: true}
	}
	return out
}

// front is one way in.
type front struct {
	name   string
	leads  bool // somewhere
	policy collect.Policy
	stay   time.Duration
}

func fronts(ports []collect.RulePort) (out []front) {
	for _, p := range ports {
		for _, x := range p.Frontends {
			out = append(out, front{fmt.Sprint(p.Port, "/", p.Protocol, " ", x.Addr), len(p.Endpoints) > 0, p.Policy, p.Affinity})
		}
	}
	slices.SortFunc(out, func(a, b front) int { return cmp.Compare(a.name, b.name) })
	return out
}

// sameFronts compares ways in. One that leads nowhere is under no policy.
func sameFronts(a, b []front) bool {
	return slices.EqualFunc(a, b, func(x, y front) bool {
		return x.name == y.name && (!x.leads || !y.leads || x.policy == y.policy && x.stay == y.stay)
	})
}
