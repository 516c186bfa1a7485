package noderules

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
)

var (
	webChain    = chainName("service", "default/web/tcp/http")
	oneChain    = chainName("service", "default/one/tcp/")
	stickyChain = chainName("service", "shop/sticky/tcp/http")
)

func TestReadShowsServicesOfEveryKind(t *testing.T) {
	for _, family := range []string{"ip", "ip6"} {
		t.Run(family, func(t *testing.T) {
			n := newNS(t)
			n.nft(t, fixture(t, "kube-proxy-1.37-base-"+family+".nft"))
			n.nft(t, fixture(t, "kube-proxy-1.37-services-"+family+".nft"))
			got, err := Read(context.Background(), Options{Node: "node-1", NetNS: n.fd})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fixture(t, "kube-proxy-1.37-services-"+family+".want"), render(got.Ports)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(render(nftwitness.Ports(t, n.list(t))), render(got.Ports)); diff != "" {
				t.Errorf("(-nft +got):\n%s", diff)
			}
			if got.Node != "node-1" || !got.Baseline || got.Layout != "kube-proxy-nftables" || len(got.Unknown) > 0 || got.Generation == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheFirstEventsAreTheBaselineAndSynced(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "node-1", NetNS: n.fd})
	_, i := c.wait(t, 0, isSynced)
	gen := vouched(t, n, s, c)
	events := c.all()
	if i != 1 {
		t.Fatalf("synced is event %d, want 1", i)
	}
	r, ok := events[0].Payload.(*collect.Rules)
	if !ok || !r.Baseline || r.Generation != gen || !events[0].NotBefore.IsZero() {
		t.Errorf("first event %+v", events[0].Payload)
	}
	want := fixture(t, "kube-proxy-1.37-services-ip.want")
	if diff := cmp.Diff(want, render(r.Ports)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	st := events[1].Payload.(*collect.SourceState)
	if st.Count != strings.Count(want, "\n") || !strings.HasPrefix(st.Detail, "receive buffer ") {
		t.Errorf("state %+v", st)
	}
	for _, e := range events {
		if e.Source != "rules/node-1" || e.Object != (collect.ObjectKey{Kind: "Node", Name: "node-1"}) || e.At.IsZero() {
			t.Errorf("event %+v", e)
		}
		if _, err := collect.Marshal(e); err != nil {
			t.Error(err)
		}
	}
}

// step runs one transaction and returns the Rules event that it caused.
func step(t *testing.T, n testNS, s *Source, c *collector, script string) *collect.Rules {
	t.Helper()
	from := len(c.all())
	n.nft(t, script)
	gen := vouched(t, n, s, c)
	var found *collect.Rules
	for _, e := range c.all()[from:] {
		switch p := e.Payload.(type) {
		case *collect.Rules:
			if found != nil {
				t.Fatalf("two Rules events for one transaction: %+v, %+v", found, p)
			}
			found = p
			// On a busy machine the receiver may know an interval only; a resync
			// would show as a gap.
			if p.Generation != gen || p.Baseline || e.NotBefore.After(e.At) {
				t.Errorf("event %+v", e)
			}
		case *collect.Gap:
			t.Errorf("gap %+v", p)
		}
	}
	return found
}

func TestATransactionGivesOneEventWithTheWholeStateOfWhatItChanged(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	for _, tt := range []struct{ name, script, want string }{
		{
			"the map of a chain is replaced under the same name",
			`flush chain ip kube-proxy ` + webChain + `
			 add rule ip kube-proxy ` + webChain + ` meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.3 . 8080 , 1 : 10.244.2.4 . 8080 }`,
			"default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.1.3:8080 10.244.2.4:8080\n",
		},
		{
			"two chains swap their maps' contents and so the maps' names",
			`flush chain ip kube-proxy ` + webChain + `
			 flush chain ip kube-proxy ` + oneChain + `
			 add rule ip kube-proxy ` + oneChain + ` meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.3 . 8080 , 1 : 10.244.2.4 . 8080 }
			 add rule ip kube-proxy ` + webChain + ` meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.0.4 . 8080 , 1 : 10.244.0.5 . 8080 }`,
			"default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] -> 10.244.1.3:8080 10.244.2.4:8080\n" +
				"default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.4:8080 10.244.0.5:8080\n",
		},
		{
			"one endpoint is left",
			`flush chain ip kube-proxy ` + webChain + `
			 add rule ip kube-proxy ` + webChain + ` meta l4proto tcp dnat to 10.244.0.4:8080`,
			"default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.4:8080\n",
		},
		{
			"none is left: the chain is emptied and the address rejected",
			`flush chain ip kube-proxy ` + webChain + `
			 delete element ip kube-proxy service-ips { 10.96.0.10 . tcp . 80 }
			 add element ip kube-proxy no-endpoint-services { 10.96.0.10 . tcp . 80 comment "default/web:http" : goto reject-chain }`,
			"default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] ->\n",
		},
		{"the empty chain is deleted later", `delete chain ip kube-proxy ` + webChain, ""},
		{
			"the Service goes",
			`delete element ip kube-proxy no-endpoint-services { 10.96.0.10 . tcp . 80 }
			 delete element ip kube-proxy cluster-ips { 10.96.0.10 }`,
			"default/web:http TCP IPv4 Cluster [] ->\n",
		},
		{
			"the chain of an address is emptied by hand",
			`flush chain ip kube-proxy ` + oneChain,
			"default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] ->\n",
		},
		{
			"an endpoint of a Service with session affinity goes",
			`flush chain ip kube-proxy ` + stickyChain + `
			 add rule ip kube-proxy ` + stickyChain + ` numgen random mod 1 vmap { 0 : goto ` + chainName("endpoint", "shop/sticky/tcp/http__10.244.1.9/8080") + ` }`,
			"shop/sticky:http TCP IPv4 Cluster [ClusterIP 10.96.0.16:80] -> 10.244.1.9:8080\n",
		},
		{
			"an endpoint's chain is rewritten",
			`flush chain ip kube-proxy ` + chainName("endpoint", "shop/sticky/tcp/http__10.244.1.9/8080") + `
			 add rule ip kube-proxy ` + chainName("endpoint", "shop/sticky/tcp/http__10.244.1.9/8080") + ` meta l4proto tcp dnat to 10.244.1.99:8080`,
			"shop/sticky:http TCP IPv4 Cluster [ClusterIP 10.96.0.16:80] -> 10.244.1.99:8080\n",
		},
		{"the same rules are written again", `flush chain ip kube-proxy ` + webRewrite, ""},
		{
			"nothing looks into the map of addresses any more",
			`flush chain ip kube-proxy services
			 add rule ip kube-proxy services fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports`,
			"default/one: TCP IPv4 Cluster [] ->\n" +
				"kube-system/dns:dns UDP IPv4 Cluster [] ->\n" +
				"kube-system/dns:dns-tcp TCP IPv4 Cluster [] ->\n" +
				"shop/cart:http TCP IPv4 Cluster [NodePort 0.0.0.0:30080] -> 10.244.0.6:9000 10.244.1.6:9000\n" +
				"shop/edge:https TCP IPv4 Cluster [] -> 10.244.0.7:8443 10.244.1.7:8443\n" +
				"shop/far:https TCP IPv4 Cluster [] -> 10.244.1.8:8443\n" +
				"shop/sticky:http TCP IPv4 Cluster [] ->\n",
		},
		{
			"the table is deleted",
			`delete table ip kube-proxy`,
			"shop/cart:http TCP IPv4 Cluster [] ->\n" +
				"shop/edge:https TCP IPv4 Cluster [] ->\n" +
				"shop/edge:https TCP IPv4 Local [] ->\n" +
				"shop/empty:http TCP IPv4 Cluster [] ->\n" +
				"shop/far:https TCP IPv4 Cluster [] ->\n" +
				"shop/far:https TCP IPv4 Local [] ->\n" +
				"shop/inside: TCP IPv4 Local [] ->\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := step(t, n, s, c, tt.script)
			got := ""
			if r != nil {
				got = render(r.Ports)
				if r.Process != "nft" || r.PID == 0 {
					t.Errorf("written by %q, pid %d", r.Process, r.PID)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// webRewrite rewrites a chain with what it holds.
var webRewrite = chainName("service", "shop/cart/tcp/http") + `
add rule ip kube-proxy ` + chainName("service", "shop/cart/tcp/http") + ` meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.6 . 9000 , 1 : 10.244.0.6 . 9000 }`

func TestHandMadeRulesShowAndGo(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	const web = "default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.3:8080 10.244.1.3:8080 10.244.2.3:8080"
	for _, tt := range []struct{ name, script, web, unknown string }{
		{"an endpoint more in a Service's chain",
			`add rule ip kube-proxy ` + webChain + ` meta l4proto tcp dnat to 10.9.9.9:80`,
			strings.Replace(web, "->", "-> 10.9.9.9:80", 1), ""},
		{"the same for another protocol leads nowhere",
			`add rule ip kube-proxy ` + webChain + ` meta l4proto udp dnat to 10.9.9.8:80`,
			strings.Replace(web, "->", "-> 10.9.9.9:80", 1),
			"chain " + webChain + ": 10.9.9.8:80, for IP protocol 17"},
		{"an endpoint outside of any Service",
			`add rule ip kube-proxy services ip daddr 192.0.2.1 tcp dport 80 dnat to 10.9.9.7:80`,
			"", "chain services: 10.9.9.7:80"},
		{"a chain of its own behind a Service's",
			`add chain ip kube-proxy mine
			 add rule ip kube-proxy mine meta l4proto tcp dnat to 10.9.9.6:80
			 add rule ip kube-proxy ` + webChain + ` goto mine`,
			strings.Replace(web, "->", "-> 10.9.9.6:80 10.9.9.9:80", 1),
			"chain mine: 10.9.9.6:80"},
		{"that chain changes",
			`flush chain ip kube-proxy mine
			 add rule ip kube-proxy mine meta l4proto tcp dnat to 10.9.9.5:80`,
			strings.Replace(web, "->", "-> 10.9.9.5:80 10.9.9.9:80", 1),
			"chain mine: 10.9.9.5:80"},
		{"a statement that is not followed",
			`add rule ip kube-proxy ` + webChain + ` tcp dport 81 redirect to :8081`,
			"", "chain " + webChain + ": redir"},
		{"a Service's packets are dropped",
			`add rule ip kube-proxy ` + webChain + ` drop`,
			"", "chain " + webChain + ": drop"},
		{"an address that leads to a chain of no Service",
			`add element ip kube-proxy service-ips { 192.0.2.2 . tcp . 80 : goto mine }`,
			"", "map service-ips: 192.0.2.2 TCP 80: leads to chain mine"},
		{"a Service's chain to which nothing leads",
			`delete element ip kube-proxy service-ips { 10.96.0.11 . tcp . 80 }`,
			"", "chain " + oneChain + ": 10.244.0.4:8080, but no address leads to the chain"},
		{"a rejected address without a name",
			`add element ip kube-proxy no-endpoint-services { 192.0.2.3 . tcp . 80 : goto reject-chain }`,
			"", `map no-endpoint-services: 192.0.2.3 TCP 80: comment "" does not name a Service port`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := step(t, n, s, c, tt.script)
			if r == nil {
				t.Fatal("no event")
			}
			if tt.web != "" && wantPort(t, state(c.all()), "web") != tt.web {
				t.Errorf("got  %s\nwant %s", wantPort(t, state(c.all()), "web"), tt.web)
			}
			if tt.unknown != "" && !strings.Contains("\n"+strings.Join(r.Unknown, "\n")+"\n", "\n"+tt.unknown+"\n") {
				t.Errorf("unknown %q, want also %q", r.Unknown, tt.unknown)
			}
			fresh, err := Read(context.Background(), Options{NetNS: n.fd})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fresh.Unknown, r.Unknown); diff != "" {
				t.Errorf("unknown (-fresh dump +followed):\n%s", diff)
			}
			if diff := cmp.Diff(render(fresh.Ports), render(state(c.all()))); diff != "" {
				t.Errorf("ports (-fresh dump +followed):\n%s", diff)
			}
		})
	}
	r := step(t, n, s, c, `flush chain ip kube-proxy services
flush chain ip kube-proxy mine
flush chain ip kube-proxy `+webChain+`
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports
add rule ip kube-proxy `+webChain+` meta l4proto tcp dnat ip addr . port to numgen random mod 3 map { 0 : 10.244.0.3 . 8080 , 1 : 10.244.1.3 . 8080 , 2 : 10.244.2.3 . 8080 }
delete element ip kube-proxy service-ips { 192.0.2.2 . tcp . 80 }
add element ip kube-proxy service-ips { 10.96.0.11 . tcp . 80 : goto `+oneChain+` }
delete element ip kube-proxy no-endpoint-services { 192.0.2.3 . tcp . 80 }`)
	if len(r.Unknown) > 0 {
		t.Errorf("still unknown: %q", r.Unknown)
	}
	if diff := cmp.Diff(fixture(t, "kube-proxy-1.37-services-ip.want"), render(state(c.all()))); diff != "" {
		t.Errorf("after the repair (-want +got):\n%s", diff)
	}
}

func TestOtherTablesAreGenerationsWithoutChange(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	before := vouched(t, n, s, c)
	if r := step(t, n, s, c, "add table inet other\nadd chain inet other c"); r != nil {
		t.Errorf("event %+v", r)
	}
	if after := vouched(t, n, s, c); after != nextGen(before) {
		t.Errorf("vouched for %d after %d", after, before)
	}
}

func TestATableThatComesLaterIsFollowed(t *testing.T) {
	n := newNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	e, _ := c.wait(t, 0, isSynced)
	if d := e.Payload.(*collect.SourceState).Detail; !strings.Contains(d, "no table of a known rule layout yet") {
		t.Errorf("detail %q", d)
	}
	r := step(t, n, s, c, fixture(t, "kube-proxy-1.37-base-ip.nft")+fixture(t, "kube-proxy-1.37-services-ip.nft"))
	if r == nil || r.Layout != "kube-proxy-nftables" {
		t.Fatalf("event %+v", r)
	}
	if diff := cmp.Diff(fixture(t, "kube-proxy-1.37-services-ip.want"), render(r.Ports)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRulesAreReadInAUserNamespace runs a few of the tests again as the lab of
// an ordinary user runs: with every right in a user namespace of its own, and
// none in the network namespace that the process started in.
func TestRulesAreReadInAUserNamespace(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^(TestTheFirstEventsAreTheBaselineAndSynced|TestReadShowsServicesOfEveryKind|TestHandMadeRulesShowAndGo)$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRunEndsWithItsContextAndNamesWhatItCannotOpen(t *testing.T) {
	n := newNS(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := newCollector()
	done := make(chan error, 1)
	s := New(Options{Node: "n", NetNS: n.fd})
	go func() { done <- s.Run(ctx, c) }()
	c.wait(t, 0, isSynced)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run after cancel: %v", err)
	}
	if s.Name() != "rules of n" {
		t.Errorf("name %q", s.Name())
	}

	err := New(Options{Node: "node-7", NetNS: 1 << 20}).Run(context.Background(), c)
	if err == nil || !strings.Contains(err.Error(), "node-7") {
		t.Errorf("Run with a bad namespace: %v", err)
	}
	_, err = Read(context.Background(), Options{Node: "node-7", NetNS: 1 << 20})
	if err == nil || !strings.Contains(err.Error(), "node-7") {
		t.Errorf("Read with a bad namespace: %v", err)
	}
}
