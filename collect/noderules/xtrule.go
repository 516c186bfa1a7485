package noderules

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// xtRule is one rule of iptables, as far as it decides where a connection goes.
// Both kinds of iptables end up here: those of nf_tables, whose rules are part
// expressions and part matches and targets of iptables (how large each part is
// differs between versions), and the legacy ones, which are the latter only.
type xtRule struct {
	comment  string
	proto    uint8        // 0: any
	src, dst netip.Prefix // the zero Prefix: any
	dport    uint16       // 0: any
	// dstLocal: the destination is one of the node's own addresses.
	dstLocal bool
	// conditional tells that something else must hold as well: a random number,
	// a recent connection.
	conditional bool
	// stay is for how long after its last connection a client still matches.
	stay   time.Duration
	action xtAction
	chain  string         // of xtJump
	to     netip.AddrPort // of xtDNAT
	// odd is a part that this package does not follow.
	odd string
}

// limited tells that not everything goes on here that came for the rule's
// destination.
func (r *xtRule) limited() bool { return r.conditional || r.src.IsValid() }

// xtAction is what a rule does with what it matches.
type xtAction uint8

const (
	xtNone xtAction = iota // counts, marks, returns, accepts
	xtJump
	xtDNAT
	xtReject
	xtDrop
)

// loaded is what an expression has put into a register.
type loaded struct {
	what loadedWhat
	mask []byte // of an address that is looked at in part; nil for as it is
}

type loadedWhat uint8

const (
	loadedOther loadedWhat = iota
	loadedProto
	loadedSrc
	loadedDst
	loadedDport
)

// xtOfExprs reads a rule that iptables-nft wrote.
func xtOfExprs(family uint8, exprs []expr, note string) *xtRule {
	r := &xtRule{comment: note}
	regs := map[uint32]loaded{}
	for i := range exprs {
		x := &exprs[i]
		switch x.name {
		case "counter", "last", "log":
		case "meta":
			if x.dreg != 0 {
				regs[x.dreg] = loaded{}
				if x.arg == metaL4Proto {
					regs[x.dreg] = loaded{what: loadedProto}
				}
			}
		case "payload":
			if x.dreg != 0 {
				regs[x.dreg] = loaded{what: xtPayload(family, x)}
			}
		case "bitwise":
			// As iptables writes a prefix that ends inside a byte: the address and
			// a mask, in place.
			if l := regs[x.dreg]; x.dreg != 0 && x.sreg == x.dreg && x.arg == 0 && x.data != nil && l.mask == nil && (l.what == loadedSrc || l.what == loadedDst) {
				regs[x.dreg] = loaded{l.what, x.data}
			} else {
				regs[x.dreg] = loaded{}
			}
		case "byteorder", "fib", "ct", "rt", "socket", "hash", "numgen", "exthdr":
			regs[x.dreg] = loaded{} // not decoded: a condition at most
			if x.dreg == 0 {
				clear(regs)
			}
		case "cmp":
			r.compare(family, regs[x.sreg], x)
		case "match":
			r.match(x.set, uint8(x.arg), x.data)
		case "target":
			r.target(family, x.set, uint8(x.arg), x.data)
		case "immediate":
			switch v := x.verdict; {
			case v == nil:
				delete(regs, x.dreg)
			case v.chain != "":
				r.action, r.chain = xtJump, v.chain
			case v.code == verdictDrop:
				r.action = xtDrop
			}
		case "reject":
			r.action = xtReject
		case "nat":
			// Written by nft itself or by a later iptables.
			e := evaluate(&table{key: tableKey{family: family}}, &rule{exprs: exprs})
			switch {
			case len(e.endpoints) == 1:
				r.action, r.to = xtDNAT, e.endpoints[0]
			case len(e.odd) > 0:
				r.odd = e.odd[0]
			}
		case "masq":
		case "lookup", "range", "limit", "quota", "connlimit":
			r.conditional = true
		default:
			r.odd = x.name
		}
	}
	return r
}

