package apiserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

var errAllocated = errors.New("provided IP is already allocated")

// addresses are the ClusterIPs of one family
// (pkg/registry/core/service/ipallocator). Safe for concurrent use.
type addresses struct {
	prefix netip.Prefix
	pool   *pool // of offsets from the prefix's first address
}

// newAddresses gives out the addresses of a range of at most 32 bits, less its
// first one and, in IPv4, its last.
func newAddresses(cidr string) *addresses {
	prefix := netip.MustParsePrefix(cidr)
	last := uint32(1)<<(prefix.Addr().BitLen()-prefix.Bits()) - 1
	if prefix.Addr().Is4() {
		last-- // the broadcast address
	}
	return &addresses{prefix: prefix, pool: newPool(1, 1+serviceIPsByHand, last)}
}

// any holds and returns a free address; ok is false when all are held.
func (a *addresses) any() (ip string, ok bool) {
	n, ok := a.pool.any()
	if !ok {
		return "", false
	}
	b := a.prefix.Addr().AsSlice()
	low := b[len(b)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+n)
	addr, _ := netip.AddrFromSlice(b)
	return addr.String(), true
}

// take holds the address that somebody asks for.
func (a *addresses) take(ip string) error {
	n, err := a.offset(ip)
	if err != nil {
		return err
	}
	if !a.pool.take(n) {
		return errAllocated
	}
	return nil
}

// free gives an address back; one that was never taken is left alone.
func (a *addresses) free(ip string) {
	if n, err := a.offset(ip); err == nil {
		a.pool.free(n)
	}
}

func (a *addresses) offset(ip string) (uint32, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return 0, fmt.Errorf("must be an IP address, or None")
	}
	if a.prefix.Contains(addr) {
		b, base := addr.AsSlice(), a.prefix.Addr().AsSlice()
		n := binary.BigEndian.Uint32(b[len(b)-4:]) - binary.BigEndian.Uint32(base[len(base)-4:])
		if a.pool.contains(n) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, a.prefix)
}
