package noderules

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// kubeProxy is the resolver of kube-proxy's nftables mode. The indexes say
// which Service ports a changed chain, map or element belongs to, so that a
// resolution costs what the generation touched.
type kubeProxy struct {
	key    tableKey
	family collect.Family

	// owner and fronts tie elements of the dispatch maps to Service ports.
	owner  map[kpElem]kpPort
	fronts map[kpPort]map[kpElem]struct{}
	// chains are the chains that exist for a Service port.
	chains map[kpPort]map[string]struct{}
	// byAddr finds the no-endpoint elements of one address (as key bytes):
	// whether it is a ClusterIP stands in another set.
	byAddr map[string]map[kpElem]struct{}
	// visitors are the ports whose resolution looked at an object, uses the
	// other way round. An object is "chain NAME" or "set NAME".
	visitors map[string]map[kpPort]struct{}
	uses     map[kpPort][]string
	// watching are the chains outside of any Service whose rules translate
	// addresses through a set or map.
	watching map[string]map[string]struct{}
	// dispatching tells which dispatch maps a hooked chain looks into.
	dispatching map[string]bool

	current map[collect.RulePortKey]collect.RulePort
	// odd is what could not be tied to a Service, by where it was found.
	odd map[string][]string
}

// kpElem names one element of a dispatch map.
type kpElem struct{ set, key string }

func newKubeProxy(key tableKey) *kubeProxy {
	r := &kubeProxy{key: key, family: collect.IPv4, current: map[collect.RulePortKey]collect.RulePort{}}
	if key.family == familyIPv6 {
		r.family = collect.IPv6
	}
	r.reset()
	return r
}

func (r *kubeProxy) reset() {
	r.owner = map[kpElem]kpPort{}
	r.fronts = map[kpPort]map[kpElem]struct{}{}
	r.chains = map[kpPort]map[string]struct{}{}
	r.byAddr = map[string]map[kpElem]struct{}{}
	r.visitors = map[string]map[kpPort]struct{}{}
	r.uses = map[kpPort][]string{}
	r.watching = map[string]map[string]struct{}{}
	r.dispatching = map[string]bool{}
	r.odd = map[string][]string{}
}

// kpDispatch are the maps whose elements are frontends.
var kpDispatch = [...]string{kpServiceIPs, kpNodePorts, kpNoEndpoints, kpNoEndpointsPorts}

func kpDispatches(set string) bool {
	for _, name := range kpDispatch {
		if name == set {
			return true
		}
	}
	return false
}

// kpNodePort tells the maps whose keys have no address.
func kpNodePort(set string) bool { return set == kpNodePorts || set == kpNoEndpointsPorts }

// resolve implements resolver.
func (r *kubeProxy) resolve(t *table, what touched) []collect.RulePort {
	dirty := map[kpPort]struct{}{}
	if what.all {
		for k := range r.current {
			dirty[kpPort{k.Namespace, k.Service, k.Port, k.Protocol}] = struct{}{}
		}
		r.reset()
		what.chains, what.sets, what.elems = map[string]struct{}{}, map[string]struct{}{}, nil
		for name := range t.chains {
			what.chains[name] = struct{}{}
		}
		for name := range t.sets {
			what.sets[name] = struct{}{}
		}
	}
	static := what.all
	for name := range what.chains {
		r.touchChain(t, name, dirty)
		static = static || !strings.Contains(name, "/")
	}
	for name := range what.sets {
		r.touchSet(t, name, dirty)
	}
	for set, keys := range what.elems {
		for key := range keys {
			r.touchElem(t, kpElem{set, key}, dirty)
		}
		r.looked(t, set, dirty)
	}
	if static {
		r.touchDispatch(t, dirty)
	}
	r.noteDispatch(t)
	var changed []collect.RulePort
	for p := range dirty {
		changed = r.update(t, p, changed)
	}
	return changed
}

func (r *kubeProxy) visited(object string, dirty map[kpPort]struct{}) {
	for p := range r.visitors[object] {
		dirty[p] = struct{}{}
	}
}

// looked finds who looked into a set that changed.
func (r *kubeProxy) looked(t *table, set string, dirty map[kpPort]struct{}) {
	r.visited("set "+set, dirty)
	for chain := range r.watching[set] {
		r.touchChain(t, chain, dirty)
	}
}

