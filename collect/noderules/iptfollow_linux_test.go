package noderules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kconverge/kconverge/collect"
)

// shuffled changes a few Services at random.
func shuffled(r *rand.Rand, services []*iptService) []*iptService {
	for range 1 + r.IntN(3) {
		s := services[r.IntN(len(services))]
		s.local, s.affinity = r.IntN(3) == 0, r.IntN(4) == 0
		s.nodePort, s.lb, s.ranges = 0, "", nil
		at := slices.Index(services, s)
		if r.IntN(2) == 0 {
			s.nodePort = 30100 + at
		}
		if r.IntN(3) == 0 {
			s.lb = fmt.Sprintf("192.0.2.%d", at+1)
			for range r.IntN(3) {
				s.ranges = append(s.ranges, fmt.Sprintf("203.0.113.%d/%d", 16*r.IntN(3), 28+r.IntN(5)))
			}
		}
		s.endpoints = nil
		for _, i := range r.Perm(6)[:r.IntN(5)] {
			s.endpoints = append(s.endpoints, fmt.Sprintf("10.244.%d.%d:%d", i%3, at*10+i, 8080+i%2))
		}
	}
	var out []*iptService
	for _, s := range services {
		if r.IntN(8) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// TestIPTablesAreFollowed compares, after each of many random syncs, what a
// follower believes with a fresh dump and with iptables-save.
func TestIPTablesAreFollowed(t *testing.T) {
	for _, k := range iptKinds {
		t.Run(k.layout, func(t *testing.T) {
			n := newNS(t)
			s, c := start(t, Options{Node: "n", NetNS: n.fd, Poll: 5 * time.Millisecond})
			c.wait(t, 0, isSynced)
			n.restore(t, k.program, "iptables-restore", iptBase)
			services := iptEveryKind()
			r := rand.New(rand.NewPCG(1, 2))
			last := &iptService{name: "default/last", proto: "tcp", vip: "10.96.9.9"}
			for i := range 60 {
				large := i%2 == 1
				last.endpoints = []string{fmt.Sprintf("10.244.9.9:%d", 1000+i)}
				n.restore(t, k.program, "iptables-restore", iptRules(large, append(shuffled(r, services), last)...))
				if i%10 == 5 {
					n.restore(t, k.program, "iptables-restore", staleChains(t, n, k.program))
				}
				// The nat table is written after the filter table: whoever has
				// the last Service has everything.
				c.wait(t, 0, func(e collect.Event) bool {
					p, ok := e.Payload.(*collect.Rules)
					return ok && slices.ContainsFunc(p.Ports, func(p collect.RulePort) bool {
						return p.Service == "last" && len(p.Endpoints) == 1 && p.Endpoints[0].Port() == uint16(1000+i)
					})
				})
				vouched(t, n, s, c)
				want := render(n.saved(t, k.program))
				if diff := cmp.Diff(want, render(state(c.all()))); diff != "" {
					t.Fatalf("sync %d (-iptables-save +followed):\n%s", i, diff)
				}
				fresh := read(t, n)
				if diff := cmp.Diff(want, render(fresh.Ports)); diff != "" || len(fresh.Unknown) > 0 {
					t.Fatalf("sync %d (-iptables-save +dumped), unknown %q:\n%s", i, fresh.Unknown, diff)
				}
			}
			for _, e := range c.all() {
				switch p := e.Payload.(type) {
				case *collect.Gap:
					t.Errorf("gap %+v", p)
				case *collect.Rules:
					if len(p.Unknown) > 0 {
						t.Errorf("unknown %q", p.Unknown)
					}
				}
			}
		})
	}
}

// staleChains deletes chains of Services that nothing leads to, as kube-proxy
// does from time to time.
func staleChains(t *testing.T, n testNS, program string) string {
	t.Helper()
	saved := string(n.run(t, "", program, "iptables-save", "-t", "nat"))
	var flush, drop strings.Builder
	for l := range strings.Lines(saved) {
		name, ok := strings.CutPrefix(l, ":KUBE-S")
		name, _, _ = strings.Cut("KUBE-S"+name, " ")
		if role, _ := iptParseChain(name); ok && role != iptOther && !strings.Contains(saved, "-j "+name+"\n") {
			fmt.Fprintf(&flush, ":%s - [0:0]\n", name)
			fmt.Fprintf(&drop, "-X %s\n", name)
		}
	}
	return "*nat\n" + flush.String() + drop.String() + "COMMIT\n"
}

func TestAChangeOfLegacyIPTablesLiesBetweenTwoLooks(t *testing.T) {
	const program = "xtables-legacy-multi"
	n := newNS(t)
	n.restore(t, program, "iptables-restore", iptBase)
	web := &iptService{name: "default/web", proto: "tcp", vip: "10.96.0.10", endpoints: []string{"10.244.0.3:8080"}}
	n.restore(t, program, "iptables-restore", iptRules(false, web))
	s, c := start(t, Options{Node: "n", NetNS: n.fd, Poll: 20 * time.Millisecond})
	c.wait(t, 0, isSynced)
	first := c.all()[0]
	if r := first.Payload.(*collect.Rules); !r.Baseline || r.Layout != "kube-proxy-iptables-legacy" || len(r.Ports) != 1 || !first.NotBefore.IsZero() {
		t.Fatalf("first event %+v", first)
	}
	// Another endpoint with as many rules of the same size, and other counters.
	web.endpoints = []string{"10.244.0.4:8080"}
	before := time.Now()
	n.restore(t, program, "iptables-restore", iptRules(false, web))
	after := time.Now()
	e, i := c.wait(t, 1, isRules)
	r := e.Payload.(*collect.Rules)
	if got := render(r.Ports); got != "default/web: TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.4:8080\n" || r.Baseline {
		t.Errorf("got %s", got)
	}
	if e.NotBefore.IsZero() || e.NotBefore.After(after) || e.At.Before(before) {
		t.Errorf("changed in [%s, %s], said to be in [%s, %s]", before, after, e.NotBefore, e.At)
	}
	// What is vouched for never includes a time that was not looked at.
	s.Vouch()
	c.wait(t, i+1, func(e collect.Event) bool {
		v, ok := e.Payload.(*collect.Vouch)
		return ok && v.Until.After(after)
	})
	// The same rules written again are no change.
	count := len(c.all())
	n.restore(t, program, "iptables-restore", iptRules(false, web))
	again := time.Now()
	s.Vouch()
	c.wait(t, count, func(e collect.Event) bool {
		if isRules(e) {
			t.Errorf("event %+v", e.Payload)
		}
		if v, ok := e.Payload.(*collect.Vouch); ok && v.Until.After(again) {
			return true
		}
		s.Vouch()
		return false
	})
}

// TestAChangeOfModeIsOneLayoutGoingAndAnotherComing goes through every change of
// mode the way kube-proxy does: first it removes what the mode before left.
func TestAChangeOfModeIsOneLayoutGoingAndAnotherComing(t *testing.T) {
	const web = "default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.3:8080 10.244.1.3:8080 10.244.2.3:8080\n"
	webOnly := &iptService{name: "default/web", port: "http", proto: "tcp", vip: "10.96.0.10", endpoints: []string{"10.244.0.3:8080", "10.244.1.3:8080", "10.244.2.3:8080"}}
	n := newNS(t)
	_, c := start(t, Options{Node: "n", NetNS: n.fd, Poll: 5 * time.Millisecond})
	c.wait(t, 0, isSynced)
	type mode struct {
		layout    string
		come, go_ func()
	}
	iptables := func(program, layout string) mode {
		return mode{layout,
			func() {
				n.restore(t, program, "iptables-restore", iptBase)
				n.restore(t, program, "iptables-restore", iptRules(false, webOnly))
			},
			func() { // CleanupLeftovers of pkg/proxy/iptables
				n.run(t, "", program, "iptables", "-t", "nat", "-F")
				n.run(t, "", program, "iptables", "-t", "nat", "-X")
				n.run(t, "", program, "iptables", "-F")
				n.run(t, "", program, "iptables", "-X")
			},
		}
	}
	nft := mode{"kube-proxy-nftables",
		func() {
			n.nft(t, fixture(t, "kube-proxy-1.37-base-ip.nft")+
				"add chain ip kube-proxy "+webChain+"\nadd element ip kube-proxy cluster-ips { 10.96.0.10 }\n"+
				"add element ip kube-proxy service-ips { 10.96.0.10 . tcp . 80 : goto "+webChain+" }\n"+
				"add rule ip kube-proxy "+webChain+" meta l4proto tcp dnat ip addr . port to numgen random mod 3 map { 0 : 10.244.0.3 . 8080 , 1 : 10.244.1.3 . 8080 , 2 : 10.244.2.3 . 8080 }\n")
		},
		func() { n.nft(t, "delete table ip kube-proxy") },
	}
	inNFT, legacy := iptables("xtables-nft-multi", "kube-proxy-iptables-nft"), iptables("xtables-legacy-multi", "kube-proxy-iptables-legacy")
	from := 1
	for i, m := range []mode{nft, inNFT, nft, legacy, inNFT, legacy, nft} {
		m.come()
		_, at := c.wait(t, from, func(e collect.Event) bool {
			p, ok := e.Payload.(*collect.Rules)
			return ok && p.Layout == m.layout && render(p.Ports) == web
		})
		if got := render(state(c.all()[:at+1])); got != web {
			t.Errorf("mode %d: %s", i, got)
		}
		m.go_()
		_, at = c.wait(t, at+1, func(e collect.Event) bool {
			p, ok := e.Payload.(*collect.Rules)
			if ok && p.Layout != m.layout && p.Layout != "" {
				t.Errorf("mode %d: layout %q while %q goes", i, p.Layout, m.layout)
			}
			return ok && p.Layout == "" && p.NoLayout == "no rules of kube-proxy in either family"
		})
		if got := render(state(c.all()[:at+1])); got != "" {
			t.Errorf("mode %d, gone: %s", i, got)
		}
		from = at + 1
	}
	for _, e := range c.all() {
		if p, ok := e.Payload.(*collect.Rules); ok && len(p.Unknown) > 0 {
			t.Errorf("unknown %q in layout %q", p.Unknown, p.Layout)
		}
	}
}

func TestOfTwoLayoutsAtOnceOneIsToldOf(t *testing.T) {
	n := kubeProxyNS(t)
	want := fixture(t, "kube-proxy-1.37-services-ip.want")
	n.restore(t, "xtables-nft-multi", "iptables-restore", iptBase)
	n.restore(t, "xtables-nft-multi", "iptables-restore", iptRules(false, iptEveryKind()...))
	got := read(t, n)
	if diff := cmp.Diff(want, render(got.Ports)); diff != "" || got.Layout != "kube-proxy-nftables" {
		t.Errorf("layout %q (-want +got):\n%s", got.Layout, diff)
	}
	if diff := cmp.Diff([]string{"rules of kube-proxy-iptables-nft are there as well, 12 Service ports: left from another mode of kube-proxy? They may take connections too"}, got.Unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The one goes, and what the other has is told of in that very generation.
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	r := step(t, n, s, c, "delete table ip kube-proxy")
	if r == nil || r.Layout != "kube-proxy-iptables-nft" || len(r.Unknown) > 0 {
		t.Fatalf("event %+v", r)
	}
	if diff := cmp.Diff(iptEveryKindWant, render(state(c.all()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
