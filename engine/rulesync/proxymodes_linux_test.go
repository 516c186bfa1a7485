package rulesync_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/collect/noderules/iptwitness"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// proxyKinds are the kube-proxies and modes beside the one that
// TestRulesAreThoseOfTheRealKubeProxy runs, with the layout that each writes.
var proxyKinds = []struct {
	name, layout string
	kind         proxyKind
}{
	{"1.34 nftables", "kube-proxy-nftables", proxyKind{"kube-proxy-1.34", "nftables", ""}},
	{"1.37 iptables in nf_tables", "kube-proxy-iptables-nft", proxyKind{"kube-proxy", "iptables", "xtables-nft-multi"}},
	{"1.34 iptables in nf_tables", "kube-proxy-iptables-nft", proxyKind{"kube-proxy-1.34", "iptables", "xtables-nft-multi"}},
	{"1.37 legacy iptables", "kube-proxy-iptables-legacy", proxyKind{"kube-proxy", "iptables", "xtables-legacy-multi"}},
}

// leftToChance is the change after which kube-proxy 1.34 may choose either of two
// endpoints that share an address: that the one which is not terminating wins came
// later (addEndpoints in pkg/proxy/endpointslicecache.go).
const leftToChance = "an address that is terminating in one slice and ready in the other"

// kindRolls is how many random states follow the listed changes.
const kindRolls = 20

// TestRulesOfEveryKindOfKubeProxyAreRead runs real kube-proxies of other versions
// and modes through the same changes: what is followed, a fresh dump and what
// nft or iptables-save print must all be what engine/desired says.
func TestRulesOfEveryKindOfKubeProxyAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building kube-proxy takes minutes the first time")
	}
	for _, k := range proxyKinds {
		t.Run(k.name, func(t *testing.T) {
			server := startProxyAPI(t)
			client, err := kubernetes.NewForConfig(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			api := &proxyAPI{t: t, client: client}
			s := startPolledSide(t, k.name)
			api.createNode(proxyNode, s.addresses()...)
			alive, log, _ := startProxyOfKind(t, s.node, server, k.kind)
			ref := desired.NodeRef{Name: proxyNode, Zone: proxyZone, Addresses: s.addresses()}
			changes := slices.Concat(kubeProxyChanges, kubeProxyFamilyChanges)
			for i := range kindRolls {
				changes = append(changes, kubeProxyChange{fmt.Sprintf("random state %d", i), func(a *proxyAPI) { a.roll(uint64(i)) }})
			}
			if !slices.ContainsFunc(changes, func(c kubeProxyChange) bool { return c.name == leftToChance }) {
				t.Fatalf("no change %q", leftToChance)
			}
			for i, c := range changes {
				t.Run(c.name, func(t *testing.T) {
					api := &proxyAPI{t: t, client: client}
					c.do(api)
					mark := api.mark(i)
					want := api.wanted(ref)
					if err := s.reached(alive, mark); err != nil {
						t.Fatalf("%v\n%s", err, tail(log))
					}
					if i == 0 {
						api.placeNode(proxyNode)
					}
					if k.kind.program == "kube-proxy-1.34" && c.name == leftToChance {
						want = s.witness(t, k.kind)
					}
					if k.kind.iptables != "" {
						want = withoutEarlySources(want)
					}
					if diff := rulesDiff(want, s.view.ports()); diff != "" {
						t.Errorf("followed (-want +had):\n%s", diff)
					}
					s.checkDump(t, want)
					if diff := rulesDiff(want, s.witness(t, k.kind)); diff != "" {
						t.Errorf("the witness read (-want +had):\n%s", diff)
					}
					if got := s.read(t).Layout; got != k.layout {
						t.Errorf("layout %q, want %q", got, k.layout)
					}
				})
				if alive.Err() != nil {
					t.Fatal(context.Cause(alive))
				}
			}
		})
	}
}

