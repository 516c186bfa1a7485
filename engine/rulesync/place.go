package rulesync

import (
	"net/netip"
	"slices"
)

// place puts endpoints into the numbered places of a list with as few changes as
// possible: who stays keeps its place, who is new takes the place of one that
// goes, and where fewer come than go the last ones move into the places left, so
// that the numbers stay without holes. want has no duplicates; an entry of had
// that is not in want, or there for a second time, is a place to fill.
func place(had, want []netip.AddrPort) []netip.AddrPort {
	missing := make(map[netip.AddrPort]bool, len(want))
	for _, ep := range want {
		missing[ep] = true
	}
	out := slices.Clone(had)
	var holes []int
	for i, ep := range out {
		if missing[ep] {
			delete(missing, ep)
		} else {
			holes = append(holes, i)
		}
	}
	for _, ep := range want {
		switch {
		case !missing[ep]:
		case len(holes) > 0:
			out[holes[0]], holes = ep, holes[1:]
		default:
			out = append(out, ep)
		}
	}
	// From the last hole on, so that what moves is never a hole itself.
	for _, i := range slices.Backward(holes) {
		last := len(out) - 1
		out[i] = out[last]
		out = out[:last]
	}
	return out
}
