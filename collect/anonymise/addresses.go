package anonymise

import (
	"crypto/aes"
	"crypto/cipher"
	"net/netip"
)

// addresses replaces addresses so that two share as many leading bits afterwards as
// before, by the method of Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-Preserving IP
// Address Anonymization, ICNP 2002): each bit is turned or not by a pseudo-random
// function of those before it. It is a permutation, so that different addresses stay
// different. Bits of the ranges that mean something to whoever routes are not turned.
type addresses struct {
	block cipher.Block
	cache map[netip.Addr]netip.Addr
}

func newAddresses(key [16]byte) addresses {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // not with 16 bytes
	}
	return addresses{block, map[netip.Addr]netip.Addr{}}
}

// ranges stay what they are: RFC 1918, 6598, 1122, 3927, 5771, 1112 and 4193, 4291.
var ranges = prefixes(
	"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "::ffff:0:0/96", "fc00::/7", "fe80::/10", "ff00::/8")

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// kept tells that an address is one that says nothing about a cluster and stays.
func kept(a netip.Addr) bool { return a.IsUnspecified() || a.IsLoopback() }

// replace gives the address in the place of a, which must have no zone.
func (x *addresses) replace(a netip.Addr) netip.Addr {
	if kept(a) {
		return a
	}
	if a.Is4In6() {
		four := x.replace(a.Unmap()).As16()
		return netip.AddrFrom16(four)
	}
	if b, ok := x.cache[a]; ok {
		return b
	}
	in := a.AsSlice()
	out := make([]byte, len(in))
	var before [aes.BlockSize]byte // the bits before this one
	for i := range len(in) * 8 {
		bit := in[i/8] >> (7 - i%8) & 1
		if !fixed(a, i) {
			var pad [aes.BlockSize]byte
			x.block.Encrypt(pad[:], before[:])
			pad[0] ^= byte(i) // so that prefixes of zeros differ by their length
			pad[1] ^= byte(len(in))
			x.block.Encrypt(pad[:], pad[:])
			bit ^= pad[0] & 1
		}
		out[i/8] |= bit << (7 - i%8)
		before[i/8] |= in[i/8] & (1 << (7 - i%8))
	}
	b, _ := netip.AddrFromSlice(out)
	x.cache[a] = b
	return b
}

// fixed tells that bit i leads to one of the ranges, or to what is none.
func fixed(a netip.Addr, i int) bool {
	for _, r := range ranges {
		if r.Bits() <= i || r.Addr().Is4() != a.Is4() {
			continue
		}
		if p, err := a.Prefix(i); err == nil && p.Contains(r.Addr()) {
			return true
		}
	}
	return false
}