func (r *kubeProxy) touchChain(t *table, name string, dirty map[kpPort]struct{}) {
	r.visited("chain "+name, dirty)
	c := t.chains[name]
	role, p, ok := kpParseChain(name)
	if ok {
		dirty[p] = struct{}{}
		if c != nil {
			add(r.chains, p, name)
		} else {
			remove(r.chains, p, name)
		}
		if role != kpFirewall {
			return
		}
	}
	// Nothing but Service and endpoint chains is to translate addresses.
	object := "chain " + name
	delete(r.odd, object)
	if c == nil {
		return
	}
	for i := range c.rules {
		if !translates(&c.rules[i]) {
			continue
		}
		e := evaluate(t, &c.rules[i])
		for _, set := range e.sets {
			add(r.watching, set, name)
		}
		for _, ep := range e.endpoints {
			r.strange(object, fmt.Sprintf("chain %s: %s", name, ep))
		}
		for _, what := range e.odd {
			r.strange(object, fmt.Sprintf("chain %s: %s", name, what))
		}
	}
}

// translates reports whether a rule changes a destination.
func translates(r *rule) bool {
	for i := range r.exprs {
		switch r.exprs[i].name {
		case "nat":
			if r.exprs[i].arg == natDNAT {
				return true
			}
		case "redir", "tproxy", "target":
			return true
		}
	}
	return false
}

func (r *kubeProxy) strange(object, text string) {
	r.odd[object] = append(r.odd[object], text)
}

func (r *kubeProxy) touchSet(t *table, name string, dirty map[kpPort]struct{}) {
	r.looked(t, name, dirty)
	switch {
	case kpDispatches(name):
		for ref := range r.owner {
			if ref.set == name {
				r.touchElem(t, ref, dirty)
			}
		}
		for object := range r.odd {
			if strings.HasPrefix(object, "map "+name+" ") {
				delete(r.odd, object)
			}
		}
		fallthrough
	case name == kpFirewallIPs || name == kpClusterIPs:
		if s := t.sets[name]; s != nil {
			for key := range s.elems {
				r.touchElem(t, kpElem{name, key}, dirty)
			}
		}
		if name == kpClusterIPs || name == kpFirewallIPs {
			for p := range r.fronts {
				dirty[p] = struct{}{}
			}
		}
	}
}

func (r *kubeProxy) touchElem(t *table, ref kpElem, dirty map[kpPort]struct{}) {
	switch ref.set {
	case kpClusterIPs:
		for other := range r.byAddr[ref.key] {
			dirty[r.owner[other]] = struct{}{}
		}
		return
	case kpFirewallIPs:
		for _, set := range [...]string{kpServiceIPs, kpNoEndpoints} {
			if p, ok := r.owner[kpElem{set, ref.key}]; ok {
				dirty[p] = struct{}{}
			}
		}
		return
	}
	if !kpDispatches(ref.set) {
		return
	}
	object := "map " + ref.set + " " + ref.key
	delete(r.odd, object)
	addrBytes := ref.key[:max(0, len(ref.key)-8)]
	if p, ok := r.owner[ref]; ok {
		dirty[p] = struct{}{}
		delete(r.owner, ref)
		remove(r.fronts, p, ref)
		remove(r.byAddr, addrBytes, ref)
	}
	s := t.sets[ref.set]
	if s == nil {
		return
	}
	e, ok := s.elems[ref.key]
	if !ok {
		return
	}
	p, why := r.attribute(ref, &e)
	if why != "" {
		r.strange(object, "map "+ref.set+": "+why)
		return
	}
	dirty[p] = struct{}{}
	r.owner[ref] = p
	add(r.fronts, p, ref)
	if ref.set == kpNoEndpoints {
		add(r.byAddr, addrBytes, ref)
	}
}

