package noderules

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules/iptwitness"
)

// iptKinds are the two kinds of iptables: their program and their layout.
var iptKinds = []struct{ program, layout string }{
	{"xtables-nft-multi", "kube-proxy-iptables-nft"},
	{"xtables-legacy-multi", "kube-proxy-iptables-legacy"},
}

// run runs a program inside the namespace.
func (n testNS) run(t testing.TB, stdin string, args ...string) []byte {
	t.Helper()
	var out []byte
	err := n.do(func() (err error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		var problem bytes.Buffer
		cmd.Stderr = &problem
		if out, err = cmd.Output(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, problem.Bytes())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// restore feeds iptables-restore of one of iptKinds, or ip6tables-restore.
func (n testNS) restore(t testing.TB, program, tool, rules string) {
	t.Helper()
	n.run(t, rules, program, tool, "--noflush", "--counters")
}

func (n testNS) saved(t testing.TB, program string) []collect.RulePort {
	t.Helper()
	return iptwitness.Ports(t, n.run(t, "", program, "iptables-save", "-c"), n.run(t, "", program, "ip6tables-save", "-c"))
}

func read(t testing.TB, n testNS, known ...collect.RulePortKey) collect.Rules {
	t.Helper()
	got, err := Read(context.Background(), Options{Node: "n", NetNS: n.fd, Known: known})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestIPTablesShowServicesOfEveryKind(t *testing.T) {
	for _, k := range iptKinds {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, large %v", k.layout, large), func(t *testing.T) {
				n := newNS(t)
				n.restore(t, k.program, "iptables-restore", iptBase)
				n.restore(t, k.program, "iptables-restore", iptRules(large, iptEveryKind()...))
				got := read(t, n)
				if diff := cmp.Diff(iptEveryKindWant, render(got.Ports)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(render(n.saved(t, k.program)), render(got.Ports)); diff != "" {
					t.Errorf("(-iptables-save +got):\n%s", diff)
				}
				if got.Layout != k.layout || len(got.Unknown) > 0 || got.Ignored != 0 || got.NoLayout != "" {
					t.Errorf("layout %q, unknown %q, ignored %d, %q", got.Layout, got.Unknown, got.Ignored, got.NoLayout)
				}
			})
		}
	}
}

func TestIPv6RulesOfIPTablesAreRead(t *testing.T) {
	for _, k := range iptKinds {
		t.Run(k.layout, func(t *testing.T) {
			n := newNS(t)
			rules := func(s *iptService) string {
				return strings.ReplaceAll(iptRules(false, s), "10.244.0.0/16", "fd00:244::/64")
			}
			n.restore(t, k.program, "ip6tables-restore", iptBase)
			n.restore(t, k.program, "ip6tables-restore", rules(&iptService{name: "default/web", port: "http", proto: "udp", vip: "fd00:96::10", nodePort: 30080,
				local: true, affinity: true, endpoints: []string{"[fd00:244::3]:8080", "[fd00:244::4]:8081"}}))
			const want = `default/web:http UDP IPv6 Cluster [ClusterIP [fd00:96::10]:80] -> [fd00:244::3]:8080 [fd00:244::4]:8081 affinity 3h0m0s
default/web:http UDP IPv6 Local [NodePort [::]:30080] -> [fd00:244::3]:8080 affinity 3h0m0s
`
			got := read(t, n)
			if diff := cmp.Diff(want, render(got.Ports)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(render(n.saved(t, k.program)), render(got.Ports)); diff != "" {
				t.Errorf("(-iptables-save +got):\n%s", diff)
			}
			if got.Layout != k.layout || len(got.Unknown) > 0 {
				t.Errorf("layout %q, unknown %q", got.Layout, got.Unknown)
			}
		})
	}
}

func TestChainsOfIPTablesThatNothingLeadsToAreNotRouted(t *testing.T) {
	for _, k := range iptKinds {
		t.Run(k.layout, func(t *testing.T) {
			n := newNS(t)
			n.restore(t, k.program, "iptables-restore", iptBase)
			n.restore(t, k.program, "iptables-restore", iptRules(true, iptEveryKind()...))
			// As kube-proxy leaves it above 1,000 endpoints: the Services' own
			// chains stay, KUBE-SERVICES is written anew.
			left := &iptService{name: "default/one", proto: "tcp", vip: "10.96.0.11", endpoints: []string{"10.244.0.4:8080"}}
			n.restore(t, k.program, "iptables-restore", iptRules(true, left))
			got := read(t, n)
			if diff := cmp.Diff("default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] -> 10.244.0.4:8080\n", render(got.Ports)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got.Unknown) > 0 {
				t.Errorf("unknown %q", got.Unknown)
			}
		})
	}
}

func TestAHashWithoutANameIsJoinedWithWhatIsKnown(t *testing.T) {
	for _, k := range iptKinds {
		t.Run(k.layout, func(t *testing.T) {
			n := newNS(t)
			n.restore(t, k.program, "iptables-restore", iptBase)
			s := &iptService{name: "default/web", port: "http", proto: "tcp", vip: "10.96.0.10", endpoints: []string{"10.244.0.3:8080"}}
			rules := iptRules(true, s)
			for _, comment := range []string{`-m comment --comment "default/web:http cluster IP" `} {
				if !strings.Contains(rules, comment) {
					t.Fatalf("no %q in\n%s", comment, rules)
				}
				rules = strings.ReplaceAll(rules, comment, "")
			}
			n.restore(t, k.program, "iptables-restore", rules)
			got := read(t, n)
			wantUnknown := []string{"10.96.0.10:80 TCP: leads to chain KUBE-SVC-" + s.hash("") + ", which no known Service port has"}
			if diff := cmp.Diff(wantUnknown, got.Unknown); diff != "" || len(got.Ports) != 0 {
				t.Errorf("unnamed: %s\n(-want +got):\n%s", render(got.Ports), diff)
			}
			got = read(t, n,
				collect.RulePortKey{Namespace: "default", Service: "other", Port: "http", Protocol: collect.TCP},
				collect.RulePortKey{Namespace: "default", Service: "web", Port: "http", Protocol: collect.TCP})
			if diff := cmp.Diff("default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.3:8080\n", render(got.Ports)); diff != "" || len(got.Unknown) > 0 {
				t.Errorf("known: unknown %q\n(-want +got):\n%s", got.Unknown, diff)
			}
			// A comment cannot give a chain to another Service.
			n.restore(t, k.program, "iptables-restore", strings.ReplaceAll(iptRules(true, s), "default/web:http", "default/evil:http"))
			got = read(t, n)
			if len(got.Ports) != 0 || len(got.Unknown) != 1 {
				t.Errorf("a foreign name: %s, unknown %q", render(got.Ports), got.Unknown)
			}
		})
	}
}

// foreignRules are rules of others in the same tables, with matches and targets
// that are not followed.
const foreignRules = `*filter
:DOCKER-USER - [0:0]
:KUBE-FIREWALL - [0:0]
-A FORWARD -j DOCKER-USER
-A DOCKER-USER -m limit --limit 5/min -j DROP
-A DOCKER-USER -p tcp -m multiport --dports 80,443 -j ACCEPT
-A INPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
*nat
:CNI-HOSTPORT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT
-A CNI-HOSTPORT -p tcp -m tcp --dport 8443 -j DNAT --to-destination 10.244.0.99:443
-A CNI-HOSTPORT -p tcp -m tcp --dport 8444 -j REDIRECT --to-ports 1
-A CNI-HOSTPORT -p udp -m udp --dport 1:100 -j DNAT --to-destination 10.244.0.98-10.244.0.99
-A POSTROUTING -s 10.244.0.0/16 -j MASQUERADE
COMMIT
`

func TestForeignRulesInTheTablesOfIPTablesAreCountedOnly(t *testing.T) {
	rules := foreignRules
	for _, k := range iptKinds {
		t.Run(k.layout, func(t *testing.T) {
			n := newNS(t)
			n.restore(t, k.program, "iptables-restore", rules)
			got := read(t, n)
			if got.Layout != "" || len(got.Ports) > 0 || len(got.Unknown) > 0 || got.NoLayout != "no rules of kube-proxy in either family" {
				t.Errorf("alone: %+v", got)
			}
			n.restore(t, k.program, "iptables-restore", iptBase)
			n.restore(t, k.program, "iptables-restore", iptRules(false, iptEveryKind()...))
			got = read(t, n)
			if diff := cmp.Diff(iptEveryKindWant, render(got.Ports)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// Eight of the nine: the jump to KUBE-FIREWALL is not foreign.
			if len(got.Unknown) > 0 || got.Ignored != 8 {
				t.Errorf("unknown %q, ignored %d", got.Unknown, got.Ignored)
			}
		})
	}
}

func TestANodeWithoutKubeProxySaysWhatIsThereInstead(t *testing.T) {
	for _, tt := range []struct{ name, rules, want string }{
		{"nothing", "", "no rules of kube-proxy in either family"},
		{"Cilium", "*nat\n:CILIUM_PRE_nat - [0:0]\n-A PREROUTING -j CILIUM_PRE_nat\nCOMMIT\n",
			"no rules of kube-proxy in either family; there are chains of Cilium, which can route Services itself, and is not read"},
		{"IPVS", "*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-LOAD-BALANCER - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n",
			"kube-proxy runs in IPVS mode, whose virtual servers are not read: run it in nftables mode to see this node's rules"},
	} {
		for _, k := range iptKinds {
			t.Run(tt.name+" "+k.program, func(t *testing.T) {
				n := newNS(t)
				if tt.rules != "" {
					n.restore(t, k.program, "iptables-restore", tt.rules)
				}
				if got := read(t, n); got.NoLayout != tt.want || got.Layout != "" {
					t.Errorf("got %q, layout %q", got.NoLayout, got.Layout)
				}
				_, c := start(t, Options{Node: "n", NetNS: n.fd})
				e, _ := c.wait(t, 0, isSynced)
				if d := e.Payload.(*collect.SourceState).Detail; !strings.HasSuffix(d, tt.want) {
					t.Errorf("said %q", d)
				}
			})
		}
	}
}

// Whatever a firewall chain does that kube-proxy's do not is said: its sources are
// not all there is to it.
func TestAFirewallChainThatDoesMoreThanChooseSourcesIsSaid(t *testing.T) {
	s := &iptService{name: "shop/guarded", port: "https", proto: "tcp", vip: "10.96.0.20", lb: "192.0.2.20", ranges: []string{"203.0.113.0/25"}, endpoints: []string{"10.244.1.11:81"}}
	fw, ext := "KUBE-FW-"+s.hash(""), "KUBE-EXT-"+s.hash("")
	written := `-s 203.0.113.0/25 -j ` + ext
	for _, tt := range []struct{ name, rule, sources, unknown string }{
		{"as kube-proxy writes it", written, " from [203.0.113.0/25]", ""},
		{"from anywhere", "-j " + ext, "", ""},
		{"not from somewhere", "! " + written, "", "lets on by something else than the source"},
		{"so many and no more", "-m limit --limit 5/min " + written, "", "lets on by something else than the source"},
		{"from nowhere", "-s 203.0.113.0/25 -j KUBE-MARK-MASQ", "", "lets no source on"},
	} {
		for _, k := range iptKinds {
			t.Run(tt.name+", "+k.layout, func(t *testing.T) {
				n := newNS(t)
				n.restore(t, k.program, "iptables-restore", iptBase)
				rules := iptRules(false, s)
				if !strings.Contains(rules, written) {
					t.Fatalf("no %q in\n%s", written, rules)
				}
				n.restore(t, k.program, "iptables-restore", strings.ReplaceAll(rules, written, tt.rule))
				got := read(t, n)
				want := "shop/guarded:https TCP IPv4 Cluster [ClusterIP 10.96.0.20:80, LoadBalancer 192.0.2.20:80] -> 10.244.1.11:81" + tt.sources + "\n"
				if diff := cmp.Diff(want, render(got.Ports)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if said := strings.Join(got.Unknown, "; "); (tt.unknown == "") != (said == "") || !strings.Contains(said, tt.unknown) || tt.unknown != "" && !strings.Contains(said, fw) {
					t.Errorf("unknown %q, want %q of %s", said, tt.unknown, fw)
				}
			})
		}
	}
}