// withoutEarlySources changes a copy: in iptables mode a Service port has its firewall
// chain, and so sources, when it has an endpoint anywhere (usesFWChain in proxier.go).
func withoutEarlySources(ports []collect.RulePort) []collect.RulePort {
	out := slices.Clone(ports)
	for i := range out {
		if !slices.ContainsFunc(ports, func(p collect.RulePort) bool {
			p.Policy = out[i].Policy
			return p.RulePortKey == out[i].RulePortKey && len(p.Endpoints) > 0
		}) {
			out[i].Sources = nil
		}
	}
	return out
}

// startPolledSide is startSide with legacy iptables looked at often: the test
// would only wait longer.
func startPolledSide(t *testing.T, name string) *side {
	t.Helper()
	cluster, err := nodes.Start(t.Context(), nodes.Options{Names: []string{proxyNode}, DualStack: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &side{name: name, node: cluster.Node(proxyNode), view: newRulesView()}
	watchSide(t, s, s.view)
	return s
}

// watchSide hands the events of a side to a sink.
func watchSide(t *testing.T, s *side, sink collect.Sink) {
	t.Helper()
	run(t, "reading the rules of "+s.name, func(ctx context.Context) error {
		return noderules.New(noderules.Options{Node: proxyNode, NetNS: s.node.NetNS(), Poll: 50 * time.Millisecond}).Run(ctx, sink)
	})
}

// layoutLog is the order in which layouts came and went.
type layoutLog struct {
	mu      sync.Mutex
	layouts []string
}

// Emit implements collect.Sink.
func (l *layoutLog) Emit(e collect.Event) {
	p, ok := e.Payload.(*collect.Rules)
	if !ok || p.Layout == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.layouts); n == 0 || l.layouts[n-1] != p.Layout {
		l.layouts = append(l.layouts, p.Layout)
	}
}

// addresses are the node's.
func (s *side) addresses() []netip.Addr { return s.node.Addresses() }

func (s *side) read(t *testing.T) collect.Rules {
	t.Helper()
	got, err := noderules.Read(t.Context(), noderules.Options{Node: proxyNode, NetNS: s.node.NetNS()})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// witness reads the node's rules with nft or with the kind's iptables-save.
func (s *side) witness(t *testing.T, kind proxyKind) (out []collect.RulePort) {
	t.Helper()
	exec := func(args ...string) []byte {
		out, err := s.node.Exec(t.Context(), args[0], args[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if kind.iptables == "" {
		for _, p := range nftwitness.Ports(t, exec("nft", "-j", "list", "ruleset")) {
			if !p.Empty() {
				out = append(out, p)
			}
		}
		return out
	}
	return iptwitness.Ports(t, exec(kind.iptables, "iptables-save", "-c"), exec(kind.iptables, "ip6tables-save", "-c"))
}

// TestAChangeOfTheRealKubeProxysModeIsOneLayoutGoingAndAnotherComing restarts the
// real kube-proxy of a node in one mode after the other: each layout must be told
// of once, in that order, and end up as wanted.
func TestAChangeOfTheRealKubeProxysModeIsOneLayoutGoingAndAnotherComing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building kube-proxy takes minutes the first time")
	}
	server := startProxyAPI(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	api := &proxyAPI{t: t, client: client}
	s := startPolledSide(t, "node")
	seen := &layoutLog{}
	watchSide(t, s, seen)
	var wantSeen []string
	api.createNode(proxyNode, s.addresses()...)
	api.put(nodePort(externalLocal))
	api.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
	ref := desired.NodeRef{Name: proxyNode, Zone: proxyZone, Addresses: s.addresses()}
	nft := proxyKind{"kube-proxy", "nftables", ""}
	inNFT, legacy := proxyKind{"kube-proxy", "iptables", "xtables-nft-multi"}, proxyKind{"kube-proxy", "iptables", "xtables-legacy-multi"}
	for i, step := range []struct {
		kind   proxyKind
		layout string
	}{
		{nft, "kube-proxy-nftables"}, {inNFT, "kube-proxy-iptables-nft"}, {nft, "kube-proxy-nftables"},
		{legacy, "kube-proxy-iptables-legacy"}, {nft, "kube-proxy-nftables"},
	} {
		// kube-proxy in nftables mode clears both kinds of iptables only when its
		// own iptables commands are of that kind.
		if i > 0 && step.kind == nft && i == 4 {
			step.kind.iptables = legacy.iptables
		}
		alive, log, stop := startProxyOfKind(t, s.node, server, step.kind)
		mark := api.mark(i)
		want := api.wanted(ref)
		if err := s.reached(alive, mark); err != nil {
			t.Fatalf("mode %d: %v\n%s", i, err, tail(log))
		}
		ctx, cancel := context.WithTimeout(alive, proxyPatience)
		err := s.view.wait(ctx, func(ports map[collect.RulePortKey]collect.RulePort) bool {
			return rulesDiff(want, slices.Collect(maps.Values(ports))) == ""
		})
		cancel()
		if err != nil {
			t.Fatalf("mode %d: %v\n%s\n%s", i, err, rulesDiff(want, s.view.ports()), tail(log))
		}
		got := s.read(t)
		if got.Layout != step.layout || len(got.Unknown) > 0 {
			t.Errorf("mode %d: layout %q, want %q; unknown %q", i, got.Layout, step.layout, got.Unknown)
		}
		if diff := rulesDiff(want, got.Ports); diff != "" {
			t.Errorf("mode %d, a dump (-want +had):\n%s", i, diff)
		}
		stop()
		wantSeen = append(wantSeen, step.layout)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if diff := cmp.Diff(wantSeen, seen.layouts); diff != "" {
		t.Errorf("layouts in order (-want +seen):\n%s", diff)
	}
}

// TestALargeClusterOfTheRealKubeProxyIsRead has more endpoints than kube-proxy's
// iptables mode gives comments to, then fewer Services: above the limit their
// chains stay behind.
func TestALargeClusterOfTheRealKubeProxyIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building kube-proxy takes minutes the first time")
	}
	for _, k := range proxyKinds {
		if k.kind.mode != "iptables" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			server := startProxyAPI(t)
			client, err := kubernetes.NewForConfig(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			api := &proxyAPI{t: t, client: client}
			s := startPolledSide(t, k.name)
			api.createNode(proxyNode, s.addresses()...)
			const services, each = 12, 100
			for i := range services {
				name := fmt.Sprintf("big-%d", i)
				svc := webService(func(s *corev1.Service) { s.Name, s.Spec.ClusterIP = name, fmt.Sprintf("10.96.1.%d", i+1) })
				sl := webSlice(name)
				sl.Labels[discoveryv1.LabelServiceName] = name
				for j := range each {
					sl.Endpoints = append(sl.Endpoints, discoveryv1.Endpoint{
						Addresses: []string{fmt.Sprintf("10.244.%d.%d", i+1, j+1)}, NodeName: new(proxyNode),
						Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
					})
				}
				api.put(svc)
				api.put(sl)
			}
			alive, log, _ := startProxyOfKind(t, s.node, server, k.kind)
			ref := desired.NodeRef{Name: proxyNode, Zone: proxyZone, Addresses: s.addresses()}
			check := func(n int) {
				t.Helper()
				mark := api.mark(n)
				want := api.wanted(ref)
				if err := s.reached(alive, mark); err != nil {
					t.Fatalf("%v\n%s", err, tail(log))
				}
				if diff := rulesDiff(want, s.view.ports()); diff != "" {
					t.Errorf("followed (-want +had):\n%s", diff)
				}
				s.checkDump(t, want)
				if diff := rulesDiff(want, s.witness(t, k.kind)); diff != "" {
					t.Errorf("the witness read (-want +had):\n%s", diff)
				}
			}
			check(1)
			saved := func() string {
				out, err := s.node.Exec(t.Context(), k.kind.iptables, "iptables-save", "-t", "nat")
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			if strings.Contains(saved(), " -> ") {
				t.Error("endpoints have comments: kube-proxy does not take this for a large cluster")
			}
			api.deleteService("big-3")
			api.put(func() *discoveryv1.EndpointSlice {
				sl := webSlice("big-4", "10.244.200.1")
				sl.Labels[discoveryv1.LabelServiceName] = "big-4"
				return sl
			}())
			check(2)
			if !strings.Contains(saved(), "10.244.4.1:8080") {
				t.Error("the chains of what was deleted are gone: nothing is left behind here")
			}
		})
	}
}
