package noderules

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// addrLen is the length of an address of a family, saddrOffset where the source
// address is in its header.
func addrLen(family uint8) int {
	if family == familyIPv6 {
		return 16
	}
	return 4
}

func saddrOffset(family uint8) uint32 {
	if family == familyIPv6 {
		return 8
	}
	return 12
}

// sourceRule reads a rule as "drop what is not from these sources": a source
// address that is compared with one prefix, or looked up in a set of addresses
// or of intervals. ok is false for any other rule. set is what was looked into.
func sourceRule(t *table, rule *rule) (sources []collect.AddrRange, set string, ok bool) {
	var x []*expr
	for i := range rule.exprs {
		if e := &rule.exprs[i]; e.name != "counter" {
			x = append(x, e)
		}
	}
	n := len(x)
	if n < 3 || x[n-1].verdict == nil || x[n-1].verdict.chain != "" || x[n-1].verdict.code != verdictDrop {
		return nil, "", false
	}
	size := addrLen(t.key.family)
	load, test := x[0], x[n-2]
	if load.name != "payload" || load.arg != payNetwork || load.offset != saddrOffset(t.key.family) || load.size == 0 || int(load.size) > size {
		return nil, "", false
	}
	switch {
	case n == 3 && test.name == "lookup" && test.arg == lookupInvert && !test.mapped && int(load.size) == size:
		s := t.sets[test.set]
		if s == nil {
			return nil, test.set, false
		}
		sources, ok = s.addresses(size)
		return sources, test.set, ok
	case test.name != "cmp" || test.arg != cmpNeq || len(test.data) != int(load.size):
		return nil, "", false
	}
	mask := bytes.Repeat([]byte{0xff}, int(load.size))
	switch {
	case n == 3:
	case n == 4 && x[1].name == "bitwise" && x[1].arg == 0 && len(x[1].data) == int(load.size):
		mask = x[1].data
	default:
		return nil, "", false
	}
	bits := 0
	for bits < 8*len(mask) && mask[bits/8]&(0x80>>(bits%8)) != 0 {
		bits++
	}
	for i := bits; i < 8*len(mask); i++ {
		if mask[i/8]&(0x80>>(i%8)) != 0 {
			return nil, "", false // no prefix
		}
	}
	addr, _ := netip.AddrFromSlice(append(slices.Clone(test.data), make([]byte, size-len(test.data))...))
	return []collect.AddrRange{collect.RangeOf(netip.PrefixFrom(addr, bits))}, "", true
}

// addresses are those in a set of addresses, or of intervals of them; ok is
// false when it holds something else.
func (s *set) addresses(size int) (out []collect.AddrRange, ok bool) {
	elems := make([]element, 0, len(s.elems))
	for _, e := range s.elems {
		if len(e.key) != size || len(e.keyEnd) > 0 || e.flags&^elemIntervalEnd != 0 {
			return nil, false
		}
		elems = append(elems, e)
	}
	// Where one interval ends and the next starts, the end comes first.
	slices.SortFunc(elems, func(a, b element) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.flags&elemIntervalEnd, a.flags&elemIntervalEnd))
	})
	for i := range elems {
		at, _ := netip.AddrFromSlice(elems[i].key)
		switch {
		case elems[i].flags&elemIntervalEnd != 0:
			if len(out) > 0 && at.Prev().IsValid() {
				out[len(out)-1].To = at.Prev()
			}
		case s.flags&setInterval != 0:
			// Until an end comes: to the last address.
			out = append(out, collect.AddrRange{From: at, To: collect.RangeOf(netip.PrefixFrom(at, 0)).To})
		default:
			out = append(out, collect.AddrRange{From: at, To: at})
		}
	}
	return collect.MergeRanges(out), true
}

// firewall says from where connections to a load balancer's address are let
// through, by its element of the firewall map; nil for from anywhere.
func (r *kubeProxy) firewall(t *table, e *element, p kpPort, object string) []netip.Prefix {
	if e.verdict == nil || e.verdict.chain == "" {
		r.strange(object, "map "+kpFirewallIPs+": a verdict that is no chain")
		return nil
	}
	name := e.verdict.chain
	if role, to, ok := kpParseChain(name); !ok || role != kpFirewall || to != p {
		r.strange(object, "map "+kpFirewallIPs+": leads to chain "+name)
		return nil
	}
	r.visit(p, "chain "+name)
	c := t.chains[name]
	if c == nil || !r.dispatching[kpFirewallIPs] {
		return nil
	}
	var out []collect.AddrRange
	for i := range c.rules {
		sources, set, ok := sourceRule(t, &c.rules[i])
		if set != "" {
			r.visit(p, "set "+set)
		}
		switch {
		case !ok:
			r.strange(object, fmt.Sprintf("chain %s: a rule that does not drop by source", name))
		case out != nil:
			r.strange(object, fmt.Sprintf("chain %s: a second rule", name))
		default:
			out = sources
		}
	}
	return collect.PrefixesOf(out)
}