// xtPayload tells what a piece of a packet is. Addresses can be loaded up to
// the length of their prefix.
func xtPayload(family uint8, x *expr) loadedWhat {
	proto, dst, size := uint32(9), uint32(16), uint32(4)
	if family == familyIPv6 {
		proto, dst, size = 6, 24, 16
	}
	switch {
	case x.arg == payNetwork && x.offset == proto && x.size == 1:
		return loadedProto
	case x.arg == payNetwork && x.offset == saddrOffset(family) && x.size >= 1 && x.size <= size:
		return loadedSrc
	case x.arg == payNetwork && x.offset == dst && x.size >= 1 && x.size <= size:
		return loadedDst
	case x.arg == payTransport && x.offset == 2 && x.size == 2:
		return loadedDport
	}
	return loadedOther
}

func (r *xtRule) compare(family uint8, reg loaded, x *expr) {
	switch {
	case x.arg != cmpEq:
	case reg.what == loadedProto && len(x.data) == 1:
		r.proto = x.data[0]
		return
	case reg.what == loadedDport && len(x.data) == 2:
		r.dport = binary.BigEndian.Uint16(x.data)
		return
	case reg.what == loadedSrc && !r.src.IsValid():
		var ok bool
		if r.src, ok = xtCompared(family, reg.mask, x.data); ok {
			return
		}
	case reg.what == loadedDst && !r.dst.IsValid():
		var ok bool
		if r.dst, ok = xtCompared(family, reg.mask, x.data); ok {
			return
		}
	}
	r.conditional = true
}

// xtCompared is what addresses match whose beginning, under the mask if there is
// one, is data; ok is false when they are not those of a prefix.
func xtCompared(family uint8, mask, data []byte) (p netip.Prefix, ok bool) {
	full := make([]byte, addrLen(family))
	if len(data) == 0 || len(data) > len(full) || mask != nil && len(mask) != len(data) {
		return p, false
	}
	if mask == nil {
		mask = bytes.Repeat([]byte{0xff}, len(data))
	}
	copy(full, data)
	if p, ok = xtPrefix(full, mask); !ok {
		return netip.Prefix{}, false
	}
	return p, p == p.Masked() // else nothing matches
}

// xtKeep copies what is read of a match or target: structures are large, a
// comment's is 256 bytes.
func xtKeep(name string, info []byte) []byte {
	switch name {
	case "comment":
		info, _, _ = bytes.Cut(info, []byte{0})
	case "tcp", "udp", "sctp", "addrtype", "DNAT":
	case "recent":
		// Its list's name, as long as the rest, says no more.
		info = info[:min(len(info), 10)]
	default:
		return nil
	}
	return bytes.Clone(info)
}

