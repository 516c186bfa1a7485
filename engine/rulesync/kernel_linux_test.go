package rulesync

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// kernelNode is a node with a table on it and no syncer.
func kernelNode(t testing.TB) (*nodes.Node, Table, desired.NodeRef) {
	t.Helper()
	return nodeWith(t, KubeProxy)
}

func nodeWith(t testing.TB, plane Dataplane) (*nodes.Node, Table, desired.NodeRef) {
	t.Helper()
	net, err := nodes.Start(t.Context(), nodes.Options{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := net.Nodes()[0]
	ref := desired.NodeRef{Name: n.Name(), Addresses: n.Addresses()}
	table, err := newKernelTable(Options{Node: ref, Dataplane: plane, NetNS: n.NetNS(), Families: []collect.Family{collect.IPv4, collect.IPv6},
		ClusterCIDRs: []netip.Prefix{nodes.DefaultPodCIDR}, ServiceCIDRs: []netip.Prefix{nodes.DefaultServiceCIDR}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, table, ref
}

// inBothLayouts runs a test of a table on a node of its own for each layout.
func inBothLayouts(t *testing.T, f func(*testing.T, *nodes.Node, Table, desired.NodeRef)) {
	for _, plane := range []Dataplane{KubeProxy, Flat} {
		t.Run(string(plane), func(t *testing.T) {
			n, table, ref := nodeWith(t, plane)
			f(t, n, table, ref)
		})
	}
}

// world is Services with one slice each.
type world map[types.NamespacedName]input

func (w world) change(full bool, node desired.NodeRef, names ...types.NamespacedName) Change {
	ch := Change{Full: full, Services: map[types.NamespacedName][]Port{}, Now: time.Now()}
	if full {
		for n := range w {
			names = append(names, n)
		}
	}
	for _, n := range names {
		ch.Services[n] = portsOf(n, w[n].service, w[n].slices, node)
	}
	return ch
}

// wanted is what the node should hold by engine/desired.
func (w world) wanted(node desired.NodeRef) []collect.RulePort {
	var out []collect.RulePort
	for n, in := range w {
		out = append(out, desired.Rules(desired.ServiceRef{Namespace: n.Namespace, Name: n.Name, Service: in.service}, in.slices, node)...)
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	return out
}

// manyServices makes n Services with the given number of endpoints.
func manyServices(n, endpoints int) world {
	w := world{}
	for i := range n {
		name := types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("svc-%d", i)}
		sl := &collect.EndpointSlice{Service: name.Name, Family: collect.IPv4, Ports: []collect.SlicePort{{Name: "http", Protocol: collect.TCP, Port: 8080}}}
		for e := range endpoints {
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{
				Address: netip.AddrFrom4([4]byte{10, 244, byte(e%3 + 1), byte(2 + (i+e)%250)}), Ready: true, Serving: true, Node: fmt.Sprintf("node-%d", e%3+1),
			})
		}
		w[name] = input{
			service: &collect.Service{
				Kind: "ClusterIP", ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}, Families: []collect.Family{collect.IPv4},
				Ports: []collect.ServicePort{{Name: "http", Protocol: collect.TCP, Port: 80}},
			},
			slices: []*collect.EndpointSlice{sl},
		}
	}
	return w
}

var sameAddrs = cmp.Options{cmpopts.EquateComparable(netip.AddrPort{}, netip.Prefix{})}

// visible is what rules can tell: a port without any endpoint is rejected in the
// same way under both policies.
func visible(ports []collect.RulePort) []collect.RulePort {
	routed := map[collect.RulePortKey]bool{}
	key := func(p collect.RulePort) collect.RulePortKey {
		k := p.RulePortKey
		k.Policy = collect.PolicyCluster
		return k
	}
	for _, p := range ports {
		routed[key(p)] = routed[key(p)] || len(p.Endpoints) > 0
	}
	var out []collect.RulePort
	for _, p := range ports {
		if routed[key(p)] {
			out = append(out, p)
			continue
		}
		i := slices.IndexFunc(out, func(o collect.RulePort) bool { return o.RulePortKey == key(p) })
		if i < 0 {
			out = append(out, collect.RulePort{RulePortKey: key(p)})
			i = len(out) - 1
		}
		out[i].Frontends = append(slices.Clone(out[i].Frontends), p.Frontends...)
		slices.SortFunc(out[i].Frontends, desired.CompareFrontends)
	}
	return out
}

// checkRules compares what is in the kernel with what is wanted.
func checkRules(t *testing.T, n *nodes.Node, want []collect.RulePort) {
	t.Helper()
	if d := cmp.Diff(visible(told(want)), visible(told(readRules(t, n).Ports)), sameAddrs); d != "" {
		t.Errorf("rules in the kernel, - wanted + found:\n%s", d)
	}
}

func TestAThousandServicesAreWrittenAndReadBack(t *testing.T) {
	inBothLayouts(t, func(t *testing.T, n *nodes.Node, table Table, ref desired.NodeRef) {
		w := manyServices(1000, 10)
		full := func(what string) {
			t.Helper()
			start := time.Now()
			res, err := table.Write(t.Context(), w.change(true, ref))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %v, %d transactions, generation %d %s", what, time.Since(start), res.Transactions, res.Generation, res.Note)
			checkRules(t, n, w.wanted(ref))
		}
		full("full")
		name := types.NamespacedName{Namespace: "default", Name: "svc-500"}
		sl, all := w[name].slices[0], w[name].slices[0].Endpoints
		for _, eps := range [][]collect.SliceEndpoint{all[:3], all[2:9], all[:1], nil, all} {
			sl.Endpoints = eps
			start := time.Now()
			res, err := table.Write(t.Context(), w.change(false, ref, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("one Service with %d: %v", len(eps), time.Since(start))
			// Deleting emptied chains takes another one.
			if limit := map[bool]int{true: 1, false: 2}[reflect.TypeOf(table) == reflect.TypeFor[*flatTable]()]; res.Transactions > limit {
				t.Errorf("one change took %d transactions", res.Transactions)
			}
			checkRules(t, n, w.wanted(ref))
		}
		full("full again")
	})
}

// limitTo makes the table's transactions small.
func limitTo(table Table, size int) {
	switch k := table.(type) {
	case *kernelTable:
		k.sock.limit = size
	case *flatTable:
		k.sock.limit = size
	}
}

func TestWhatDoesNotFitIntoOneTransactionIsSplitBetweenServices(t *testing.T) {
	inBothLayouts(t, func(t *testing.T, n *nodes.Node, table Table, ref desired.NodeRef) {
		limitTo(table, 128<<10) // a small send buffer
		w := manyServices(300, 10)
		write := func() Result {
			t.Helper()
			res, err := table.Write(t.Context(), w.change(true, ref))
			if err != nil {
				t.Fatal(err)
			}
			checkRules(t, n, w.wanted(ref))
			return res
		}
		if res := write(); res.Transactions < 4 || !strings.Contains(res.Note, "transactions") {
			t.Errorf("%d transactions, note %q", res.Transactions, res.Note)
		}
		for _, in := range w {
			in.slices[0].Endpoints = in.slices[0].Endpoints[3:7]
		}
		write()
		for _, in := range w {
			in.slices[0].Endpoints = nil
		}
		write()
	})
}

func TestTheGenerationReportedIsTheOneThatHoldsTheChange(t *testing.T) {
	n, table, ref := kernelNode(t)
	w := manyServices(2, 2)
	for _, full := range []bool{true, false, true} {
		name := types.NamespacedName{Namespace: "default", Name: "svc-1"}
		w[name].slices[0].Endpoints[0].Ready = !w[name].slices[0].Endpoints[0].Ready
		res, err := table.Write(t.Context(), w.change(full, ref, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := readRules(t, n); res.Generation != got.Generation {
			t.Errorf("reported %d, the kernel is at %d", res.Generation, got.Generation)
		}
	}
}

func TestAFullSyncRepairsWhatWasChangedByHand(t *testing.T) {
	byHand := map[Dataplane][]string{
		KubeProxy: {
			"flush chain ip kube-proxy services",
			"flush map ip kube-proxy service-ips",
			"add element ip kube-proxy service-ips { 10.96.0.0 . tcp . 80 : drop }",
			"add element ip kube-proxy service-ips { 10.96.9.9 . tcp . 80 : drop }",
			"add chain ip kube-proxy service-XXXXXXXX-default/none/tcp/",
			"add rule ip kube-proxy service-XXXXXXXX-default/none/tcp/ meta l4proto tcp dnat to 10.9.9.9:80",
		},
		Flat: {
			"flush chain ip kconverge-flat dispatch",
			"flush map ip kconverge-flat endpoints",
			"add element ip kconverge-flat endpoints { 10.96.0.1 . tcp . 80 . 1 : 10.9.9.9 . 80 }",
			"add element ip kconverge-flat endpoints { 10.96.9.9 . tcp . 80 . 0 : 10.9.9.9 . 80 }",
			"delete element ip kconverge-flat mod-3 { 10.96.0.1 . tcp . 80 }",
			"add set ip kconverge-flat mod-77 { type ipv4_addr . inet_proto . inet_service; }",
			"add element ip kconverge-flat mod-77 { 10.96.0.0 . tcp . 80 }",
			"add rule ip kconverge-flat services ip daddr 10.96.0.2 tcp dport 80 dnat to 10.9.9.9:80",
			"flush set ip kconverge-flat firewalled",
			"add element ip kconverge-flat sources { 192.0.2.11 . tcp . 80 . 10.9.9.9 }",
			"delete element ip kconverge-flat sources { 192.0.2.11 . tcp . 80 . 203.0.113.0-203.0.113.255 }",
			"flush map ip kconverge-flat affinity-choices",
			"add element ip kconverge-flat affinity-endpoints { 10.96.1.8 . tcp . 80 . 7 : 10.9.9.9 . 80 }",
			"flush chain ip kconverge-flat stay-10800-0",
			"flush chain ip kconverge-flat affinity",
		},
	}
	inBothLayouts(t, func(t *testing.T, n *nodes.Node, table Table, ref desired.NodeRef) {
		w := manyServices(3, 3)
		maps.Copy(w, shapes())
		if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
			t.Fatal(err)
		}
		plane := Dataplane(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
		for _, cmd := range byHand[plane] {
			if _, err := n.Exec(t.Context(), "nft", cmd); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
			t.Fatal(err)
		}
		checkRules(t, n, w.wanted(ref))
		out, err := n.Exec(t.Context(), "nft", "list", "ruleset")
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"mod-77", "10.9.9.9"} {
			if strings.Contains(string(out), left) {
				t.Errorf("%s, added by hand, is still there:\n%s", left, out)
			}
		}
	})
}

func TestEmptiedChainsAreDeletedASecondLater(t *testing.T) {
	n, table, ref := kernelNode(t)
	w := manyServices(2, 2)
	gone := types.NamespacedName{Namespace: "default", Name: "svc-1"}
	other := types.NamespacedName{Namespace: "default", Name: "svc-0"}
	ch := w.change(true, ref)
	if _, err := table.Write(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
	chain := func() (exists, empty bool) {
		t.Helper()
		out, err := n.Exec(t.Context(), "nft", "list", "table", "ip", "kube-proxy")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(out), "default/svc-1/tcp/http {\n")
		return found, found && strings.HasPrefix(strings.TrimSpace(rest), "}")
	}
	if exists, empty := chain(); !exists || empty {
		t.Fatalf("before: exists %v, empty %v", exists, empty)
	}
	delete(w, gone)
	start := ch.Now
	for _, step := range []struct {
		after              time.Duration
		changed            types.NamespacedName
		exists             bool
		transactionsOfIPv4 int
	}{
		{0, gone, true, 1},
		{time.Second, other, true, 1}, // not before a whole second
		{time.Second + time.Millisecond, other, false, 2},
	} {
		ch := w.change(false, ref, step.changed)
		ch.Now = start.Add(step.after)
		res, err := table.Write(t.Context(), ch)
		if err != nil {
			t.Fatal(err)
		}
		exists, empty := chain()
		if exists != step.exists || exists && !empty || res.Transactions != step.transactionsOfIPv4 {
			t.Errorf("after %v: exists %v, empty %v, %d transactions; want exists %v, empty, %d", step.after, exists, empty, res.Transactions, step.exists, step.transactionsOfIPv4)
		}
	}
}

func TestAfterAFailureATableIsWrittenInFull(t *testing.T) {
	inBothLayouts(t, func(t *testing.T, n *nodes.Node, table Table, ref desired.NodeRef) {
		w := manyServices(2, 2)
		if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Exec(t.Context(), "nft", "flush ruleset"); err != nil {
			t.Fatal(err)
		}
		name := types.NamespacedName{Namespace: "default", Name: "svc-1"}
		w[name].slices[0].Endpoints = w[name].slices[0].Endpoints[:1]
		if _, err := table.Write(t.Context(), w.change(false, ref, name)); err == nil || !strings.Contains(err.Error(), "IPv4") {
			t.Fatalf("writing into a table that is gone: %v, want an error that names the family", err)
		}
		if _, err := table.Write(t.Context(), w.change(false, ref, name)); err != nil {
			t.Fatal(err)
		}
		checkRules(t, n, w.wanted(ref))
	})
}

// asUserNamespaceRoot is set in the process that a test starts as root of a user
// namespace.
const asUserNamespaceRoot = "RULESYNC_TEST_IN_USER_NAMESPACE"

func TestItAllWorksAsRootOfAUserNamespaceToo(t *testing.T) {
	if os.Getenv(asUserNamespaceRoot) != "" {
		t.Skip("this is that process")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.run=^(TestAThousandServicesAreWrittenAndReadBack|TestConnectionsReachExactlyTheProgrammedEndpoints|TestAFullSyncRepairsWhatWasChangedByHand)$")
	cmd.Env = append(os.Environ(), asUserNamespaceRoot+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS"); n != 9 {
		t.Errorf("%d tests passed, want 9:\n%s", n, out)
	}
	t.Logf("%s", out)
}

func benchBothLayouts(b *testing.B, f func(*testing.B, Dataplane)) {
	for _, plane := range []Dataplane{KubeProxy, Flat} {
		b.Run(string(plane), func(b *testing.B) { f(b, plane) })
	}
}

func BenchmarkFull1000x10(b *testing.B) {
	w := manyServices(1000, 10)
	benchBothLayouts(b, func(b *testing.B, plane Dataplane) {
		for b.Loop() {
			b.StopTimer()
			_, table, ref := nodeWith(b, plane)
			ch := w.change(true, ref)
			b.StartTimer()
			if _, err := table.Write(b.Context(), ch); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReplaceOneOf1000x10(b *testing.B) {
	benchBothLayouts(b, func(b *testing.B, plane Dataplane) {
		_, table, ref := nodeWith(b, plane)
		w := manyServices(1000, 10)
		if _, err := table.Write(b.Context(), w.change(true, ref)); err != nil {
			b.Fatal(err)
		}
		name := types.NamespacedName{Namespace: "default", Name: "svc-500"}
		i := 0
		for b.Loop() {
			i++
			w[name].slices[0].Endpoints[0].Address = netip.AddrFrom4([4]byte{10, 244, 9, byte(i % 250)})
			if _, err := table.Write(b.Context(), w.change(false, ref, name)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
