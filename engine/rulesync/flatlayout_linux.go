package rulesync

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// Names of the flat layout. Its key is address, protocol and port of a frontend.
const (
	flatTableName = "kconverge-flat"

	flatMasquerade      = "masquerade"
	flatMasqueradeLocal = "masquerade-local"
	flatNoEndpoints     = "no-endpoints"
	chainDispatch       = "dispatch"
	chainShortCircuit   = "short-circuit"
	chainNoEndpoints    = "no-endpoints-check"

	// flatMod and flatAffinity are parts of the names of sets.
	flatMod      = "mod-"
	flatAffinity = "affinity-"
)

// plane is one way of choosing an endpoint: a map from key and number to
// endpoint, a set of keys for each count of endpoints, and a chain with a rule
// for each such set, which draws a number below the count. Frontends with
// session affinity have sets of their own, and a second chain before the first
// (flataffinity_linux.go).
type plane struct {
	prefix string // of the sets and maps
	chain  string
	sticky string // the chain for clients that are remembered
}

var (
	planeMain = &plane{"", chainDispatch, chainAffinity}
	// planeShort is for connections from the node and from pods to frontends
	// with the Local policy: they may use every endpoint (proxier.go's short
	// circuit).
	planeShort = &plane{"short-circuit-", chainShortCircuit, chainShortCircuitAffinity}
	planes     = []*plane{planeMain, planeShort}
)

// endpoints is the map from key and number to endpoint.
func (p *plane) endpoints() string { return p.prefix + "endpoints" }

// set is the set of the keys with n endpoints, with or without affinity.
func (p *plane) set(affinity bool, n int) string {
	if affinity {
		return p.prefix + flatAffinity + flatMod + strconv.Itoa(n)
	}
	return p.prefix + flatMod + strconv.Itoa(n)
}

// parse takes the name of a set apart, as set puts it together.
func (p *plane) parse(set string) (affinity bool, n int, ok bool) {
	rest, ok := strings.CutPrefix(set, p.prefix)
	if !ok {
		return false, 0, false
	}
	rest, affinity = strings.CutPrefix(rest, flatAffinity)
	n, err := strconv.Atoi(strings.TrimPrefix(rest, flatMod))
	return affinity, n, err == nil && n > 0 && p.set(affinity, n) == set
}

// flatRules are what the flat layout holds for one Service in one family.
type flatRules struct {
	lists    map[listKey]list
	elements map[slot]value
	// sources are where the frontends in flatFirewalled may be reached from.
	sources map[string][]netip.Prefix
	// kept are the endpoints of the ports whose clients stay.
	kept map[string][]netip.AddrPort
	// refused says what cannot be carried; empty when all can.
	refused string
}

// listKey names the endpoints of one frontend in one plane.
type listKey struct {
	plane *plane
	key   string
}

// list are a frontend's endpoints: sorted as they are wanted, in the order of
// their numbers as they are in the kernel.
type list struct {
	endpoints []netip.AddrPort
	comment   string
	// stay is for how many seconds clients stay, 0 without affinity; then port
	// is whose endpoints they are and numbers those that they keep.
	stay    uint32
	port    string
	numbers map[netip.AddrPort]uint32
}

// value is what an element says beside its key.
type value struct {
	data    string
	verdict verdict
	comment string
}

// elementsOf writes a list out.
func (k listKey) elementsOf(l list) map[slot]value {
	out := map[slot]value{}
	if len(l.endpoints) == 0 {
		return out
	}
	out[slot{k.plane.set(l.stay > 0, len(l.endpoints)), k.key}] = value{comment: l.comment}
	if l.stay > 0 {
		k.keptElements(l, out)
		return out
	}
	for i, ep := range l.endpoints {
		out[slot{k.plane.endpoints(), k.key + string(host32(uint32(i)))}] = value{data: string(addrPortValue(ep)), comment: l.comment}
	}
	return out
}