// match reads one match of iptables. Layouts are those of the kernel's
// include/uapi/linux/netfilter/xt_*.h; ports are in the machine's byte order.
func (r *xtRule) match(name string, revision uint8, info []byte) {
	switch name {
	case "comment":
		info, _, _ = bytes.Cut(info, []byte{0})
		r.comment = string(info)
		return
	case "nfacct": // counts
		return
	case "tcp", "udp":
		// Source ports, destination ports; of tcp then option, flags and mask.
		const anyPort = 0xffff
		inv := 8
		if name == "tcp" {
			inv = 11
		}
		if len(info) <= inv {
			break
		}
		u16 := func(at int) uint16 { return binary.NativeEndian.Uint16(info[at:]) }
		if info[inv] != 0 || u16(0) != 0 || u16(2) != anyPort || name == "tcp" && (info[8] != 0 || info[9] != 0) {
			break
		}
		r.ports(u16(4), u16(6))
		return
	case "sctp":
		// struct xt_sctp_info: destination ports, source ports, chunks, then what
		// is looked at, and what is inverted.
		if len(info) < 292 {
			break
		}
		flags, inv := binary.NativeEndian.Uint32(info[284:]), binary.NativeEndian.Uint32(info[288:])
		const destination = 2 // XT_SCTP_DEST_PORTS
		switch {
		case inv != 0 || flags&^destination != 0:
		case flags == destination:
			r.ports(binary.NativeEndian.Uint16(info), binary.NativeEndian.Uint16(info[2:]))
			return
		default:
			return
		}
	case "recent":
		// Seconds, hits, what is done, whether inverted.
		const check = 1 << 0 // XT_RECENT_CHECK
		if len(info) >= 10 && info[8]&check != 0 && info[9] == 0 {
			r.stay = time.Duration(binary.NativeEndian.Uint32(info)) * time.Second
		}
	case "addrtype":
		// Source types, destination types; then flags, or in revision 0 what
		// is inverted.
		if len(info) < 8 {
			break
		}
		const local = 1 << 2 // 1 << RTN_LOCAL, XT_ADDRTYPE_LOCAL
		src, dst, flags := binary.NativeEndian.Uint16(info), binary.NativeEndian.Uint16(info[2:]), binary.NativeEndian.Uint32(info[4:])
		inverted := flags != 0
		if revision == 0 {
			inverted = len(info) < 12 || flags != 0 || binary.NativeEndian.Uint32(info[8:]) != 0
		}
		if src == 0 && dst == local && !inverted {
			r.dstLocal = true
			return
		}
	}
	r.conditional = true
}

func (r *xtRule) ports(lo, hi uint16) {
	switch {
	case lo == hi:
		r.dport = lo
	case lo != 0 || hi != 0xffff:
		r.conditional = true
	}
}

// target reads one target of iptables.
func (r *xtRule) target(family uint8, name string, revision uint8, info []byte) {
	switch name {
	case "DNAT":
		to, odd := xtDNATTo(family, revision, info)
		if odd != "" {
			r.odd = odd
			return
		}
		r.action, r.to = xtDNAT, to
	case "REJECT":
		r.action = xtReject
	case "MARK", "CONNMARK", "MASQUERADE", "LOG", "NFLOG", "TRACE", "CT", "SNAT", "TCPMSS", "NETMAP":
	default:
		r.odd = name
	}
}

// xtDNATTo reads the destination of the DNAT target: revision 0 is
// nf_nat_ipv4_multi_range_compat, the later ones are nf_nat_range and
// nf_nat_range2 (include/uapi/linux/netfilter/nf_nat.h).
func xtDNATTo(family uint8, revision uint8, info []byte) (netip.AddrPort, string) {
	size := 16
	flags := 0
	if revision == 0 {
		size, flags = 4, 4
	}
	ports := flags + 4 + 2*size
	if len(info) < ports+4 {
		return netip.AddrPort{}, fmt.Sprintf("DNAT revision %d of %d bytes", revision, len(info))
	}
	// An IPv4 address takes the first 4 of the 16 bytes.
	n := 4
	if family == familyIPv6 {
		n = 16
	}
	if n > size {
		return netip.AddrPort{}, "DNAT to an IPv4 address"
	}
	lo, _ := netip.AddrFromSlice(info[flags+4 : flags+4+n])
	hi, _ := netip.AddrFromSlice(info[flags+4+size : flags+4+size+n])
	const mapIPs, protoSpecified = 1, 2 // NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_SPECIFIED
	what := binary.NativeEndian.Uint32(info[flags:])
	port, last := binary.BigEndian.Uint16(info[ports:]), binary.BigEndian.Uint16(info[ports+2:])
	switch {
	case what&mapIPs == 0:
		return netip.AddrPort{}, "DNAT to no address"
	case lo != hi || what&protoSpecified != 0 && port != last:
		return netip.AddrPort{}, "DNAT to a range"
	case what&protoSpecified == 0:
		return netip.AddrPort{}, fmt.Sprintf("DNAT to %s, port unchanged", lo)
	}
	return netip.AddrPortFrom(lo, port), ""
}
