package noderules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// iptables is the resolver of kube-proxy's iptables mode in one family, over the
// nat and the filter table. Service ports are known by the hash in their chains'
// names; which Service that is, comments say, and the hash proves it. What a
// sync rewrites as a whole (KUBE-SERVICES and the like) is compared with what it
// was, so that only ports that changed are resolved again.
type iptables struct {
	family uint8
	known  map[string]kpPort // hash -> name, given from outside

	nat, filter *table
	// rootsMoved: a chain outside of any Service changed. moved are the chains
	// of Service ports and endpoints that did.
	rootsMoved bool
	moved      map[string]struct{}

	fronts  map[string][]iptFront // by hash, as the nat table leads there
	rejects map[string][]iptFront // by hash, as the filter table refuses them
	// visitors are the hashes whose resolution looked at a chain, uses the
	// other way round.
	visitors map[string]map[string]struct{}
	uses     map[string][]string
	names    map[string]kpPort // hash -> the name that its ports were given

	current map[collect.RulePortKey]collect.RulePort
	odd     map[string][]string
	// foreign counts the rules of each chain that are not kube-proxy's.
	foreign map[string]int
}

// iptFront is one rule that leads an address to a chain, or refuses it.
type iptFront struct {
	collect.Frontend
	proto   collect.Protocol
	chain   string // "": refused
	drop    bool   // refused silently
	comment string
}

// iptView is one of the two tables: the tracker knows resolvers of one table.
type iptView struct {
	*iptables
	filtering bool
}

// openIPTables implements layout.joint: the two tables of a family share one
// resolver.
func openIPTables(known []kpPort) func(tableKey) resolver {
	names := make(map[string]kpPort, len(known))
	for _, p := range known {
		names[iptHash(p)] = p
	}
	families := map[uint8]*iptables{}
	return func(key tableKey) resolver {
		r := families[key.family]
		if r == nil {
			r = &iptables{family: key.family, known: names, current: map[collect.RulePortKey]collect.RulePort{}}
			r.reset()
			families[key.family] = r
		}
		return &iptView{r, key.name == "filter"}
	}
}

func (r *iptables) reset() {
	r.rootsMoved, r.moved = true, map[string]struct{}{}
	r.fronts, r.rejects = map[string][]iptFront{}, map[string][]iptFront{}
	r.visitors, r.uses = map[string]map[string]struct{}{}, map[string][]string{}
	r.names = map[string]kpPort{}
	r.odd = map[string][]string{}
	r.foreign = map[string]int{}
}

// resolve implements resolver: it only notes what changed, as a port can stand
// in both tables.
func (v *iptView) resolve(t *table, what touched) []collect.RulePort {
	r := v.iptables
	names := what.chains
	if what.all {
		names = map[string]struct{}{}
		for name := range t.chains {
			names[name] = struct{}{}
		}
		r.rootsMoved = true
	}
	if v.filtering {
		r.filter = t
		r.rootsMoved = r.rootsMoved || len(names) > 0
		for name := range names {
			r.count("filter ", t, name)
		}
		if what.all {
			r.forget("filter ", t)
		}
		return nil
	}
	r.nat = t
	for name := range names {
		r.count("nat ", t, name)
		if role, _ := iptParseChain(name); role == iptOther {
			r.rootsMoved = true
		} else {
			r.moved[name] = struct{}{}
		}
	}
	if what.all {
		// What went with the old content has left no word.
		for chain := range r.visitors {
			r.moved[chain] = struct{}{}
		}
		r.forget("nat ", t)
	}
	return nil
}

// count counts the rules of a chain that are not kube-proxy's: those of foreign
// chains, but for the jumps to kube-proxy's.
func (r *iptables) count(table string, t *table, name string) {
	delete(r.foreign, table+name)
	c := t.chains[name]
	if c == nil || strings.HasPrefix(name, "KUBE-") {
		return
	}
	n := 0
	for i := range c.rules {
		if x := c.rules[i].xt; x.action != xtJump || !strings.HasPrefix(x.chain, "KUBE-") {
			n++
		}
	}
	if n > 0 {
		r.foreign[table+name] = n
	}
}

