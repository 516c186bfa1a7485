package rulesync_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/rulesync"
)

const (
	proxyNode = "node-1"
	proxyZone = "zone-a"
	// proxyPeriod is the shortest time between two syncs, for both sides. What
	// is compared is what they write, not when: with the default of a second
	// the test would only wait longer.
	proxyPeriod = 100 * time.Millisecond
	// proxyPatience bounds one wait. Nothing passes by waiting shorter.
	proxyPatience = 2 * time.Minute
)

// proxyOperations is how many changes are compared in all: those that are listed,
// then random states.
var proxyOperations = flag.Int("operations", 200, "changes to compare with the real kube-proxy")

// TestRulesAreThoseOfTheRealKubeProxy runs the real kube-proxy beside the rule
// sync in both layouts: three network namespaces that all are node-1 of one API
// server. After each change of kubeProxyChanges, and in random states, each must
// have programmed exactly what engine/desired says, read by collect/noderules
// and, in kube-proxy's layout, by nft itself.
func TestRulesAreThoseOfTheRealKubeProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building kube-proxy takes minutes the first time")
	}
	server := startProxyAPI(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	api := &proxyAPI{t: t, client: client}
	mine := startSide(t, "rulesync")
	theirs, flat := startSide(t, "kube-proxy"), startSide(t, "flat rulesync")
	api.createNode(proxyNode, mine.node.Addresses()...)
	if !slices.Equal(mine.node.Addresses(), theirs.node.Addresses()) {
		t.Fatalf("the two namespaces have different addresses: %s and %s", mine.node.Addresses(), theirs.node.Addresses())
	}
	alive, log := startKubeProxy(t, theirs.node, server)
	startRuleSync(t, mine.node, client, rulesync.KubeProxy)
	startRuleSync(t, flat.node, client, rulesync.Flat)

	ref := desired.NodeRef{Name: proxyNode, Zone: proxyZone, Addresses: mine.node.Addresses()}
	changes := slices.Concat(kubeProxyChanges, kubeProxyFamilyChanges)
	for i := range max(0, *proxyOperations-len(changes)) {
		changes = append(changes, kubeProxyChange{fmt.Sprintf("random state %d", i), func(a *proxyAPI) { a.roll(uint64(i)) }})
	}
	for i, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			api := &proxyAPI{t: t, client: client}
			c.do(api)
			marks := api.mark(i)
			want := api.wanted(ref)
			for _, s := range []*side{mine, theirs, flat} {
				if err := s.reached(alive, marks); err != nil {
					t.Fatalf("%s: %v\n%s", s.name, err, tail(log))
				}
				if i == 0 && s == theirs {
					api.placeNode(proxyNode)
				}
				if diff := rulesDiff(want, s.view.ports()); diff != "" {
					t.Errorf("%s holds other rules than wanted (-want +had):\n%s", s.name, diff)
				}
				s.checkDump(t, want)
				if s != flat {
					s.checkNft(t, want)
				}
			}
			if diff := cmp.Diff(theirs.layout(t), mine.layout(t)); diff != "" {
				t.Errorf("the rules differ in their layout (-kube-proxy +rulesync):\n%s", diff)
			}
		})
		if alive.Err() != nil {
			t.Fatal(context.Cause(alive))
		}
	}
}

// plain is what the kernel's rules can tell, in order. Two things they cannot:
// under which policy a frontend stands that nothing is behind, as it is rejected
// or dropped all the same (which of them, the layout shows), and whether an
// address is external or a load balancer's, unless its source ranges are limited.
func plain(ports []collect.RulePort) []collect.RulePort {
	byKey := map[collect.RulePortKey]collect.RulePort{}
	for _, p := range ports {
		if len(p.Endpoints) == 0 {
			p.Policy = ""
		}
		before := byKey[p.RulePortKey]
		p.Frontends = slices.Concat(before.Frontends, p.Frontends)
		if p.Sources == nil {
			p.Sources = before.Sources
		}
		for i := range p.Frontends {
			if f := &p.Frontends[i]; f.Kind == collect.FrontendLoadBalancer && p.Sources == nil {
				f.Kind = collect.FrontendExternalIP
			}
		}
		slices.SortFunc(p.Frontends, desired.CompareFrontends)
		byKey[p.RulePortKey] = p
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b collect.RulePort) int {
		return a.RulePortKey.Compare(b.RulePortKey)
	})
}

// rulesDiff is empty when the rules are as wanted.
func rulesDiff(want, had []collect.RulePort) string {
	return cmp.Diff(plain(want), plain(had), compareAddrs)
}

var compareAddrs = cmpopts.EquateComparable(netip.AddrPort{}, netip.Prefix{})

// side is one namespace and what its rules were seen to be.
type side struct {
	name string
	node *nodes.Node
	view *rulesView
}

// startSide makes a namespace that is node-1, and watches its rules.
func startSide(t *testing.T, name string) *side {
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
	run(t, "reading the rules of "+name, func(ctx context.Context) error {
		return noderules.New(noderules.Options{Node: proxyNode, NetNS: s.node.NetNS()}).Run(ctx, s.view)
	})
	return s
}

// reached waits until the marker's rules of both families are as given: each
// family is synced by itself.
func (s *side) reached(ctx context.Context, marks []collect.RulePort) error {
	ctx, cancel := context.WithTimeout(ctx, proxyPatience)
	defer cancel()
	return s.view.wait(ctx, func(ports map[collect.RulePortKey]collect.RulePort) bool {
		for _, m := range marks {
			if !cmp.Equal(ports[m.RulePortKey], m, compareAddrs) {
				return false
			}
		}
		return true
	})
}