// layout says what the flat layout holds for a Service's ports.
func (t *flatTable) layout(f family, ports []Port) flatRules {
	r := flatRules{lists: map[listKey]list{}, elements: map[slot]value{}, sources: map[string][]netip.Prefix{}, kept: map[string][]netip.AddrPort{}}
	for i := range ports {
		if p := &ports[i]; p.Family == f.name {
			t.layoutPort(f, p, &r)
		}
	}
	return r
}

func (t *flatTable) layoutPort(f family, p *Port, r *flatRules) {
	r.elements[slot{setClusterIPs, string(keyAddr(p.ClusterIP))}] = value{comment: p.Service.String()}
	r.frontend(p, collect.FrontendClusterIP, p.ClusterIP, p.Port)
	for _, a := range p.ExternalIPs {
		r.frontend(p, collect.FrontendExternalIP, a, p.Port)
	}
	for _, a := range p.LoadBalancerIPs {
		r.frontend(p, collect.FrontendLoadBalancer, a, p.Port)
	}
	if p.NodePort != 0 {
		addrs := nodeAddresses(t.node, f)
		if len(addrs) == 0 {
			r.refused = fmt.Sprintf("%s has a NodePort, which the flat dataplane ties to addresses of the node, and %s has none in %s", p.Service, t.node.Name, f.name)
		}
		for _, a := range addrs {
			r.frontend(p, collect.FrontendNodePort, a, p.NodePort)
		}
	}
	for _, ep := range p.OnNode {
		r.elements[slot{setHairpin, string(slices.Concat(keyAddr(ep.Addr()), keyAddr(ep.Addr()), keyProto(p.Protocol), keyPort(ep.Port())))}] = value{}
	}
}

// frontend adds what leads from one address to the port's endpoints or, without
// any that may be used, turns connections away: rejected when there are none at
// all, dropped when they are only on other nodes.
func (r *flatRules) frontend(p *Port, kind collect.FrontendKind, a netip.Addr, port uint16) {
	key := string(slices.Concat(keyAddr(a), keyProto(p.Protocol), keyPort(port)))
	external := kind != collect.FrontendClusterIP
	if p.Affinity && p.HasEndpoints {
		r.elements[slot{flatAffinityPorts, key}] = value{data: string(host32(portMark(p.identity())))}
		r.kept[p.identity()] = p.reachable()
	}
	listOf := func(eps []netip.AddrPort, comment string) list {
		return list{endpoints: eps, comment: comment, stay: p.stay(), port: p.identity()}
	}
	if kind == collect.FrontendLoadBalancer && len(p.Sources) > 0 {
		r.elements[slot{flatFirewalled, key}] = value{}
		r.sources[key] = p.Sources
	}
	local, eps := p.InternalLocal, p.Cluster
	if external {
		local = p.ExternalLocal
	}
	if local {
		eps = p.Local
	}
	switch {
	case !p.HasEndpoints:
		r.elements[slot{flatNoEndpoints, key}] = value{verdict: verdict{chain: chainReject}, comment: flatComment(p, kind, false)}
		return
	case len(eps) == 0:
		r.elements[slot{flatNoEndpoints, key}] = value{verdict: verdict{drop: true}, comment: flatComment(p, kind, local)}
	default:
		r.lists[listKey{planeMain, key}] = listOf(eps, flatComment(p, kind, local))
	}
	switch {
	case !external:
	case !local:
		r.elements[slot{flatMasquerade, key}] = value{}
	default:
		r.elements[slot{flatMasqueradeLocal, key}] = value{}
		if len(p.Cluster) > 0 {
			r.lists[listKey{planeShort, key}] = listOf(p.Cluster, flatComment(p, kind, false))
		}
	}
}

// flatComment is "namespace/service:port", then the kind of frontend unless it
// is the ClusterIP, then "Local" under that policy. It is never cut: the
// decoder knows a frontend by it.
func flatComment(p *Port, kind collect.FrontendKind, local bool) string {
	s := p.Service.String()
	if p.Name != "" {
		s += ":" + p.Name
	}
	if kind != collect.FrontendClusterIP && kind != "" {
		s += " " + string(kind)
	}
	if local {
		s += " " + string(collect.PolicyLocal)
	}
	return s
}
