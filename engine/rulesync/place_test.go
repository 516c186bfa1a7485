package rulesync

import (
	"net/netip"
	"slices"
	"testing"
)

func TestPlacesChangeAsLittleAsPossible(t *testing.T) {
	list := func(names string) []netip.AddrPort {
		var out []netip.AddrPort
		for _, n := range names {
			if n == '-' {
				out = append(out, netip.AddrPort{})
				continue
			}
			out = append(out, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 80))
		}
		return out
	}
	for _, c := range []struct{ what, had, want, places string }{
		{"the first ones", "", "abc", "abc"},
		{"nothing changes", "bca", "abc", "bca"},
		{"a replacement takes the place", "abc", "acx", "axc"},
		{"two replacements", "abcd", "bdxy", "xbyd"},
		{"growing adds at the end", "ba", "abc", "bac"},
		{"the last moves into the place left", "abcd", "acd", "adc"},
		{"the last goes", "abc", "ab", "ab"},
		{"the first and the last go", "abcd", "bc", "cb"},
		{"fewer come than go", "abcd", "dx", "xd"},
		{"all go", "abc", "", ""},
		{"all are others", "abc", "xyz", "xyz"},
		{"a hole is filled", "a-c", "acx", "axc"},
		{"a hole goes", "a-c", "ac", "ac"},
		{"an endpoint twice", "aba", "ab", "ab"},
	} {
		had := list(c.had)
		got := place(had, list(c.want))
		if !slices.Equal(got, list(c.places)) {
			t.Errorf("%s: %q to %q: got %v, want %q", c.what, c.had, c.want, got, c.places)
		}
		if !slices.Equal(had, list(c.had)) {
			t.Errorf("%s: what was there before was changed", c.what)
		}
	}
}