// checkDump reads the rules afresh: events and dumps must tell the same.
func (s *side) checkDump(t *testing.T, want []collect.RulePort) {
	t.Helper()
	got, err := noderules.Read(t.Context(), noderules.Options{Node: proxyNode, NetNS: s.node.NetNS()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := rulesDiff(want, got.Ports); diff != "" {
		t.Errorf("a dump of %s holds other rules than wanted (-want +had):\n%s", s.name, diff)
	}
	if len(got.Unknown) > 0 {
		t.Errorf("%s has rules that are not understood: %q", s.name, got.Unknown)
	}
}

// checkNft asks nft, which shares no code with collect/noderules.
func (s *side) checkNft(t *testing.T, want []collect.RulePort) {
	t.Helper()
	had := map[string][]string{}
	for _, r := range s.nft(t) {
		maps.Copy(had, r.frontends(t))
	}
	if diff := cmp.Diff(frontendsOf(want), had); diff != "" {
		t.Errorf("nft shows other rules of %s than wanted (-want +had):\n%s", s.name, diff)
	}
}

// nft is what nft shows of each family's table.
func (s *side) nft(t *testing.T) []nftRuleset {
	t.Helper()
	out, err := s.node.Exec(t.Context(), "nft", "-j", "list", "ruleset")
	if err != nil {
		t.Fatal(err)
	}
	return []nftRuleset{parseNft(t, out, "ip"), parseNft(t, out, "ip6")}
}

// layout is the node's ruleset as text, without what time leaves behind.
func (s *side) layout(t *testing.T) (out []string) {
	for _, r := range s.nft(t) {
		for _, line := range r.layout() {
			out = append(out, r.family+" "+line)
		}
	}
	return out
}

// startRuleSync runs what is tested.
func startRuleSync(t *testing.T, n *nodes.Node, client kubernetes.Interface, plane rulesync.Dataplane) {
	t.Helper()
	s, err := rulesync.New(rulesync.Options{
		Node:     desired.NodeRef{Name: proxyNode, Zone: proxyZone, Addresses: n.Addresses()},
		Families: []collect.Family{collect.IPv4, collect.IPv6},
		NetNS:    n.NetNS(), Dataplane: plane, Client: client, ClusterCIDRs: []netip.Prefix{nodes.DefaultPodCIDR, nodes.PodCIDRv6}, MinSyncPeriod: proxyPeriod,
		Sink: collect.SinkFunc(func(e collect.Event) {
			if p, ok := e.Payload.(*collect.SyncStep); ok && p.Step == "failed" {
				t.Errorf("rule sync failed: %s", p.Detail)
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, "rule sync", s.Run)
}

// run runs f until the test ends and waits for it.
func run(t *testing.T, what string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// wanted is what engine/desired makes of the API's content.
func (a *proxyAPI) wanted(node desired.NodeRef) []collect.RulePort {
	a.t.Helper()
	svcs, err := a.client.CoreV1().Services("").List(a.t.Context(), metav1.ListOptions{})
	a.ok(err)
	list, err := a.client.DiscoveryV1().EndpointSlices("").List(a.t.Context(), metav1.ListOptions{})
	a.ok(err)
	return wantedRules(svcs.Items, list.Items, node)
}

// wantedRules is what engine/desired makes of the objects.
func wantedRules(svcs []corev1.Service, epSlices []discoveryv1.EndpointSlice, node desired.NodeRef) []collect.RulePort {
	var out []collect.RulePort
	for i := range svcs {
		s := &svcs[i]
		var eps []*collect.EndpointSlice
		for j := range epSlices {
			sl := &epSlices[j]
			if c, ok := kube.ConvertEndpointSlice(sl); ok && sl.Namespace == s.Namespace && c.Service == s.Name {
				eps = append(eps, c)
			}
		}
		out = append(out, desired.Rules(desired.ServiceRef{Namespace: s.Namespace, Name: s.Name, Service: kube.ConvertService(s)}, eps, node)...)
	}
	return out
}

// markerIPs are the ClusterIPs of the marker Service.
var markerIPs = []string{"10.111.111.111", "fd00:10:96::1111"}

// mark changes a Service and EndpointSlices that only serve as marks. Each
// watch delivers in order, so whoever shows all marks has seen everything
// before: from then on the rules must be right, without further waiting.
func (a *proxyAPI) mark(n int) (marks []collect.RulePort) {
	a.t.Helper()
	port, target := int32(1000+n), int32(2000+n)
	a.put(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "marker"},
		Spec: corev1.ServiceSpec{
			ClusterIP: markerIPs[0], ClusterIPs: markerIPs, IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}},
		},
	})
	for i, address := range []string{"10.244.1.200", "fd00:10:244:1::200"} {
		family := []collect.Family{collect.IPv4, collect.IPv6}[i]
		a.put(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "marker-" + strings.ToLower(string(family)), Labels: map[string]string{discoveryv1.LabelServiceName: "marker"},
			},
			AddressType: discoveryv1.AddressType(family),
			Ports:       []discoveryv1.EndpointPort{{Name: new(""), Protocol: new(corev1.ProtocolTCP), Port: &target}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		})
		marks = append(marks, collect.RulePort{
			RulePortKey: collect.RulePortKey{Namespace: "default", Service: "marker", Protocol: collect.TCP, Family: family, Policy: collect.PolicyCluster},
			Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(netip.MustParseAddr(markerIPs[i]), uint16(port))}},
			Endpoints:   []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(address), uint16(target))},
		})
	}
	return marks
}
