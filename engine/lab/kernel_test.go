package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/rulesync"
	"github.com/kconverge/kconverge/engine/timeline"
)

// kernel is what nft itself says that a node routes for default/web.
func (w *world) kernel(n *nodes.Node) (endpoints []netip.Addr, frontends int) {
	w.Helper()
	out, err := n.Exec(w.Context(), "nft", "-j", "list", "ruleset")
	if err != nil {
		w.Fatal(err)
	}
	if w.plane == rulesync.Flat {
		return flatEndpoints(w, out), 0
	}
	for _, p := range nftwitness.Ports(w, out) {
		if p.Namespace != "default" || p.Service != "web" {
			continue
		}
		frontends += len(p.Frontends)
		for _, e := range p.Endpoints {
			endpoints = append(endpoints, e.Addr())
		}
	}
	slices.SortFunc(endpoints, netip.Addr.Compare)
	return slices.Compact(endpoints), frontends
}

// flatEndpoints are the addresses in the flat layout's endpoint maps of both
// families, as nft shows them. default/web is taken to be the only Service.
func flatEndpoints(w *world, out []byte) (endpoints []netip.Addr) {
	w.Helper()
	var doc struct {
		Objects []struct {
			Map *struct {
				Table, Name string
				Elem        []json.RawMessage
			}
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		w.Fatal(err)
	}
	for _, o := range doc.Objects {
		if o.Map == nil || o.Map.Table != "kconverge-flat" || o.Map.Name != "endpoints" {
			continue
		}
		for _, e := range o.Map.Elem {
			var pair []struct{ Concat []any }
			if err := json.Unmarshal(e, &pair); err != nil || len(pair) != 2 || len(pair[1].Concat) != 2 {
				w.Fatalf("not an element of the endpoints: %s, %v", e, err)
			}
			a, err := netip.ParseAddr(fmt.Sprint(pair[1].Concat[0]))
			if err != nil {
				w.Fatal(err)
			}
			endpoints = append(endpoints, a)
		}
	}
	slices.SortFunc(endpoints, netip.Addr.Compare)
	return slices.Compact(endpoints)
}

// model is what the model says that a node routes for default/web.
func model(s *timeline.Snapshot, node string) (endpoints []netip.Addr) {
	svc := s.Service("default", "web")
	if svc == nil {
		return nil
	}
	p := svc.Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: node})
	if p == nil {
		return nil
	}
	for i := range p.Members {
		if m := &p.Members[i]; m.Endpoint.IP.IsValid() && m.At(s.Now).Have {
			endpoints = append(endpoints, m.Endpoint.IP)
		}
	}
	slices.SortFunc(endpoints, netip.Addr.Compare)
	return endpoints
}

// settledOn waits until every node routes n endpoints, all has settled, and the
// model and nft agree on every node.
func (w *world) settledOn(what string, n int) *timeline.Snapshot {
	w.Helper()
	s := w.settled()
	for _, node := range w.lab.Nodes() {
		have, _ := w.kernel(node)
		if m := model(s, node.Name()); !slices.Equal(m, have) {
			w.Errorf("%s: on %s the model has %v, nft %v", what, node.Name(), m, have)
		}
		if len(have) != n {
			w.Errorf("%s: %s routes %d endpoints, want %d", what, node.Name(), len(have), n)
		}
	}
	return s
}

func TestTheModelEqualsTheKernelAfterEveryStep(t *testing.T) {
	w := start(t, 3)
	w.deploy(4, "500ms")
	w.settledOn("created with 4", 4)
	for _, n := range []int{7, 2, 0, 3} {
		w.scale(int32(n))
		w.settledOn(fmt.Sprintf("scaled to %d", n), n)
	}
	if err := w.lab.Restart(t.Context(), "default", "Deployment", "web"); err != nil {
		t.Fatal(err)
	}
	w.settledOn("restarted", 3)
	w.patchService(`{"spec":{"ports":[{"port":80,"targetPort":9090}]}}`)
	w.settledOn("target port changed", 3)
	w.patchService(`{"spec":{"ports":[{"port":8000,"targetPort":9090}]}}`)
	w.settledOn("port changed", 3)
	w.patchService(`{"spec":{"selector":{"app":"nobody"}}}`)
	w.settledOn("selector changed", 0)
	w.patchService(`{"spec":{"selector":{"app":"web"}}}`)
	w.settledOn("selector changed back", 3)

	pods, err := w.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.lab.DeletePod(t.Context(), "default", pods.Items[0].Name); err != nil {
		t.Fatal(err)
	}
	w.until("another pod", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return svc != nil && slices.ContainsFunc(svc.Paths, func(p *timeline.Path) bool {
			return p.Endpoint.UID == string(pods.Items[0].UID) && p.Op == timeline.OpRemove && p.Status == timeline.StatusArrived
		})
	})
	w.settledOn("pod deleted", 3)

	w.deleteService()
	w.until("the Service gone from every node", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return svc != nil && !svc.Deleted.IsZero() && !slices.ContainsFunc(w.lab.Nodes(), func(n *nodes.Node) bool { return len(model(s, n.Name())) > 0 })
	})
	for _, n := range w.lab.Nodes() {
		if eps, fronts := w.kernel(n); len(eps) != 0 || fronts != 0 {
			t.Errorf("after the Service was deleted %s has %d frontends and %v", n.Name(), fronts, eps)
		}
	}
	w.expose()
	w.settledOn("Service created again", 3)
}

