package collect

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func prefixes(s string) (out []netip.Prefix) {
	for _, f := range strings.Fields(s) {
		out = append(out, netip.MustParsePrefix(f))
	}
	return out
}

func TestPrefixesBecomeTheFewestThatLetTheSameThrough(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"10.0.0.0/24 10.0.1.0/24", "10.0.0.0/23"},
		{"10.0.1.0/24 10.0.2.0/24", "10.0.1.0/24 10.0.2.0/24"},
		{"10.1.0.0/16 10.0.0.0/8 10.0.0.1/32", "10.0.0.0/8"},
		{"10.0.0.7/8", "10.0.0.0/8"},
		{"192.0.2.9/32 10.0.0.1/32 10.0.0.2/32 10.0.0.3/32", "10.0.0.1/32 10.0.0.2/31 192.0.2.9/32"},
		{"0.0.0.0/0 10.0.0.0/8", "0.0.0.0/0"},
		{"128.0.0.0/1 255.255.255.255/32 0.0.0.0/1", "0.0.0.0/0"},
		{"fd00::/8 fd00::1/128 fe80::/10", "fd00::/8 fe80::/10"},
		{"255.255.255.255/32 ::/128 ::1/128", "255.255.255.255/32 ::/127"},
	} {
		if got := CanonicalPrefixes(prefixes(c.in)); !slices.Equal(got, prefixes(c.want)) {
			t.Errorf("%s: %v, want %s", c.in, got, c.want)
		}
	}
}

func TestCanonicalPrefixesContainWhatTheFormerDid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var in []netip.Prefix
		for range r.IntN(6) {
			in = append(in, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(256))}), 24+r.IntN(9)))
		}
		out := CanonicalPrefixes(in)
		for last := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			has := func(p netip.Prefix) bool { return p.Contains(a) }
			if slices.ContainsFunc(in, has) != slices.ContainsFunc(out, has) {
				t.Fatalf("%v became %v, which differs about %s", in, out, a)
			}
		}
		if again := CanonicalPrefixes(slices.Clone(out)); !slices.Equal(again, out) {
			t.Fatalf("%v became %v, and that %v", in, out, again)
		}
	}
}
