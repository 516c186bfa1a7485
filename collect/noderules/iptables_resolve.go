package noderules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// update resolves the Service port of one hash and appends what differs from
// before.
func (r *iptables) update(hash string, changed []collect.RulePort) []collect.RulePort {
	for _, chain := range r.uses[hash] {
		remove(r.visitors, chain, hash)
	}
	delete(r.uses, hash)
	object := "hash " + hash
	delete(r.odd, object)

	ports, named := r.resolvePort(hash, object)
	if !named {
		return changed
	}
	for i := range ports {
		now := ports[i]
		was, had := r.current[now.RulePortKey]
		if !had && now.Empty() || had && was.Equal(&now) {
			continue
		}
		if now.Empty() {
			delete(r.current, now.RulePortKey)
		} else {
			r.current[now.RulePortKey] = now
		}
		changed = append(changed, now)
	}
	return changed
}

// name finds the Service port of a hash: only a name that gives the hash counts.
func (r *iptables) name(hash string) (kpPort, bool) {
	if p, ok := r.names[hash]; ok {
		return p, true
	}
	if p, ok := r.known[hash]; ok {
		return p, true
	}
	try := func(comment string, proto collect.Protocol) bool {
		for _, p := range iptNames(comment, proto) {
			if iptHash(p) == hash {
				r.learn(hash, p)
				return true
			}
		}
		return false
	}
	for i := range r.fronts[hash] {
		if f := &r.fronts[hash][i]; try(f.comment, f.proto) {
			return r.names[hash], true
		}
	}
	// Without it at the addresses, some chain may still have it.
	for _, prefix := range [...]string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-"} {
		c := r.nat.chains[prefix+hash]
		if c == nil {
			continue
		}
		for i := range c.rules {
			for j := range r.fronts[hash] {
				if try(c.rules[i].xt.comment, r.fronts[hash][j].proto) {
					return r.names[hash], true
				}
			}
		}
	}
	return kpPort{}, false
}