func TestARuleAddedByHandShowsAsUnexpectedUntilItIsDeleted(t *testing.T) {
	w := start(t, 2)
	w.deploy(2, "500ms")
	w.settled()
	node := w.lab.Nodes()[0]
	chains, err := node.Exec(t.Context(), "nft", "list", "table", "ip", "kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	chain := ""
	for _, line := range strings.Split(string(chains), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "chain" && strings.HasPrefix(f[1], "service-") && strings.Contains(f[1], "default/web") {
			chain = f[1]
		}
	}
	if chain == "" {
		t.Fatalf("no chain of default/web in\n%s", chains)
	}
	unexpected := func(s *timeline.Snapshot) *timeline.Difference {
		svc := s.Service("default", "web")
		if svc == nil {
			return nil
		}
		for i, d := range svc.Differences {
			if d.Kind == "unexpected" && d.Plane.Node == node.Name() && d.Endpoint.IP == netip.MustParseAddr("10.9.9.9") {
				return &svc.Differences[i]
			}
		}
		return nil
	}
	out, err := node.Exec(t.Context(), "nft", "--echo", "--handle", "add", "rule", "ip", "kube-proxy", chain, "meta", "l4proto", "tcp", "dnat", "to", "10.9.9.9:80")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	added := time.Now()
	s := w.until("the rule to show", func(s *timeline.Snapshot) bool { return unexpected(s) != nil })
	t.Logf("shown %s after nft returned, observed %s before", time.Since(added).Round(time.Millisecond), added.Sub(unexpected(s).Since).Round(time.Millisecond))
	if p := w.service(s, "web").Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: node.Name()}); p.Changes[len(p.Changes)-1].Unexpected != 1 {
		t.Errorf("the lane of %s has %+v, want one unexpected", node.Name(), p.Changes[len(p.Changes)-1])
	}
	_, handle, ok := strings.Cut(string(out), "# handle ")
	if !ok {
		t.Fatalf("nft tells no handle: %s", out)
	}
	if out, err := node.Exec(t.Context(), "nft", "delete", "rule", "ip", "kube-proxy", chain, "handle", strings.Fields(handle)[0]); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.until("the rule to go", func(s *timeline.Snapshot) bool { return unexpected(s) == nil })
	w.settled()
}

func TestPacketsGoWhereTheRulesSay(t *testing.T) {
	w := start(t, 3)
	w.deploy(3, "200ms")
	for i, n := range []int{3, 7, 1} {
		if i > 0 {
			w.scale(int32(n))
		}
		s := w.settledOn(fmt.Sprintf("%d endpoints", n), n)
		want := map[string]bool{}
		svc := w.service(s, "web")
		for _, m := range svc.Slices.Members {
			if m.At(s.Now).Have {
				want[m.Endpoint.UID] = true
			}
		}
		target := netip.AddrPortFrom(svc.Spec.ClusterIPs[0], 80).String()
		for _, node := range w.lab.Nodes() {
			got := map[string]int{}
			for range 300 {
				got[w.ask(node, target)]++
			}
			for uid := range want {
				if got[uid] == 0 {
					t.Errorf("%d endpoints: of 300 connections from %s none reached pod %s", n, node.Name(), uid)
				}
			}
			for uid, k := range got {
				if !want[uid] {
					t.Errorf("%d endpoints: %d of 300 connections from %s reached %q", n, k, node.Name(), uid)
				}
			}
		}
	}

	// A removed endpoint: its process lives on for a while, and yet nothing
	// reaches it once the removal has been committed.
	w.patchService(`{"spec":{"selector":{"app":"nobody"}}}`)
	s := w.settledOn("selector changed", 0)
	target := netip.AddrPortFrom(w.service(s, "web").Spec.ClusterIPs[0], 80).String()
	for _, node := range w.lab.Nodes() {
		for range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if conn, err := node.Dial(ctx, "tcp", target); err == nil {
				conn.Close()
				t.Errorf("a connection from %s was accepted after the removal", node.Name())
			}
			cancel()
		}
	}
}

// ask connects from inside a node and returns the UID of the pod that answers.
func (w *world) ask(node *nodes.Node, target string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
	defer cancel()
	conn, err := node.Dial(ctx, "tcp", target)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	return answer(conn)
}
