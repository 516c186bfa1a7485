package rulesync

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

// masqueradeMark is kube-proxy's packet mark for "masquerade on the way out"
// (--iptables-masquerade-bit, 14, in nftables mode too).
const masqueradeMark = 1 << 14

// nft's numbers of data types.
const (
	typeInteger = 4
	typeIPv4    = 7
	typeIPv6    = 8
	typeProto   = 12
	typeService = 13
	typeMark    = 19
)

// concat is the number of a concatenated type.
func concat(types ...uint32) uint32 {
	var out uint32
	for _, t := range types {
		out = out<<6 | t
	}
	return out
}

// family is what differs between the tables of the two IP families.
type family struct {
	name       collect.Family
	proto      byte
	addrType   uint32
	addrLen    uint32
	saddr      uint32 // offsets in the network header
	daddr      uint32
	rejectCode uint8 // "port unreachable"
}

var (
	familyIPv4 = family{collect.IPv4, unix.NFPROTO_IPV4, typeIPv4, 4, 12, 16, 3}
	familyIPv6 = family{collect.IPv6, unix.NFPROTO_IPV6, typeIPv6, 16, 8, 24, 4}
)

// protoNumber is the IP protocol number of a Service port.
func protoNumber(p collect.Protocol) byte {
	switch p {
	case collect.UDP:
		return unix.IPPROTO_UDP
	case collect.SCTP:
		return unix.IPPROTO_SCTP
	}
	return unix.IPPROTO_TCP
}

// reg is the register of the n-th 32-bit word: the first is the old register 1,
// as nft writes it.
func reg(word uint32) uint32 {
	if word == 0 {
		return unix.NFT_REG_1
	}
	return unix.NFT_REG32_00 + word
}

// Parts of a packet to be loaded side by side, each padded to 32-bit words.
type part int

const (
	partSaddr part = iota
	partDaddr
	partProto
	partDport
)

// load loads parts into consecutive registers, from the first one on.
func (f family) load(parts ...part) []expr.Any {
	var out []expr.Any
	word := uint32(0)
	for _, p := range parts {
		r := reg(word)
		switch p {
		case partSaddr:
			out = append(out, &expr.Payload{DestRegister: r, Base: expr.PayloadBaseNetworkHeader, Offset: f.saddr, Len: f.addrLen})
			word += f.addrLen / 4
		case partDaddr:
			out = append(out, &expr.Payload{DestRegister: r, Base: expr.PayloadBaseNetworkHeader, Offset: f.daddr, Len: f.addrLen})
			word += f.addrLen / 4
		case partProto:
			out = append(out, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: r})
			word++
		case partDport:
			out = append(out, &expr.Payload{DestRegister: r, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
			word++
		}
	}
	return out
}

// inSet matches when what is in the first register is in the set.
func inSet(name string) expr.Any { return &expr.Lookup{SourceRegister: reg(0), SetName: name} }

// vmap goes where the map sends what is in the first register.
func vmap(name string, id uint32) expr.Any {
	return &expr.Lookup{SourceRegister: reg(0), DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: name, SetID: id}
}

func jump(chain string) expr.Any { return &expr.Verdict{Kind: expr.VerdictJump, Chain: chain} }
func goTo(chain string) expr.Any { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }

// isProto matches the protocol.
func isProto(p collect.Protocol) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg(0), Data: []byte{protoNumber(p)}},
	}
}

// ctBit matches a bit of the connection's state or status.
func ctBit(key expr.CtKey, bit uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: key, Register: reg(0)},
		&expr.Bitwise{SourceRegister: reg(0), DestRegister: reg(0), Len: 4, Mask: host32(bit), Xor: host32(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg(0), Data: host32(0)},
	}
}

// Bits of conntrack (include/uapi/linux/netfilter/nf_conntrack_common.h).
const (
	ctStateNew   = 1 << 3
	ctStatusDNAT = 1 << 5
)

