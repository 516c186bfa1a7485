package noderules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// proxy writes rules the way kube-proxy 1.37 does and knows what it has
// written: chains are emptied at once and deleted by a later transaction,
// elements are touched only where they change, a changed Service's chains are
// rewritten whole, and one transaction holds all changed Services.
type proxy struct {
	family   string // "ip", "ip6"
	services []*proxied
	elems    map[string]string // "map { key" -> value
	chains   map[string]bool   // chains with content
	stale    map[string]bool
	sets     map[string]bool // affinity sets
}

type proxied struct {
	name      string // ns/svc
	port      string
	vip       string
	nodePort  int
	local     bool // externalTrafficPolicy
	affinity  bool
	balancer  string   // a load balancer's address
	sources   []string // where it may be reached from; none: anywhere
	gone      bool
	endpoints []string // addresses; port 8080
}

func (s *proxied) chain(role string) string {
	base := s.name + "/tcp/" + s.port
	return role + "-" + nameHash(base) + "-" + base
}

func (s *proxied) endpointName(role, addr string) string {
	base := s.name + "/tcp/" + s.port + "__" + strings.ReplaceAll(addr, ":", ".") + "/8080"
	return role + "-" + nameHash(base) + "-" + base
}

// locals are the endpoints on this node: those with an even last digit.
func (s *proxied) locals() (out []string) {
	for _, a := range s.endpoints {
		if (a[len(a)-1]-'0')%2 == 0 {
			out = append(out, a)
		}
	}
	return out
}

func newProxy(family string, n int) *proxy {
	p := &proxy{family: family, elems: map[string]string{}, chains: map[string]bool{}, stale: map[string]bool{}, sets: map[string]bool{}}
	for i := range n {
		s := &proxied{name: fmt.Sprintf("ns%d/svc%d", i%3, i), port: "http", vip: fmt.Sprintf("10.96.1.%d", i+1), gone: true}
		if family == "ip6" {
			s.vip = fmt.Sprintf("fd00:10:96::%x", i+1)
		}
		if i%4 == 1 || i%4 == 2 {
			s.nodePort, s.local = 30100+i, i%4 == 2
		}
		s.affinity = i%5 == 3
		if i%4 == 1 || i%8 == 2 {
			s.balancer = fmt.Sprintf("198.51.100.%d", i+1)
			if family == "ip6" {
				s.balancer = fmt.Sprintf("2001:db8::%x", i+1)
			}
		}
		if i%6 == 5 {
			s.port = ""
		}
		p.services = append(p.services, s)
	}
	return p
}

// pick changes up to three Services and returns the transaction.
func (p *proxy) pick(r *rand.Rand) string {
	var changed []*proxied
	for _, i := range r.Perm(len(p.services))[:1+r.IntN(3)] {
		s := p.services[i]
		s.gone = r.IntN(8) == 0
		s.endpoints = nil
		if s.sources = nil; s.balancer != "" {
			for range r.IntN(4) {
				if p.family == "ip6" {
					s.sources = append(s.sources, fmt.Sprintf("fd00:%d::/%d", r.IntN(4), []int{32, 48, 61, 128}[r.IntN(4)]))
				} else {
					s.sources = append(s.sources, fmt.Sprintf("10.0.%d.0/%d", r.IntN(4), []int{24, 24, 27, 32}[r.IntN(4)]))
				}
			}
		}
		for j, n := range r.Perm(9)[:r.IntN(6)] {
			addr := fmt.Sprintf("10.244.%d.%d", j%3, i*10+n)
			if p.family == "ip6" {
				addr = fmt.Sprintf("fd00:10:244:%d::%d%d", j%3, i+1, n)
			}
			s.endpoints = append(s.endpoints, addr)
		}
		changed = append(changed, s)
	}
	return p.sync(changed)
}