func (r *iptables) forget(table string, t *table) {
	for name := range r.foreign {
		if chain, ok := strings.CutPrefix(name, table); ok && t.chains[chain] == nil {
			delete(r.foreign, name)
		}
	}
}

// settle implements settler.
func (v *iptView) settle() []collect.RulePort {
	r := v.iptables
	if v.filtering || !r.rootsMoved && len(r.moved) == 0 {
		return nil
	}
	dirty := map[string]struct{}{}
	for chain := range r.moved {
		for hash := range r.visitors[chain] {
			dirty[hash] = struct{}{}
		}
		if role, hash := iptParseChain(chain); role != iptEndpoint {
			dirty[hash] = struct{}{}
		}
	}
	if r.rootsMoved {
		fronts, rejects := r.dispatch()
		differing(r.fronts, fronts, dirty)
		differing(r.rejects, rejects, dirty)
		r.fronts, r.rejects = fronts, rejects
	}
	r.rootsMoved = false
	clear(r.moved)
	var changed []collect.RulePort
	for hash := range dirty {
		changed = r.update(hash, changed)
		if len(r.fronts[hash]) == 0 && len(r.rejects[hash]) == 0 {
			delete(r.names, hash) // the Service is gone
		}
	}
	return changed
}

func differing(was, now map[string][]iptFront, dirty map[string]struct{}) {
	for hash, fronts := range now {
		if !slices.Equal(was[hash], fronts) {
			dirty[hash] = struct{}{}
		}
	}
	for hash := range was {
		if _, ok := now[hash]; !ok {
			dirty[hash] = struct{}{}
		}
	}
}

// dispatch finds what the rules outside of any Service lead to Service chains,
// beginning with the chains on hooks: what those do not reach does nothing. A
// chain is followed once, whatever must hold for a jump to it.
func (r *iptables) dispatch() (fronts, rejects map[string][]iptFront) {
	fronts, rejects = map[string][]iptFront{}, map[string][]iptFront{}
	const object = "dispatch"
	delete(r.odd, object)
	seen := r.walk(r.nat, "nat", []uint32{hookPreroute, hookLocalOut}, func(x *xtRule) {
		role, hash := iptParseChain(x.chain)
		if x.action != xtJump || role == iptOther {
			return
		}
		f, why := r.front(x, role)
		if why != "" {
			r.strange(object, fmt.Sprintf("chain %s: %s", x.chain, why))
			return
		}
		fronts[hash] = append(fronts[hash], f)
	})
	for _, name := range [...]string{iptServices, iptNodePorts} {
		if r.nat == nil || seen[name] {
			continue
		}
		if c := r.nat.chains[name]; c != nil && len(c.rules) > 0 {
			r.strange(object, fmt.Sprintf("chain %s: no chain on a nat hook leads to it, its rules catch nothing", name))
		}
	}
	reached := r.walk(r.filter, "filter", []uint32{hookLocalIn, hookForward, hookLocalOut}, func(*xtRule) {})
	for _, name := range [...]string{iptServices, iptExternal} {
		if !reached[name] {
			continue
		}
		for i := range r.filter.chains[name].rules {
			x := r.filter.chains[name].rules[i].xt
			if x.action != xtReject && x.action != xtDrop {
				continue
			}
			f, why := r.front(x, iptOther)
			if why == "" {
				f.Kind = collect.FrontendExternalIP
				switch {
				case !x.dst.IsValid():
					f.Kind = collect.FrontendNodePort
				case name == iptServices:
					f.Kind = collect.FrontendClusterIP
				}
				// No chain's hash stands here: the comment is all there is.
				names := iptNames(x.comment, f.proto)
				if len(names) == 1 {
					hash := iptHash(names[0])
					r.learn(hash, names[0])
					rejects[hash] = append(rejects[hash], f)
					continue
				}
				why = fmt.Sprintf("%s: comment %q does not name a Service port", f.at(), x.comment)
			}
			r.strange(object, fmt.Sprintf("filter chain %s: %s", name, why))
		}
	}
	for _, m := range [...]map[string][]iptFront{fronts, rejects} {
		for _, list := range m {
			slices.SortFunc(list, func(a, b iptFront) int {
				if c := a.Addr.Compare(b.Addr); c != 0 {
					return c
				}
				return strings.Compare(a.text(), b.text())
			})
		}
	}
	return fronts, rejects
}

