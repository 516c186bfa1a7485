package noderules

import (
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// flatBase is the flat layout as nft writes it: nothing of it comes from the
// program that writes it in the lab.
const flatBase = `
add table ip kconverge-flat
add chain ip kconverge-flat nat-output { type nat hook output priority -100; }
add chain ip kconverge-flat nat-prerouting { type nat hook prerouting priority -100; }
add chain ip kconverge-flat services
add chain ip kconverge-flat dispatch
add chain ip kconverge-flat short-circuit
add chain ip kconverge-flat reject-chain
add map ip kconverge-flat endpoints { typeof ip daddr . ip protocol . th dport . numgen random mod 9 : ip daddr . th dport; }
add map ip kconverge-flat short-circuit-endpoints { typeof ip daddr . ip protocol . th dport . numgen random mod 9 : ip daddr . th dport; }
add map ip kconverge-flat no-endpoints { type ipv4_addr . inet_proto . inet_service : verdict; }
add set ip kconverge-flat mod-1 { type ipv4_addr . inet_proto . inet_service; }
add set ip kconverge-flat mod-2 { type ipv4_addr . inet_proto . inet_service; }
add set ip kconverge-flat short-circuit-mod-2 { type ipv4_addr . inet_proto . inet_service; }
add rule ip kconverge-flat nat-output jump services
add rule ip kconverge-flat nat-prerouting jump services
add rule ip kconverge-flat services fib saddr type local jump short-circuit
add rule ip kconverge-flat services jump dispatch
add rule ip kconverge-flat reject-chain reject
add rule ip kconverge-flat dispatch ip daddr . meta l4proto . th dport @mod-1 dnat to ip daddr . meta l4proto . th dport . numgen random mod 1 map @endpoints
add rule ip kconverge-flat dispatch ip daddr . meta l4proto . th dport @mod-2 dnat to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints
add rule ip kconverge-flat short-circuit ip daddr . meta l4proto . th dport @short-circuit-mod-2 dnat to ip daddr . meta l4proto . th dport . numgen random mod 2 map @short-circuit-endpoints
`

// flatWeb has two endpoints under its ClusterIP, one of them on this node, where
// its NodePort leads.
const flatWeb = `
add element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 0 : 10.244.1.1 . 8080, 10.96.0.1 . tcp . 80 . 1 : 10.244.2.1 . 8080, 192.0.2.1 . tcp . 30080 . 0 : 10.244.1.1 . 8080 }
add element ip kconverge-flat short-circuit-endpoints { 192.0.2.1 . tcp . 30080 . 0 : 10.244.1.1 . 8080, 192.0.2.1 . tcp . 30080 . 1 : 10.244.2.1 . 8080 }
add element ip kconverge-flat mod-2 { 10.96.0.1 . tcp . 80 comment "default/web:http" }
add element ip kconverge-flat mod-1 { 192.0.2.1 . tcp . 30080 comment "default/web:http NodePort Local" }
add element ip kconverge-flat short-circuit-mod-2 { 192.0.2.1 . tcp . 30080 comment "default/web:http NodePort" }
add element ip kconverge-flat no-endpoints { 10.96.0.2 . udp . 53 comment "kube-system/dns" : goto reject-chain, 10.96.0.3 . tcp . 80 comment "default/here Local" : drop }
`

func TestTheFlatLayoutIsReadStepByStep(t *testing.T) {
	n := newNS(t)
	n.nft(t, flatBase+flatWeb)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	const (
		dns   = "kube-system/dns: UDP IPv4 Cluster [ClusterIP 10.96.0.2:53] ->\n"
		here  = "default/here: TCP IPv4 Local [ClusterIP 10.96.0.3:80] ->\n"
		web   = "default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.1:80] -> 10.244.1.1:8080 10.244.2.1:8080\n"
		local = "default/web:http TCP IPv4 Local [NodePort 0.0.0.0:30080] -> 10.244.1.1:8080\n"
	)
	for _, step := range []struct {
		what, script, want string
		unknown            []string
	}{
		{"at first", "", here + web + local + dns, nil},
		{"one endpoint replaced", `
			delete element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 1 }
			add element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 1 : 10.244.2.9 . 8080 }`,
			// The NodePort's short circuit still has the old one.
			here + strings.Replace(web, "10.244.2.1:8080", "10.244.2.1:8080 10.244.2.9:8080", 1) + local + dns, nil},
		{"and where the short circuit leads", `
			delete element ip kconverge-flat short-circuit-endpoints { 192.0.2.1 . tcp . 30080 . 1 }
			add element ip kconverge-flat short-circuit-endpoints { 192.0.2.1 . tcp . 30080 . 1 : 10.244.2.9 . 8080 }`,
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns, nil},
		{"an endpoint by hand that no number draws", `add element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 2 : 10.9.9.9 . 80 }`,
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns, []string{"map endpoints: 10.96.0.1 TCP 80 number 2: 10.9.9.9:80 is never chosen"}},
		{"it goes, and one that is drawn, too", `
			delete element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 2 }
			delete element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 0 }
			delete element ip kconverge-flat short-circuit-endpoints { 192.0.2.1 . tcp . 30080 . 0 }`,
			here + "default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.1:80] -> 10.244.2.9:8080\n" + local + dns,
			[]string{"map endpoints: 10.96.0.1 TCP 80 number 0 of 2 is missing", "map short-circuit-endpoints: 192.0.2.1 TCP 30080 number 0 of 2 is missing"}},
		{"back", `
			add element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 0 : 10.244.1.1 . 8080 }
			add element ip kconverge-flat short-circuit-endpoints { 192.0.2.1 . tcp . 30080 . 0 : 10.244.1.1 . 8080 }`,
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns, nil},
		{"a rule by hand", `add rule ip kconverge-flat dispatch ip daddr 10.96.0.1 tcp dport 80 dnat to 10.9.9.9:80`,
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns, []string{"chain dispatch: 10.9.9.9:80"}},
		{"a frontend of nobody", `
			add element ip kconverge-flat endpoints { 10.96.0.9 . tcp . 80 . 0 : 10.9.9.9 . 80 }
			add element ip kconverge-flat mod-1 { 10.96.0.9 . tcp . 80 }`,
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns,
			[]string{"chain dispatch: 10.9.9.9:80", `set mod-1: 10.96.0.9 TCP 80: comment "" does not name a Service port`}},
		{"the short circuit's rule goes", "flush chain ip kconverge-flat short-circuit\ndelete element ip kconverge-flat mod-1 { 10.96.0.9 . tcp . 80 }\ndelete element ip kconverge-flat endpoints { 10.96.0.9 . tcp . 80 . 0 }",
			here + strings.Replace(web, "2.1", "2.9", 1) + local + dns,
			[]string{
				"chain dispatch: 10.9.9.9:80",
				"map short-circuit-endpoints: 192.0.2.1 TCP 30080 number 0: 10.244.1.1:8080 is never chosen",
				"map short-circuit-endpoints: 192.0.2.1 TCP 30080 number 1: 10.244.2.9:8080 is never chosen",
				"set short-circuit-mod-2: 192.0.2.1 TCP 30080: no rule on a nat hook looks into the set",
			}},
		{"nothing leads there any more", "flush chain ip kconverge-flat services",
			here + dns, []string{
				"chain dispatch: 10.9.9.9:80",
				"chain dispatch: set mod-1 is looked into, but no nat hook leads there",
				"chain dispatch: set mod-2 is looked into, but no nat hook leads there",
			}},
		{"the table goes", "delete table ip kconverge-flat", "", nil},
	} {
		if step.script != "" {
			n.nft(t, step.script)
		}
		gen := vouched(t, n, s, c)
		events := upTo(c.all(), gen)
		if got := render(state(events)); got != step.want {
			t.Errorf("%s: got\n%swant\n%s", step.what, got, step.want)
		}
		var unknown []string
		for _, e := range events {
			unknown = e.Payload.(*collect.Rules).Unknown
		}
		if step.what == "nothing leads there any more" {
			for _, u := range step.unknown {
				if !slices.Contains(unknown, u) {
					t.Errorf("%s: no %q in %q", step.what, u, unknown)
				}
			}
			continue
		}
		if !slices.Equal(unknown, step.unknown) {
			t.Errorf("%s: unknown %q, want %q", step.what, unknown, step.unknown)
		}
	}
	first := upTo(c.all(), vouched(t, n, s, c))[0].Payload.(*collect.Rules)
	if first.Layout != "kconverge-flat" {
		t.Errorf("layout %q", first.Layout)
	}
}
