package collect

import (
	"net/netip"
	"slices"
)

// AddrRange is the addresses from From to To, both included and of one family.
type AddrRange struct {
	From, To netip.Addr
}

// RangeOf is the range of a prefix's addresses.
func RangeOf(p netip.Prefix) AddrRange {
	from := p.Masked().Addr()
	b := from.AsSlice()
	for i := p.Bits(); i < from.BitLen(); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	to, _ := netip.AddrFromSlice(b)
	return AddrRange{from, to}
}

// RangesOf is the union of the prefixes as ranges that neither overlap nor
// touch, in order.
func RangesOf(prefixes []netip.Prefix) []AddrRange {
	out := make([]AddrRange, len(prefixes))
	for i, p := range prefixes {
		out[i] = RangeOf(p)
	}
	return MergeRanges(out)
}

// MergeRanges is the union of the ranges as ranges that neither overlap nor
// touch, in order. The argument is sorted in place.
func MergeRanges(ranges []AddrRange) []AddrRange {
	slices.SortFunc(ranges, func(a, b AddrRange) int { return a.From.Compare(b.From) })
	var out []AddrRange
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1].From.BitLen() == r.From.BitLen() {
			last := &out[n-1]
			// Next is invalid behind the family's last address, and sorts
			// before everything: the last range then covers all that follow.
			if next := last.To.Next(); !next.IsValid() || r.From.Compare(next) <= 0 {
				if last.To.Less(r.To) {
					last.To = r.To
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// PrefixesOf is the ranges as the fewest prefixes, in order, when the ranges
// come from MergeRanges.
func PrefixesOf(ranges []AddrRange) []netip.Prefix {
	var out []netip.Prefix
	for _, r := range ranges {
		for from := r.From; from.IsValid() && from.Compare(r.To) <= 0; {
			// The longest run that begins here and ends in the range.
			bits := from.BitLen()
			for bits > 0 {
				wider, err := from.Prefix(bits - 1)
				if err != nil || wider.Addr() != from || r.To.Less(RangeOf(wider).To) {
					break
				}
				bits--
			}
			p := netip.PrefixFrom(from, bits)
			out = append(out, p)
			from = RangeOf(p).To.Next()
		}
	}
	return out
}

// CanonicalPrefixes is the union of the prefixes as the fewest prefixes, in
// order: two lists that let the same addresses through become equal.
func CanonicalPrefixes(prefixes []netip.Prefix) []netip.Prefix {
	return PrefixesOf(RangesOf(prefixes))
}