func (p *proxy) sync(changed []*proxied) string {
	var b strings.Builder
	t := p.family + " kube-proxy"
	want, wantChains, wantSets := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, s := range p.services {
		if s.gone {
			continue
		}
		cluster, local, external := s.chain("service"), s.chain("local"), s.chain("external")
		note := s.name
		if s.port != "" {
			note += ":" + s.port
		}
		want["cluster-ips { "+s.vip] = ""
		key := s.vip + " . tcp . 80"
		nodeKey := fmt.Sprintf("tcp . %d", s.nodePort)
		lbKey := s.balancer + " . tcp . 80"
		if len(s.sources) > 0 {
			wantChains[s.chain("firewall")] = true
			want["firewall-ips { "+lbKey] = "goto " + s.chain("firewall")
		}
		if s.balancer != "" && (len(s.endpoints) == 0 || s.local && len(s.locals()) == 0) {
			want["no-endpoint-services { "+lbKey+` comment "`+note+`"`] = map[bool]string{true: "goto reject-chain", false: "drop"}[len(s.endpoints) == 0]
		}
		if len(s.endpoints) == 0 {
			want["no-endpoint-services { "+key+` comment "`+note+`"`] = "goto reject-chain"
			if s.nodePort != 0 {
				want["no-endpoint-nodeports { "+nodeKey+` comment "`+note+`"`] = "goto reject-chain"
			}
			continue
		}
		wantChains[cluster] = true
		want["service-ips { "+key] = "goto " + cluster
		if s.balancer != "" {
			want["service-ips { "+lbKey] = "goto " + external
		}
		if s.nodePort != 0 {
			wantChains[external] = true
			want["service-nodeports { "+nodeKey] = "goto " + external
			if s.local {
				if len(s.locals()) > 0 {
					wantChains[local] = true
				} else {
					want["no-endpoint-nodeports { "+nodeKey+` comment "`+note+`"`] = "drop"
				}
			}
		}
		if s.affinity {
			for _, a := range s.endpoints {
				wantChains[s.endpointName("endpoint", a)] = true
				wantSets[s.endpointName("affinity", a)] = true
			}
		}
	}
	for _, s := range changed {
		if s.gone {
			continue
		}
		if len(s.sources) > 0 {
			c := s.chain("firewall")
			fmt.Fprintf(&b, "add chain %s %s\nflush chain %s %s\n", t, c, t, c)
			fmt.Fprintf(&b, "add rule %s %s %s saddr != { %s } drop\n", t, c, p.family, strings.Join(s.sources, ", "))
		}
		if len(s.endpoints) > 0 {
			p.write(&b, t, s, wantChains)
		}
	}
	for _, k := range sortedKeys(p.elems) {
		if v, ok := want[k]; !ok || v != p.elems[k] {
			plain, _, _ := strings.Cut(k, " comment")
			fmt.Fprintf(&b, "delete element %s %s }\n", t, plain)
		}
	}
	for _, k := range sortedKeys(want) {
		if v, ok := p.elems[k]; !ok || v != want[k] {
			suffix := ""
			if want[k] != "" {
				suffix = " : " + want[k]
			}
			fmt.Fprintf(&b, "add element %s %s%s }\n", t, k, suffix)
		}
	}
	for c := range p.chains {
		if !wantChains[c] {
			fmt.Fprintf(&b, "flush chain %s %s\n", t, c)
			p.stale[c] = true
		}
	}
	for c := range wantChains {
		delete(p.stale, c)
	}
	for set := range p.sets {
		if !wantSets[set] {
			fmt.Fprintf(&b, "delete set %s %s\n", t, set)
		}
	}
	p.elems, p.chains, p.sets = want, wantChains, wantSets
	return b.String()
}

func (p *proxy) write(b *strings.Builder, t string, s *proxied, want map[string]bool) {
	ensure := func(c string) { fmt.Fprintf(b, "add chain %s %s\nflush chain %s %s\n", t, c, t, c) }
	cluster, local, external := s.chain("service"), s.chain("local"), s.chain("external")
	if s.affinity {
		for _, a := range s.endpoints {
			ensure(s.endpointName("endpoint", a))
		}
	}
	ensure(cluster)
	if want[local] {
		ensure(local)
	}
	addr := "ipv4_addr"
	if p.family == "ip6" {
		addr = "ipv6_addr"
	}
	if want[external] {
		ensure(external)
		if s.local {
			fmt.Fprintf(b, "add rule %s %s fib saddr type local mark set mark or 0x4000\n", t, external)
			fmt.Fprintf(b, "add rule %s %s fib saddr type local goto %s\n", t, external, cluster)
			if want[local] {
				fmt.Fprintf(b, "add rule %s %s goto %s\n", t, external, local)
			}
		} else {
			fmt.Fprintf(b, "add rule %s %s mark set mark or 0x4000 comment \"masquerade\"\n", t, external)
			fmt.Fprintf(b, "add rule %s %s goto %s\n", t, external, cluster)
		}
	}
	if s.affinity {
		for _, a := range s.endpoints {
			fmt.Fprintf(b, "add set %s %s { type %s ; flags dynamic,timeout ; timeout 10800s ; }\n", t, s.endpointName("affinity", a), addr)
		}
		p.jumps(b, t, s, cluster, s.endpoints)
		if want[local] {
			p.jumps(b, t, s, local, s.locals())
		}
		for _, a := range s.endpoints {
			c := s.endpointName("endpoint", a)
			fmt.Fprintf(b, "add rule %s %s update @%s { %s saddr }\n", t, c, s.endpointName("affinity", a), p.family)
			fmt.Fprintf(b, "add rule %s %s meta l4proto tcp dnat to %s\n", t, c, netip.AddrPortFrom(netip.MustParseAddr(a), 8080))
		}
		return
	}
	p.dnats(b, t, cluster, s.endpoints)
	if want[local] {
		p.dnats(b, t, local, s.locals())
	}
}

