package noderules

import (
	"fmt"
	"net/netip"

	"github.com/kconverge/kconverge/collect"
)

// flatFirewall is the rule that drops connections to some frontends from
// elsewhere than their sources: the set of the frontends, and the set of
// frontend and range of addresses.
type flatFirewall struct {
	frontends, sources string
}

// flatParseFirewall knows the rule by its shape.
func flatParseFirewall(rule *rule) (out flatFirewall, ok bool) {
	var x []*expr
	for i := range rule.exprs {
		switch e := &rule.exprs[i]; e.name {
		case "payload", "counter", "meta":
		default:
			x = append(x, e)
		}
	}
	if len(x) != 3 || x[0].name != "lookup" || x[0].mapped || x[0].arg != 0 || x[1].name != "lookup" || x[1].mapped || x[1].arg != lookupInvert ||
		x[2].verdict == nil || x[2].verdict.chain != "" || x[2].verdict.code != verdictDrop {
		return flatFirewall{}, false
	}
	return flatFirewall{x[0].set, x[1].set}, true
}

// readFirewall finds the rule among the chains on filter hooks that new
// connections pass before their destination is changed.
func (r *flat) readFirewall(t *table) {
	for name := range t.reached("filter") {
		for i := range t.chains[name].rules {
			fw, ok := flatParseFirewall(&t.chains[name].rules[i])
			switch {
			case !ok:
			case r.firewall != flatFirewall{} && r.firewall != fw:
				r.strange("chain "+name, fmt.Sprintf("chain %s: a second rule drops by source", name))
			default:
				r.firewall = fw
			}
		}
	}
}

// touchSource takes in an element of the set of sources, or of the frontends
// that have any.
func (r *flat) touchSource(ref kpElem, present bool, dirty map[kpPort]struct{}) {
	front := ref.key
	if ref.set == r.firewall.sources {
		front = front[:min(len(front), addrLen(r.key.family)+8)]
		if present {
			add(r.sourceKeys, front, ref.key)
		} else {
			remove(r.sourceKeys, front, ref.key)
		}
	}
	for set := range r.rules {
		if f, ok := r.owner[kpElem{set, front}]; ok {
			dirty[f.port] = struct{}{}
		}
	}
	if f, ok := r.owner[kpElem{flatNoEndpoints, front}]; ok {
		dirty[f.port] = struct{}{}
	}
}

// sources says from where a frontend may be reached; nil for from anywhere.
func (r *flat) sources(t *table, key string) []netip.Prefix {
	if s := t.sets[r.firewall.frontends]; s == nil {
		return nil
	} else if _, in := s.elems[key]; !in {
		return nil
	}
	var ranges []collect.AddrRange
	n := addrLen(r.key.family)
	for k := range r.sourceKeys[key] {
		e := t.sets[r.firewall.sources].elems[k]
		from, ok1 := netip.AddrFromSlice(e.key[min(len(key), len(e.key)):])
		to := from
		ok2 := ok1
		if len(e.keyEnd) == len(e.key) {
			to, ok2 = netip.AddrFromSlice(e.keyEnd[len(key):])
		}
		if ok1 && ok2 && from.BitLen() == 8*n {
			ranges = append(ranges, collect.AddrRange{From: from, To: to})
		}
	}
	out := collect.PrefixesOf(collect.MergeRanges(ranges))
	if out == nil {
		out = []netip.Prefix{} // from nowhere
	}
	return out
}
