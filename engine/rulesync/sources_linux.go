package rulesync

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

// openInterval is nft's mark on an interval that runs to the last value: user
// data of type NFTNL_UDATA_SET_ELEM_FLAGS, 4 bytes, SET_ELEM_F_INTERVAL_OPEN.
var openInterval = []byte{1, 4, 1, 0, 0, 0}

// anonymousSet is the name that the kernel completes with a number.
const anonymousSet = "__set%d"

// firewallChain drops what comes from elsewhere than the port's sources: as
// kube-proxy writes it, "ip saddr != { … } drop", and in the form that nft gives
// that. One source is compared, several are intervals.
func (f family) firewallChain(p *Port, name string) chain {
	return chain{name, func(b *batch) {
		if len(p.Sources) == 1 {
			b.addRule(name, "", slices.Concat(f.inPrefix(partSaddr, p.Sources[0], true), one(drop()))...)
			return
		}
		b.setID++
		id := b.setID
		b.addSet(setSpec{
			name: anonymousSet, id: id, flags: unix.NFT_SET_ANONYMOUS | unix.NFT_SET_CONSTANT | unix.NFT_SET_INTERVAL,
			keyType: f.addrType, keyLen: f.addrLen,
		})
		b.elements(unix.NFT_MSG_NEWSETELEM, anonymousSet, id, f.intervals(p.Sources))
		b.addRule(name, "", slices.Concat(f.load(partSaddr), one(&expr.Lookup{SourceRegister: reg(0), SetName: anonymousSet, SetID: id, Invert: true}, drop()))...)
	}}
}

// intervals are the elements of a set of prefixes in nft's order, from the last
// to the first: where an interval ends, then where it starts. What lies before
// the first one is marked too.
func (f family) intervals(prefixes []netip.Prefix) []element {
	var out []element
	ranges := collect.RangesOf(prefixes)
	for _, r := range slices.Backward(ranges) {
		start := element{key: string(keyAddr(r.From))}
		if next := r.To.Next(); next.IsValid() {
			out = append(out, element{key: string(keyAddr(next)), flags: unix.NFT_SET_ELEM_INTERVAL_END})
		} else {
			start.userdata = openInterval
		}
		out = append(out, start)
	}
	if zero := make([]byte, f.addrLen); len(ranges) > 0 && string(keyAddr(ranges[0].From)) != string(zero) {
		out = append(out, element{key: string(zero), flags: unix.NFT_SET_ELEM_INTERVAL_END})
	}
	return out
}
