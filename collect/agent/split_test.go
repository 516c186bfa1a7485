package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// wide is a port with many of everything, whose texts are as long as they get.
func wide(sources int) collect.RulePort {
	p := port("a-name-that-is-as-long-as-the-name-of-a-service-can-be-at-most-63", 400)
	p.Affinity = 3 * time.Hour
	for i := range sources {
		a := netip.AddrFrom16([16]byte{0xfd, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, byte(0x10 + i>>8), byte(i)})
		p.Sources = append(p.Sources, netip.PrefixFrom(a, 128))
	}
	return p
}

// Whatever has to be told in several lines: each is short enough for a container
// runtime, and has all of the head.
func TestLongEventsAreCutIntoShortLinesWithAllOfTheHead(t *testing.T) {
	p := wide(1200)
	many := make([]string, 200)
	for i := range many {
		many[i] = "chain service-ABCDEFGH-default/web/tcp/http: 10.1.2.3:80 leads to no Service that is known, as far as the rules tell"
	}
	lines := func(payload collect.Payload) []collect.Event {
		t.Helper()
		out, err := split(collect.Event{At: time.Now(), Source: collect.RulesSource("node-1"), Object: collect.ObjectKey{Kind: "Node", Name: "node-1"}, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		if len(out) < 2 {
			t.Errorf("%d lines", len(out))
		}
		for _, e := range out {
			if n, err := length(e); err != nil || n > MaxLine {
				t.Errorf("a line of %d bytes, error %v", n, err)
			}
		}
		return out
	}
	check := func(got collect.RulePort, sources *[]netip.Prefix) {
		if got.Affinity != p.Affinity {
			t.Errorf("a part with affinity %s", got.Affinity)
		}
		*sources = append(*sources, got.Sources...)
	}
	var sources []netip.Prefix
	for _, e := range lines(&collect.Rules{Node: "node-1", Generation: 7, NoLayout: "nothing", Ignored: 3, Ports: []collect.RulePort{p}, Unknown: many}) {
		r := e.Payload.(*collect.Rules)
		if r.NoLayout != "nothing" || r.Ignored != 3 || r.Generation != 7 {
			t.Errorf("a part with head %+v", r)
		}
		for _, got := range r.Ports {
			check(got, &sources)
		}
	}
	if len(sources) != 1200 {
		t.Errorf("%d sources of 1200", len(sources))
	}
	sources = nil
	for _, e := range lines(&collect.Keyframe{Node: "node-1", Ports: []collect.KeyPort{{RulePort: p, Digest: p.Digest(), N: 400, Whole: true}}}) {
		for _, got := range e.Payload.(*collect.Keyframe).Ports {
			check(got.RulePort, &sources)
		}
	}
	if len(sources) != 1200 {
		t.Errorf("%d sources of 1200 in a keyframe", len(sources))
	}
}

// What cannot be cut is not printed all the same.
func TestWhatCannotBeCutIsAnError(t *testing.T) {
	_, err := split(collect.Event{Source: "agent/node-1", Payload: &collect.AgentState{Node: "node-1", Version: string(make([]byte, MaxLine))}})
	if err == nil {
		t.Error("no error")
	}
}

// A keyframe that tells a port by its digest leaves out its sources, too.
func TestAKeyframeLeavesOutTheSourcesOfWhatItDoesNotTellInWhole(t *testing.T) {
	q := newQueue("node-1", collect.SystemClock{}, queueLimit)
	a, b := wide(1200), wide(1200)
	b.Service = "b"
	q.Emit(rulesEvent(1, true, a, b))
	q.keyframe()
	events, _ := q.take()
	whole := 0
	for _, p := range events[1].Payload.(*collect.Keyframe).Ports {
		switch {
		case p.Whole:
			whole++
		case len(p.Sources) > 0:
			t.Errorf("%s: %d sources beside the digest", p.Service, len(p.Sources))
		}
	}
	if whole != 1 {
		t.Errorf("%d of 2 large ports in one keyframe", whole)
	}
}
