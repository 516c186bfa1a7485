package nodelog

import (
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

var aMarch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// staying is webPort with an endpoint and session affinity.
func staying(d time.Duration) collect.RulePort {
	p := webPort(netip.MustParseAddrPort("10.244.0.1:80"))
	p.Affinity = d
	return p
}

func limited(prefixes ...string) collect.RulePort {
	p := staying(0)
	for _, x := range prefixes {
		p.Sources = append(p.Sources, netip.MustParsePrefix(x))
	}
	return p
}

func keyed(p collect.RulePort) *collect.Keyframe {
	return &collect.Keyframe{Node: "node-1", Generation: 2, Ports: []collect.KeyPort{{RulePort: p, Digest: p.Digest(), N: len(p.Endpoints), Whole: true}}}
}

func rulesLine(seq uint64, baseline bool, ports ...collect.RulePort) collect.Event {
	return collect.Event{Seq: seq, At: aMarch.Add(time.Duration(seq) * time.Second), Payload: &collect.Rules{Node: "node-1", Generation: uint32(seq), Baseline: baseline, Ports: ports}}
}

func (v *viewer) only(want collect.RulePort) {
	v.t.Helper()
	if got := sorted(v.rules); len(got) != 1 || !got[0].Equal(&want) {
		v.t.Errorf("the viewer has %+v, want %+v", got, want)
	}
}

// Session affinity and source ranges that change while nobody looks on are in
// the baseline that a viewer gets.
func TestABaselineHasTheLatestAffinityAndSources(t *testing.T) {
	for _, now := range []collect.RulePort{staying(3 * time.Hour), limited("192.0.2.0/24")} {
		v := newViewer(t)
		s := newStream("node-1", v, newKnown(), nil, noClock)
		s.line(rulesLine(1, true, staying(0)), aMarch)
		s.line(rulesLine(2, false, now), aMarch)
		s.present(aMarch.Add(time.Minute))
		v.only(now)
	}
}

// A keyframe that differs in the affinity or the sources alone disagrees.
func TestAKeyframeTellsALostChangeOfAffinityOrSources(t *testing.T) {
	for _, now := range []collect.RulePort{staying(3 * time.Hour), limited("192.0.2.0/24")} {
		v := newViewer(t)
		s := newStream("node-1", v, newKnown(), nil, noClock)
		s.present(aMarch)
		s.line(rulesLine(1, true, staying(0)), aMarch)
		// Line 2 is lost.
		s.line(collect.Event{Seq: 3, At: aMarch.Add(3 * time.Second), Payload: keyed(now)}, aMarch.Add(3*time.Second))
		if len(v.gaps) != 1 || len(v.open()) != 0 {
			t.Errorf("gaps %+v", v.gaps)
		}
		v.only(now)
	}
}

// Nodes share a set only when they do the same.
func TestNodesThatDifferInAffinityOrSourcesShareNoSet(t *testing.T) {
	k := newKnown()
	for _, p := range []collect.RulePort{staying(0), staying(time.Hour), limited("192.0.2.0/24"), limited("192.0.2.0/24", "198.51.100.0/24")} {
		if kept := k.keep(p); !kept.RulePort.Equal(&p) {
			t.Errorf("kept %+v for %+v", kept.RulePort, p)
		}
	}
	empty := staying(0)
	empty.Sources = []netip.Prefix{}
	if none := staying(0); empty.Digest() != none.Digest() {
		t.Error("no sources as nil and as an empty list have two digests")
	}
}

// What an agent tells of a large port in several lines comes out as it was.
func TestAPortInSeveralLinesKeepsItsAffinityAndSources(t *testing.T) {
	n, v := newNode(t, "node-1", 5), newViewer(t)
	p := staying(3 * time.Hour)
	for i := range 400 {
		p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 245, byte(i >> 8), byte(i)}), 80))
	}
	for i := range 1200 {
		p.Sources = append(p.Sources, netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, byte(i >> 7), byte(i << 1)}), 32))
	}
	n.rules[p.RulePortKey] = p
	n.live(0)
	for _, from := range []int{0, lastRule(n.lines) + 1} { // from the rules, and from keyframes alone
		v = newViewer(t)
		s := n.stream(v)
		s.present(time.Now())
		feed(s, n.lines[from:])
		v.only(p)
	}
}