// attribute tells which Service port an element of a dispatch map belongs to,
// or why that cannot be told.
func (r *kubeProxy) attribute(ref kpElem, e *element) (kpPort, string) {
	if e.flags != 0 || len(e.keyEnd) > 0 || e.verdict == nil {
		return kpPort{}, "an element that is not one address, protocol and port"
	}
	k, ok := kpParseKey(r.key.family, kpNodePort(ref.set), e.key)
	if !ok {
		return kpPort{}, fmt.Sprintf("an element with a key of %d bytes that is not address, protocol and port", len(e.key))
	}
	at := fmt.Sprintf("%s %d", k.proto, k.port)
	if !kpNodePort(ref.set) {
		at = k.addr.String() + " " + at
	}
	if ref.set == kpNoEndpoints || ref.set == kpNoEndpointsPorts {
		p, ok := kpParseComment(e.comment, k.proto)
		if !ok {
			return kpPort{}, fmt.Sprintf("%s: comment %q does not name a Service port", at, e.comment)
		}
		return p, ""
	}
	if e.verdict.chain == "" {
		return kpPort{}, at + ": " + verdictName(e.verdict.code)
	}
	role, p, ok := kpParseChain(e.verdict.chain)
	if !ok || (role != kpCluster && role != kpLocal && role != kpExternal) {
		return kpPort{}, at + ": leads to chain " + e.verdict.chain
	}
	if p.proto != k.proto {
		return kpPort{}, at + ": leads to a chain for another protocol, " + e.verdict.chain
	}
	return p, ""
}

// touchDispatch finds out which dispatch maps a packet can get to: a rule in a
// chain that hangs on a nat hook for incoming or local connections looks into
// them. Without one their elements catch nothing.
func (r *kubeProxy) touchDispatch(t *table, dirty map[kpPort]struct{}) {
	for hook, sets := range kpLookedInto {
		found := t.lookedInto(hook)
		for _, set := range sets {
			if r.dispatching[set] == found[set] {
				continue
			}
			r.dispatching[set] = found[set]
			for ref, p := range r.owner {
				if ref.set == set || set == kpFirewallIPs {
					dirty[p] = struct{}{}
				}
			}
		}
	}
}

// kpLookedInto are the maps that do nothing unless a chain on such a hook for
// incoming or local connections looks into them.
var kpLookedInto = map[string][]string{"nat": {kpServiceIPs, kpNodePorts}, "filter": {kpFirewallIPs}}

// lookedInto are the verdict maps that a new connection may be looked up in, by
// the chains on hooks of a type.
func (t *table) lookedInto(hook string) map[string]bool {
	found := map[string]bool{}
	for name := range t.reached(hook) {
		for i := range t.chains[name].rules {
			for j := range t.chains[name].rules[i].exprs {
				if x := &t.chains[name].rules[i].exprs[j]; x.name == "lookup" && x.mapped && x.dreg == regVerdict {
					found[x.set] = true
				}
			}
		}
	}
	return found
}

// reached are the chains, less those of Services, that incoming and local
// connections get to by the hooks of a type where their destination is changed,
// or before that.
func (t *table) reached(hook string) map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		c := t.chains[name]
		if c == nil || seen[name] {
			return
		}
		seen[name] = true
		for i := range c.rules {
			for j := range c.rules[i].exprs {
				if x := &c.rules[i].exprs[j]; x.verdict != nil && x.verdict.chain != "" && !strings.Contains(x.verdict.chain, "/") {
					visit(x.verdict.chain)
				}
			}
		}
	}
	for name, c := range t.chains {
		if !t.dormant && c.hook != nil && c.hook.typ == hook && (c.hook.num == hookPreroute || c.hook.num == hookLocalOut) {
			visit(name)
		}
	}
	return seen
}

// noteDispatch says when a dispatch map has elements but is not looked into.
func (r *kubeProxy) noteDispatch(t *table) {
	for hook, sets := range kpLookedInto {
		for _, set := range sets {
			object := "dispatch " + set
			delete(r.odd, object)
			if s := t.sets[set]; !r.dispatching[set] && s != nil && len(s.elems) > 0 {
				r.strange(object, fmt.Sprintf("map %s: no chain on a %s hook looks into it, its elements catch nothing", set, hook))
			}
		}
	}
}

// add and remove keep a map of sets without empty sets.
func add[K, V comparable](m map[K]map[V]struct{}, k K, v V) {
	if m[k] == nil {
		m[k] = map[V]struct{}{}
	}
	m[k][v] = struct{}{}
}

func remove[K, V comparable](m map[K]map[V]struct{}, k K, v V) {
	delete(m[k], v)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
