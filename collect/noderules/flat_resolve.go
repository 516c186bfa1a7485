package noderules

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// resolvePort says what the rules do for one Service port, under both policies.
func (r *flat) resolvePort(t *table, p kpPort) [2]collect.RulePort {
	var out [2]collect.RulePort
	for i, policy := range [...]collect.Policy{collect.PolicyCluster, collect.PolicyLocal} {
		out[i].RulePortKey = collect.RulePortKey{
			Namespace: p.namespace, Service: p.service, Port: p.port,
			Protocol: p.proto, Family: r.family, Policy: policy,
		}
	}
	object := "port " + p.String()
	delete(r.odd, object)
	for ref := range r.fronts[p] {
		f := r.owner[ref]
		to := &out[0]
		if f.policy == collect.PolicyLocal {
			to = &out[1]
		}
		rule, routed := r.rules[ref.set]
		if !routed && r.routed(t, ref.key) {
			continue // its connections never get to be turned away
		}
		if !rule.shortcut {
			k, _ := kpParseKey(r.key.family, false, []byte(ref.key))
			if f.kind == collect.FrontendNodePort {
				k.addr = netip.IPv4Unspecified()
				if r.family == collect.IPv6 {
					k.addr = netip.IPv6Unspecified()
				}
			}
			to.Frontends = append(to.Frontends, collect.Frontend{Kind: f.kind, Addr: netip.AddrPortFrom(k.addr, k.port)})
			if sources := r.sources(t, ref.key); sources != nil && f.kind != collect.FrontendLoadBalancer {
				r.strange(object, fmt.Sprintf("set %s: %s is no load balancer's address", r.firewall.frontends, flatAt(ref.key)))
			} else if sources != nil && to.Sources != nil && !slices.Equal(to.Sources, sources) {
				r.strange(object, fmt.Sprintf("set %s: load balancer addresses with different sources", r.firewall.sources))
			} else if sources != nil {
				to.Sources = sources
			}
		}
		if rule.choices != "" {
			choices, _ := r.choices(t, rule, ref.key)
			for _, c := range choices {
				to.Endpoints = append(to.Endpoints, c.endpoint)
				to.Affinity = c.stay
			}
			continue
		}
		if t.sets[rule.endpoints] == nil {
			continue
		}
		for i := range rule.count {
			e, ok := t.sets[rule.endpoints].elems[ref.key+string(binary.NativeEndian.AppendUint32(nil, rule.offset+i))]
			if ep := flatEndpoint(&e); ok && ep.IsValid() {
				to.Endpoints = append(to.Endpoints, ep)
			}
		}
	}
	for i := range out {
		slices.SortFunc(out[i].Frontends, func(a, b collect.Frontend) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Addr.Compare(b.Addr))
		})
		out[i].Frontends = slices.Compact(out[i].Frontends)
		slices.SortFunc(out[i].Endpoints, netip.AddrPort.Compare)
		out[i].Endpoints = slices.Compact(out[i].Endpoints)
	}
	return out
}

// routed reports whether every connection to a frontend is sent to an endpoint.
func (r *flat) routed(t *table, key string) bool {
	for set, rule := range r.rules {
		if s := t.sets[set]; s != nil && !rule.shortcut {
			if _, ok := s.elems[key]; ok {
				return true
			}
		}
	}
	return false
}

// flatEndpoint is the endpoint that an element leads to; invalid if none.
func flatEndpoint(e *element) netip.AddrPort {
	if len(e.data) != 8 && len(e.data) != 20 {
		return netip.AddrPort{}
	}
	addr, _ := netip.AddrFromSlice(e.data[:len(e.data)-4])
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(e.data[len(e.data)-4:]))
}

// flatAt shows a frontend's key.
func flatAt(key string) string {
	family := uint8(familyIPv4)
	if len(key) > 12 {
		family = familyIPv6
	}
	k, ok := kpParseKey(family, false, []byte(key))
	if !ok {
		return fmt.Sprintf("a key of %d bytes", len(key))
	}
	return fmt.Sprintf("%s %s %d", k.addr, k.proto, k.port)
}

// ports implements resolver.
func (r *flat) ports() []collect.RulePort {
	out := make([]collect.RulePort, 0, len(r.current))
	for _, p := range r.current {
		out = append(out, p)
	}
	return out
}

// unknown implements resolver.
func (r *flat) unknown() []string {
	var out []string
	for _, texts := range r.odd {
		out = append(out, texts...)
	}
	return out
}
