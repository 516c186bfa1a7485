package noderules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// update resolves one Service port and appends what differs from before. There
// are up to two results: policy Cluster and policy Local.
func (r *kubeProxy) update(t *table, p kpPort, changed []collect.RulePort) []collect.RulePort {
	for _, object := range r.uses[p] {
		remove(r.visitors, object, p)
	}
	delete(r.uses, p)
	object := "port " + p.String()
	delete(r.odd, object)

	ports := r.resolvePort(t, p, object)
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

func (p kpPort) String() string {
	return fmt.Sprintf("%s/%s/%s/%s", p.namespace, p.service, p.proto, p.port)
}

// resolvePort says what the rules do for one Service port: entry 0 under policy
// Cluster, entry 1 under policy Local.
func (r *kubeProxy) resolvePort(t *table, p kpPort, object string) [2]collect.RulePort {
	var out [2]collect.RulePort
	for i, policy := range [...]collect.Policy{collect.PolicyCluster, collect.PolicyLocal} {
		out[i].RulePortKey = collect.RulePortKey{
			Namespace: p.namespace, Service: p.service, Port: p.port,
			Protocol: p.proto, Family: r.family, Policy: policy,
		}
	}
	// What an address leads to, and with it which chains are reached at all.
	reached := map[string]bool{}
	externals := map[string]kpExternalChain{}
	for ref := range r.fronts[p] {
		front, policy, ok := r.frontend(t, ref, reached, externals, p, object)
		if !ok {
			continue
		}
		i := 0
		if policy == collect.PolicyLocal {
			i = 1
		}
		out[i].Frontends = append(out[i].Frontends, front)
		if front.Kind != collect.FrontendLoadBalancer {
			continue
		}
		e := t.sets[kpFirewallIPs].elems[ref.key]
		if sources := r.firewall(t, &e, p, object); out[i].Sources == nil {
			out[i].Sources = sources
		} else if !slices.Equal(out[i].Sources, sources) {
			r.strange(object, fmt.Sprintf("map %s: load balancer addresses with different sources", kpFirewallIPs))
		}
	}
	for name := range r.chains[p] {
		i := 0
		switch role, _, _ := kpParseChain(name); role {
		case kpCluster:
		case kpLocal:
			i = 1
		default:
			continue
		}
		w := kpWalk{r: r, t: t, p: p, object: object, seen: map[string]bool{}}
		w.chain(name)
		if !reached[name] {
			for _, ep := range w.endpoints {
				r.strange(object, fmt.Sprintf("chain %s: %s, but no address leads to the chain", name, ep))
			}
			continue
		}
		out[i].Endpoints = append(out[i].Endpoints, w.endpoints...)
		if len(w.endpoints) > 0 {
			out[i].Affinity = w.affinity
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

// frontend says what an element of a dispatch map catches and under which
// policy, and marks the chains that it leads to.
func (r *kubeProxy) frontend(t *table, ref kpElem, reached map[string]bool, externals map[string]kpExternalChain, p kpPort, object string) (collect.Frontend, collect.Policy, bool) {
	e := t.sets[ref.set].elems[ref.key]
	k, _ := kpParseKey(r.key.family, kpNodePort(ref.set), e.key)
	front := collect.Frontend{Kind: collect.FrontendExternalIP, Addr: netip.AddrPortFrom(k.addr, k.port)}
	if kpNodePort(ref.set) {
		front.Kind = collect.FrontendNodePort
	} else if fw := t.sets[kpFirewallIPs]; fw != nil {
		if _, ok := fw.elems[ref.key]; ok {
			front.Kind = collect.FrontendLoadBalancer
		}
	}
	switch ref.set {
	case kpNoEndpoints, kpNoEndpointsPorts:
		if ref.set == kpNoEndpoints && r.isClusterIP(t, k.addr) {
			front.Kind = collect.FrontendClusterIP
		}
		// Only a Local policy without endpoints here drops. A rejected
		// address has no endpoint anywhere, and the rules do not say under
		// which policy: Cluster, the default, stands for both.
		if e.verdict.chain == "" && e.verdict.code == verdictDrop {
			return front, collect.PolicyLocal, true
		}
		return front, collect.PolicyCluster, true
	}
	if !r.dispatching[ref.set] {
		return collect.Frontend{}, "", false
	}
	chain := e.verdict.chain
	switch role, _, _ := kpParseChain(chain); role {
	case kpCluster, kpLocal:
		reached[chain] = true
		if !kpNodePort(ref.set) {
			front.Kind = collect.FrontendClusterIP
		}
		if role == kpLocal {
			return front, collect.PolicyLocal, true
		}
		return front, collect.PolicyCluster, true
	}
	x, ok := externals[chain]
	if !ok {
		x = r.external(t, chain, p, object)
		externals[chain] = x
	}
	for _, target := range x.leads {
		reached[target] = true
	}
	return front, x.policy, true
}

// isClusterIP looks an address up in the set of ClusterIPs. Without that set
// every address counts as one.
func (r *kubeProxy) isClusterIP(t *table, a netip.Addr) bool {
	s := t.sets[kpClusterIPs]
	if s == nil {
		return true
	}
	_, ok := s.elems[string(a.AsSlice())]
	return ok
}

// kpExternalChain is what an external- chain does.
type kpExternalChain struct {
	// policy is where connections from outside end up; those of the node
	// itself and of its pods may be sent to the Cluster chain all the same
	// (the short circuit of proxier.go).
	policy collect.Policy
	leads  []string
}

func (r *kubeProxy) external(t *table, name string, p kpPort, object string) kpExternalChain {
	x := kpExternalChain{policy: collect.PolicyCluster}
	r.visit(p, "chain "+name)
	c := t.chains[name]
	if c == nil {
		return x
	}
	shortcut, final := false, false
	for i := range c.rules {
		e := evaluate(t, &c.rules[i])
		for _, ep := range e.endpoints {
			r.strange(object, fmt.Sprintf("chain %s: %s", name, ep))
		}
		for _, what := range e.odd {
			r.strange(object, fmt.Sprintf("chain %s: %s", name, what))
		}
		for _, target := range e.targets {
			if target == kpMarkMasq {
				continue
			}
			role, to, ok := kpParseChain(target)
			if !ok || to != p || (role != kpCluster && role != kpLocal) {
				r.strange(object, fmt.Sprintf("chain %s: leads to chain %s", name, target))
				continue
			}
			x.leads = append(x.leads, target)
			if e.conditional {
				shortcut = true
				continue
			}
			final = true
			if role == kpLocal {
				x.policy = collect.PolicyLocal
			}
		}
	}
	// With the short circuit but no way on, a Local policy has no endpoint
	// here.
	if shortcut && !final {
		x.policy = collect.PolicyLocal
	}
	return x
}

func (r *kubeProxy) visit(p kpPort, object string) {
	add(r.visitors, object, p)
	r.uses[p] = append(r.uses[p], object)
}

// kpWalk collects the endpoints that a chain can lead to.
type kpWalk struct {
	r         *kubeProxy
	t         *table
	p         kpPort
	object    string
	seen      map[string]bool
	endpoints []netip.AddrPort
	// affinity is for how long a client is remembered, by the sets of clients
	// that are looked into.
	affinity time.Duration
}

func (w *kpWalk) chain(name string) {
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	w.r.visit(w.p, "chain "+name)
	c := w.t.chains[name]
	if c == nil {
		return
	}
	for i := range c.rules {
		e := evaluate(w.t, &c.rules[i])
		for _, set := range e.sets {
			w.r.visit(w.p, "set "+set)
			s := w.t.sets[set]
			if s == nil || s.flags&setTimeout == 0 {
				continue
			}
			if w.affinity != 0 && w.affinity != s.timeout {
				w.r.strange(w.object, fmt.Sprintf("chain %s: clients stay for different times", name))
			}
			w.affinity = s.timeout
		}
		if e.proto != 0 && e.proto != protoNumber(w.p.proto) {
			for _, ep := range e.endpoints {
				w.r.strange(w.object, fmt.Sprintf("chain %s: %s, for IP protocol %d", name, ep, e.proto))
			}
			continue
		}
		for _, what := range e.odd {
			w.r.strange(w.object, fmt.Sprintf("chain %s: %s", name, what))
		}
		w.endpoints = append(w.endpoints, e.endpoints...)
		for _, target := range e.targets {
			w.chain(target)
		}
	}
}

// ports implements resolver.
func (r *kubeProxy) ports() []collect.RulePort {
	out := make([]collect.RulePort, 0, len(r.current))
	for _, p := range r.current {
		out = append(out, p)
	}
	return out
}

// unknown implements resolver.
func (r *kubeProxy) unknown() []string {
	var out []string
	for _, texts := range r.odd {
		out = append(out, texts...)
	}
	return out
}