// walk follows a table from the chains on the given hooks through all chains that
// are not of a Service, and hands each rule to f. It returns the chains.
func (r *iptables) walk(t *table, typ string, hooks []uint32, f func(*xtRule)) map[string]bool {
	seen := map[string]bool{}
	if t == nil || t.dormant {
		return seen
	}
	var visit func(name string)
	visit = func(name string) {
		c := t.chains[name]
		if c == nil || seen[name] {
			return
		}
		seen[name] = true
		for i := range c.rules {
			x := c.rules[i].xt
			f(x)
			if x.action != xtJump {
				continue
			}
			if role, _ := iptParseChain(x.chain); role == iptOther {
				visit(x.chain)
			}
		}
	}
	for name, c := range t.chains {
		if c.hook != nil && c.hook.typ == typ && slices.Contains(hooks, c.hook.num) {
			visit(name)
		}
	}
	return seen
}

// front reads the address that a rule catches. A rule without one, or for the
// whole loopback network, is a NodePort's.
func (r *iptables) front(x *xtRule, to iptRole) (iptFront, string) {
	f := iptFront{proto: protocolOf(x.proto), chain: x.chain, drop: x.action == xtDrop, comment: x.comment}
	if x.action != xtJump {
		f.chain = ""
	}
	if f.proto == "" || x.dport == 0 {
		return f, "an address without protocol and port leads here"
	}
	switch {
	case x.dst.IsSingleIP():
		f.Kind = iptKind(x.comment, to)
		f.Addr = netip.AddrPortFrom(x.dst.Addr(), x.dport)
	case !x.dst.IsValid() || x.dst.Addr().IsLoopback():
		f.Kind = collect.FrontendNodePort
		f.Addr = netip.AddrPortFrom(r.unspecified(), x.dport)
	default:
		return f, fmt.Sprintf("the network %s leads here", x.dst)
	}
	return f, ""
}

func (r *iptables) unspecified() netip.Addr {
	if r.family == familyIPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func (f *iptFront) at() string { return fmt.Sprintf("%s %s", f.Addr, f.proto) }

func (f *iptFront) text() string {
	return fmt.Sprint(f.Kind, f.proto, f.chain, f.drop, f.comment)
}

// learn notes the name of a hash, for as long as some rule leads there.
func (r *iptables) learn(hash string, p kpPort) {
	if _, ok := r.names[hash]; !ok {
		r.names[hash] = p
	}
}

func (r *iptables) strange(object, text string) {
	r.odd[object] = append(r.odd[object], text)
}

// ports implements resolver.
func (v *iptView) ports() []collect.RulePort {
	if v.filtering {
		return nil
	}
	return slices.Collect(maps.Values(v.current))
}

// unknown implements resolver.
func (v *iptView) unknown() []string {
	if v.filtering {
		return nil
	}
	return slices.Concat(slices.Collect(maps.Values(v.odd))...)
}

// size implements resolver.
func (v *iptView) size() int {
	if v.filtering {
		return 0
	}
	return len(v.current)
}

// present implements resolver: KUBE-FIREWALL, KUBE-KUBELET-CANARY and others are
// the kubelet's, and kube-proxy's IPVS mode has chains of its own.
func (v *iptView) present(t *table) bool {
	if v.filtering || !t.exists || ipvsChains(t) {
		return false
	}
	return t.chains[iptServices] != nil || t.chains[iptNodePorts] != nil
}

// ignored implements ignorer.
func (v *iptView) ignored() int {
	if v.filtering {
		return 0
	}
	n := 0
	for _, k := range v.foreign {
		n += k
	}
	return n
}