// resolvePort says what the rules do for one Service port: entry 0 under policy
// Cluster, entry 1 under policy Local. It is not named when nothing tells which
// Service port it is.
func (r *iptables) resolvePort(hash, object string) (out [2]collect.RulePort, named bool) {
	w := iptWalk{r: r, hash: hash, object: object, externals: map[string]iptLeads{}}
	p, named := r.name(hash)
	if !named {
		for i := range r.fronts[hash] {
			f := &r.fronts[hash][i]
			r.strange(object, fmt.Sprintf("%s: leads to chain %s, which no known Service port has", f.at(), f.chain))
			r.visit(hash, f.chain)
		}
		return out, false
	}
	w.port = p
	for i, policy := range [...]collect.Policy{collect.PolicyCluster, collect.PolicyLocal} {
		out[i].RulePortKey = collect.RulePortKey{
			Namespace: p.namespace, Service: p.service, Port: p.port,
			Protocol: p.proto, Family: familyOf(r.family), Policy: policy,
		}
	}
	add := func(f collect.Frontend, local bool) {
		i := 0
		if local {
			i = 1
		}
		out[i].Frontends = append(out[i].Frontends, f)
	}
	kinds := map[netip.AddrPort]collect.FrontendKind{}
	reached := [2]string{}
	for i := range r.fronts[hash] {
		f := &r.fronts[hash][i]
		kinds[f.Addr] = f.Kind
		if f.proto != p.proto {
			r.strange(object, fmt.Sprintf("%s: leads to chain %s of another protocol", f.at(), f.chain))
			continue
		}
		leads := w.leads(f.chain)
		if to, _ := iptParseChain(f.chain); to == iptFirewall {
			sources := w.sources(f.chain)
			if leads.local {
				out[1].Sources = sources
			} else {
				out[0].Sources = sources
			}
		}
		for j, target := range leads.chains {
			if target != "" {
				reached[j] = target
			}
		}
		add(f.Frontend, leads.local)
	}
	for i := range r.rejects[hash] {
		// Only a Local policy without endpoints here drops. A rejected address
		// has no endpoint anywhere, and the rules do not say under which policy:
		// Cluster, the default, stands for both.
		f := r.rejects[hash][i]
		if kind, ok := kinds[f.Addr]; ok {
			if !f.drop {
				// The nat table is in force first: what it translates does not
				// come to be refused. Between two tables' updates both are there.
				continue
			}
			f.Kind = kind // here load balancers' look like external ones
		}
		add(f.Frontend, f.drop)
	}
	for i, chain := range reached {
		if chain != "" {
			out[i].Endpoints, out[i].Affinity = w.endpoints(chain)
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
	return out, true
}

func familyOf(family uint8) collect.Family {
	if family == familyIPv6 {
		return collect.IPv6
	}
	return collect.IPv4
}

func (r *iptables) visit(hash, chain string) {
	add(r.visitors, chain, hash)
	r.uses[hash] = append(r.uses[hash], chain)
}

// iptWalk follows the chains of one Service port.
type iptWalk struct {
	r            *iptables
	hash, object string
	port         kpPort
	externals    map[string]iptLeads
}

// iptLeads is what a chain leads to: a KUBE-SVC- and a KUBE-SVL- chain, and
// under which policy connections from outside end up. Those of the node itself
// and of its pods may be sent to the Cluster chain all the same (the short
// circuit of proxier.go).
type iptLeads struct {
	chains [2]string
	local  bool
}

func (w *iptWalk) leads(chain string) iptLeads {
	role, _ := iptParseChain(chain)
	switch role {
	case iptCluster:
		return iptLeads{chains: [2]string{chain, ""}}
	case iptLocal:
		return iptLeads{chains: [2]string{"", chain}, local: true}
	}
	if l, ok := w.externals[chain]; ok {
		return l
	}
	w.externals[chain] = iptLeads{} // chains that lead to each other end here
	w.r.visit(w.hash, chain)
	var out iptLeads
	c := w.r.nat.chains[chain]
	if c == nil {
		return out
	}
	shortcut, final := false, false
	for i := range c.rules {
		x := c.rules[i].xt
		if x.odd != "" {
			w.strange(chain, x.odd)
		}
		switch x.action {
		case xtDNAT:
			w.strange(chain, x.to.String())
		case xtReject, xtDrop:
			w.strange(chain, "refuses")
		case xtJump:
			if x.chain == iptMarkMasq || x.chain == iptMarkDrop {
				continue
			}
			to, hash := iptParseChain(x.chain)
			if hash != w.hash || to == iptEndpoint {
				w.strange(chain, "leads to chain "+x.chain)
				continue
			}
			l := w.leads(x.chain)
			for j, target := range l.chains {
				if target != "" {
					out.chains[j] = target
				}
			}
			// What the sources reach that a firewall chain lets through counts.
			if x.limited() && role != iptFirewall {
				shortcut = true
				continue
			}
			final = true
			out.local = out.local || l.local
		}
	}
	// With the short circuit but no way on, a Local policy has no endpoint here.
	if shortcut && !final {
		out.local = true
	}
	w.externals[chain] = out
	return out
}

// sources are the only ones that a KUBE-FW- chain lets on to the endpoints, as the
// fewest prefixes; nil for all. What they are not is dropped by a rule of
// KUBE-PROXY-FIREWALL, since no endpoint's address was put into it.
func (w *iptWalk) sources(chain string) []netip.Prefix {
	c := w.r.nat.chains[chain]
	if c == nil {
		return nil
	}
	var out []collect.AddrRange
	for i := range c.rules {
		x := c.rules[i].xt
		if to, hash := iptParseChain(x.chain); x.action != xtJump || to == iptOther || hash != w.hash {
			continue
		}
		switch {
		case x.conditional:
			w.strange(chain, "lets on by something else than the source")
		case !x.src.IsValid():
			return nil
		default:
			out = append(out, collect.RangeOf(x.src))
		}
	}
	if out == nil {
		w.strange(chain, "lets no source on")
	}
	return collect.PrefixesOf(collect.MergeRanges(out))
}

func (w *iptWalk) strange(chain, what string) {
	w.r.strange(w.object, fmt.Sprintf("chain %s: %s", chain, what))
}

// endpoints collects what a KUBE-SVC- or KUBE-SVL- chain can lead to. The order
// and the chances of its rules decide how often, not whether. stay is for how
// long after its last connection a client goes to the same endpoint.
func (w *iptWalk) endpoints(chain string) (out []netip.AddrPort, stay time.Duration) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		w.r.visit(w.hash, name)
		c := w.r.nat.chains[name]
		if c == nil {
			return
		}
		for i := range c.rules {
			x := c.rules[i].xt
			if x.odd != "" {
				w.strange(name, x.odd)
			}
			switch x.action {
			case xtDNAT:
				if x.proto != 0 && protocolOf(x.proto) != w.port.proto {
					w.strange(name, fmt.Sprintf("%s, for IP protocol %d", x.to, x.proto))
					continue
				}
				out = append(out, x.to)
			case xtReject, xtDrop:
				w.strange(name, "refuses")
			case xtJump:
				if x.chain == iptMarkMasq || x.chain == iptMarkDrop {
					continue
				}
				if to, _ := iptParseChain(x.chain); to != iptEndpoint {
					w.strange(name, "leads to chain "+x.chain)
					continue
				}
				stay = max(stay, x.stay)
				visit(x.chain)
			}
		}
	}
	visit(chain)
	return out, stay
}
