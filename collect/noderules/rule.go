package noderules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// effect is what one rule can do to a packet, as far as it decides where a
// connection goes.
type effect struct {
	// endpoints are the destinations that the rule itself translates to.
	endpoints []netip.AddrPort
	// targets are the chains that the rule jumps or goes to.
	targets []string
	// conditional tells that a match other than the protocol comes before.
	conditional bool
	// proto is the transport protocol that the rule is limited to, 0 for any.
	proto uint8
	// sets are the sets and maps that were looked into.
	sets []string
	// odd lists statements that this package does not follow.
	odd []string
}

// registers is the register file of one rule's evaluation: bytes with a known
// value, and at most one place filled from a map, with each value it may have.
type registers struct {
	bytes [registerBytes]byte
	known [registerBytes]bool
	alts  [][]byte
	altAt int
}

// regOffset turns a register number into an offset in bytes
// (nft_parse_register in net/netfilter/nf_tables_api.c); -1 when there is no
// such register.
func regOffset(reg uint32) int {
	switch {
	case reg >= reg1 && reg <= reg4:
		return int(reg-reg1) * 16
	case reg >= reg32First && reg <= reg32Last:
		return int(reg-reg32First) * 4
	}
	return -1
}

func (r *registers) set(reg uint32, data []byte) {
	off := regOffset(reg)
	if off < 0 {
		return
	}
	for i, b := range data {
		if off+i >= registerBytes {
			return
		}
		r.bytes[off+i], r.known[off+i] = b, true
	}
}

// get returns n bytes of reg for one of the map's values (alt is nil without a
// map), or nil when they are not known.
func (r *registers) get(reg uint32, n int, alt []byte) []byte {
	off := regOffset(reg)
	if off < 0 || off+n > registerBytes {
		return nil
	}
	if at := off - r.altAt; alt != nil && at >= 0 && at+n <= len(alt) {
		return alt[at : at+n]
	}
	for i := off; i < off+n; i++ {
		if !r.known[i] {
			return nil
		}
	}
	return r.bytes[off : off+n]
}

// evaluate follows a rule of t.
func evaluate(t *table, r *rule) effect {
	var (
		out      effect
		regs     registers
		protoReg = uint32(0)
		numgen   *expr
	)
	for i := range r.exprs {
		x := &r.exprs[i]
		switch x.name {
		case "immediate":
			switch {
			case x.verdict == nil:
				regs.set(x.dreg, x.data)
			case x.verdict.chain != "":
				out.targets = append(out.targets, x.verdict.chain)
			default:
				out.odd = append(out.odd, verdictName(x.verdict.code))
			}
		case "meta":
			if x.dreg != 0 && x.arg == metaL4Proto {
				protoReg = x.dreg
			} else if x.dreg != 0 && x.dreg == protoReg {
				protoReg = 0
			}
		case "cmp":
			if protoReg != 0 && x.sreg == protoReg && x.arg == cmpEq && len(x.data) == 1 {
				out.proto = x.data[0]
			} else {
				out.conditional = true
			}
		case "numgen":
			numgen = x
		case "lookup":
			out.sets = append(out.sets, x.set)
			if !x.mapped {
				out.conditional = true
				continue
			}
			out.lookup(t, x, numgen, &regs)
		case "nat":
			out.nat(t.key.family, x, &regs)
		case "range", "limit", "quota", "connlimit":
			out.conditional = true
		case "payload", "fib", "ct", "rt", "socket", "hash", "exthdr", "bitwise", "byteorder", "osf", "tunnel",
			"counter", "last", "log", "dynset", "objref", "notrack":
			// Loads, and statements that do not decide where a packet goes.
		default:
			out.odd = append(out.odd, x.name)
		}
	}
	return out
}

// lookup follows a map: a verdict map adds targets, a data map fills registers.
func (out *effect) lookup(t *table, x, numgen *expr, regs *registers) {
	s := t.sets[x.set]
	if s == nil {
		return
	}
	if len(regs.alts) > 0 && x.dreg != regVerdict {
		out.odd = append(out.odd, "second map @"+x.set)
		return
	}
	byNumber := numgen != nil && numgen.dreg == x.sreg
	for _, e := range s.elems {
		// An index that the generator never yields leads nowhere.
		if byNumber && len(e.key) == 4 && e.flags&elemCatchall == 0 {
			if n := binary.NativeEndian.Uint32(e.key); n < numgen.offset || n-numgen.offset >= numgen.arg {
				continue
			}
		}
		switch {
		case e.verdict != nil && e.verdict.chain != "":
			out.targets = append(out.targets, e.verdict.chain)
		case e.verdict != nil:
			out.odd = append(out.odd, verdictName(e.verdict.code)+" by @"+x.set)
		case x.dreg != regVerdict && len(e.data) > 0:
			regs.alts = append(regs.alts, e.data)
			regs.altAt = regOffset(x.dreg)
		}
	}
}

func (out *effect) nat(family uint8, x *expr, regs *registers) {
	n := x.nat
	if x.arg != natDNAT {
		out.odd = append(out.odd, "snat")
		return
	}
	if (n.addrMax != 0 && n.addrMax != n.addrMin) || (n.protoMax != 0 && n.protoMax != n.protoMin) {
		out.odd = append(out.odd, "dnat to a range")
		return
	}
	size := 4
	if family == familyIPv6 {
		size = 16
	}
	alts := regs.alts
	if len(alts) == 0 {
		alts = [][]byte{nil}
	}
	for _, alt := range alts {
		a, p := regs.get(n.addrMin, size, alt), regs.get(n.protoMin, 2, alt)
		addr, ok := netip.AddrFromSlice(a)
		switch {
		case !ok:
			out.odd = append(out.odd, "dnat to an address that is not in the rule")
		case p == nil:
			out.odd = append(out.odd, fmt.Sprintf("dnat to %s, port unchanged", addr))
		default:
			out.endpoints = append(out.endpoints, netip.AddrPortFrom(addr, binary.BigEndian.Uint16(p)))
		}
	}
}

func verdictName(code int32) string {
	switch code {
	case verdictDrop:
		return "drop"
	case verdictAccept:
		return "accept"
	case verdictReturn:
		return "return"
	}
	return fmt.Sprintf("verdict %d", code)
}
