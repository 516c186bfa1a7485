package nodes

import (
	"fmt"
	"net/netip"
	"slices"
)

// pool hands out a node's pod addresses, the one that has been free for the
// longest first, so that an address is used again as late as possible: a
// router that still holds an old address then meets nobody rather than another
// pod. Not safe for concurrent use.
type pool struct {
	cidrs []netip.Prefix
	free  []uint32 // numbers within the ranges; the front is next
	owner map[string]uint32
	// atOnce, when set, tells whether an address that is given back is the next one
	// to be given out.
	atOnce func() bool
}

// newPool serves as much of each range as a /24 has without its network address,
// .1 (a bridge's on real nodes) and its broadcast address.
func newPool(cidrs []netip.Prefix, atOnce func() bool) *pool {
	p := &pool{cidrs: cidrs, atOnce: atOnce, owner: map[string]uint32{}}
	for i := uint32(2); i < 255; i++ {
		p.free = append(p.free, i)
	}
	return p
}

// take returns the addresses of uid, one of each range with the same number
// within it; the same ones when it has some already.
func (p *pool) take(uid string) ([]netip.Addr, error) {
	n, ok := p.owner[uid]
	if !ok {
		if len(p.free) == 0 {
			return nil, fmt.Errorf("all %d pod addresses of %s are in use", len(p.owner), p.cidrs[0])
		}
		n = p.free[0]
		p.free = p.free[1:]
		p.owner[uid] = n
	}
	out := make([]netip.Addr, len(p.cidrs))
	for i, c := range p.cidrs {
		out[i] = add(c.Addr(), n)
	}
	return out, nil
}

// release gives back the addresses of uid, if it has some.
func (p *pool) release(uid string) {
	if a, ok := p.owner[uid]; ok {
		delete(p.owner, uid)
		if p.atOnce != nil && p.atOnce() {
			p.free = slices.Insert(p.free, 0, a)
			return
		}
		p.free = append(p.free, a)
	}
}