func (p *proxy) jumps(b *strings.Builder, t string, s *proxied, chain string, addrs []string) {
	var elems []string
	for i, a := range addrs {
		fmt.Fprintf(b, "add rule %s %s %s saddr @%s goto %s\n", t, chain, p.family, s.endpointName("affinity", a), s.endpointName("endpoint", a))
		elems = append(elems, fmt.Sprintf("%d : goto %s", i, s.endpointName("endpoint", a)))
	}
	fmt.Fprintf(b, "add rule %s %s numgen random mod %d vmap { %s }\n", t, chain, len(addrs), strings.Join(elems, ", "))
}

func (p *proxy) dnats(b *strings.Builder, t, chain string, addrs []string) {
	if len(addrs) == 1 {
		fmt.Fprintf(b, "add rule %s %s meta l4proto tcp dnat to %s\n", t, chain, netip.AddrPortFrom(netip.MustParseAddr(addrs[0]), 8080))
		return
	}
	var elems []string
	for i, a := range addrs {
		elems = append(elems, fmt.Sprintf("%d : %s . 8080", i, a))
	}
	fmt.Fprintf(b, "add rule %s %s meta l4proto tcp dnat %s addr . port to numgen random mod %d map { %s }\n", t, chain, p.family, len(addrs), strings.Join(elems, ", "))
}

// sweep is the transaction that deletes stale chains, "" when there are none.
func (p *proxy) sweep() string {
	var b strings.Builder
	for c := range p.stale {
		fmt.Fprintf(&b, "delete chain %s kube-proxy %s\n", p.family, c)
	}
	clear(p.stale)
	return b.String()
}

// ports is what the rules written so far do.
func (p *proxy) ports() (out []collect.RulePort) {
	family, anyAddr := collect.IPv4, netip.IPv4Unspecified()
	if p.family == "ip6" {
		family, anyAddr = collect.IPv6, netip.IPv6Unspecified()
	}
	for _, s := range p.services {
		if s.gone {
			continue
		}
		ns, svc, _ := strings.Cut(s.name, "/")
		key := collect.RulePortKey{Namespace: ns, Service: svc, Port: s.port, Protocol: collect.TCP, Family: family}
		toEndpoints := func(addrs []string) (out []netip.AddrPort) {
			for _, a := range addrs {
				out = append(out, netip.AddrPortFrom(netip.MustParseAddr(a), 8080))
			}
			slices.SortFunc(out, netip.AddrPort.Compare)
			return out
		}
		cluster := collect.RulePort{RulePortKey: key, Endpoints: toEndpoints(s.endpoints),
			Frontends: []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(netip.MustParseAddr(s.vip), 80)}}}
		cluster.Policy = collect.PolicyCluster
		if s.affinity && len(cluster.Endpoints) > 0 {
			cluster.Affinity = 3 * time.Hour
		}
		var outside []collect.Frontend
		var sources []netip.Prefix
		if s.balancer != "" {
			// Without sources the rules do not tell it from an external address.
			f := collect.Frontend{Kind: collect.FrontendExternalIP, Addr: netip.AddrPortFrom(netip.MustParseAddr(s.balancer), 80)}
			if len(s.sources) > 0 {
				f.Kind = collect.FrontendLoadBalancer
				for _, p := range s.sources {
					sources = append(sources, netip.MustParsePrefix(p))
				}
			}
			outside = append(outside, f)
		}
		if s.nodePort != 0 {
			outside = append(outside, collect.Frontend{Kind: collect.FrontendNodePort, Addr: netip.AddrPortFrom(anyAddr, uint16(s.nodePort))})
		}
		switch {
		case len(outside) == 0:
		case !s.local || len(s.endpoints) == 0:
			cluster.Frontends = append(cluster.Frontends, outside...)
			cluster.Sources = collect.CanonicalPrefixes(sources)
		default:
			local := collect.RulePort{RulePortKey: key, Endpoints: toEndpoints(s.locals()), Frontends: outside, Sources: collect.CanonicalPrefixes(sources)}
			local.Policy = collect.PolicyLocal
			if s.affinity && len(local.Endpoints) > 0 {
				local.Affinity = 3 * time.Hour
			}
			out = append(out, local)
		}
		out = append(out, cluster)
	}
	sortPorts(out)
	return out
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