func ctNew() []expr.Any    { return ctBit(expr.CtKeySTATE, ctStateNew) }
func ctDNATed() []expr.Any { return ctBit(expr.CtKeySTATUS, ctStatusDNAT) }

// markMasquerade sets the mark, leaving its other bits.
func markMasquerade() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: reg(0)},
		&expr.Bitwise{SourceRegister: reg(0), DestRegister: reg(0), Len: 4, Mask: host32(^uint32(masqueradeMark)), Xor: host32(masqueradeMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: reg(0)},
	}
}

// clearMark matches marked packets and takes the mark off.
func clearMark() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: reg(0)},
		&expr.Bitwise{SourceRegister: reg(0), DestRegister: reg(0), Len: 4, Mask: host32(masqueradeMark), Xor: host32(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg(0), Data: host32(0)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: reg(0)},
		&expr.Bitwise{SourceRegister: reg(0), DestRegister: reg(0), Len: 4, Mask: host32(^uint32(0)), Xor: host32(masqueradeMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: reg(0)},
	}
}

func masquerade() expr.Any { return &expr.Masq{FullyRandom: true} }

func (f family) reject() expr.Any {
	return &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: f.rejectCode}
}

// inPrefix matches addresses inside a prefix, or outside with not. Whole bytes
// are compared directly, as nft does.
func (f family) inPrefix(which part, p netip.Prefix, not bool) []expr.Any {
	offset := f.saddr
	if which == partDaddr {
		offset = f.daddr
	}
	op := expr.CmpOpEq
	if not {
		op = expr.CmpOpNeq
	}
	addr := p.Masked().Addr().AsSlice()
	if n := p.Bits() / 8; p.Bits()%8 == 0 && n > 0 {
		return []expr.Any{
			&expr.Payload{DestRegister: reg(0), Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(n)},
			&expr.Cmp{Op: op, Register: reg(0), Data: addr[:n]},
		}
	}
	mask := make([]byte, f.addrLen)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		&expr.Payload{DestRegister: reg(0), Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.addrLen},
		&expr.Bitwise{SourceRegister: reg(0), DestRegister: reg(0), Len: f.addrLen, Mask: mask, Xor: make([]byte, f.addrLen)},
		&expr.Cmp{Op: op, Register: reg(0), Data: addr},
	}
}

// fromThisHost matches packets whose source address is the node's.
func fromThisHost() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: reg(0), ResultADDRTYPE: true, FlagSADDR: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg(0), Data: host32(unix.RTN_LOCAL)},
	}
}

// dnatTo sends a connection to one endpoint.
func (f family) dnatTo(ep netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: ep.Addr().AsSlice()},
		&expr.Immediate{Register: unix.NFT_REG_2, Data: net16(ep.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: unix.NFT_REG_1, RegProtoMin: unix.NFT_REG_2, Specified: true},
	}
}

// dnatToOne sends a connection to one of n endpoints that an anonymous map
// holds, by chance.
func (f family) dnatToOne(n int, mapID uint32) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: reg(0), Modulus: uint32(n), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: reg(0), DestRegister: reg(0), IsDestRegSet: true, SetName: anonymousMap, SetID: mapID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg(0), RegProtoMin: reg(f.addrLen / 4)},
	}
}

// anonymousMap is the name that the kernel completes with a number.
const anonymousMap = "__map%d"

func host32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func net16(v uint16) []byte  { return binary.BigEndian.AppendUint16(nil, v) }

// Keys of sets and maps: each part padded to 32-bit words.
func keyAddr(a netip.Addr) []byte        { return a.AsSlice() }
func keyProto(p collect.Protocol) []byte { return []byte{protoNumber(p), 0, 0, 0} }
func keyPort(p uint16) []byte            { return append(net16(p), 0, 0) }
func addrPortValue(ep netip.AddrPort) []byte {
	return append(keyAddr(ep.Addr()), keyPort(ep.Port())...)
}
