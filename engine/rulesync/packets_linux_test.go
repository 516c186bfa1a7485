package rulesync

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// routed reads what the node's rules spread the ClusterIP over, by
// collect/noderules.
func (c *cluster) routed(n *nodes.Node) []string {
	c.t.Helper()
	var out []string
	for _, p := range readRules(c.t, n).Ports {
		for _, ep := range p.Endpoints {
			out = append(out, ep.Addr().String())
		}
	}
	slices.Sort(out)
	return out
}

func TestConnectionsReachExactlyTheProgrammedEndpoints(t *testing.T) {
	for _, plane := range []Dataplane{KubeProxy, Flat} {
		t.Run(string(plane), func(t *testing.T) { connections(t, plane) })
	}
}

func connections(t *testing.T, plane Dataplane) {
	c := startCluster(t, 3, Options{Dataplane: plane})
	ns := c.net.Nodes()
	eps := []endpoint{c.pod("uid-a", ns[0]), c.pod("uid-b", ns[1]), c.pod("uid-c", ns[2]), c.pod("uid-d", ns[0])}
	services, epSlices := c.client.CoreV1().Services("default"), c.client.DiscoveryV1().EndpointSlices("default")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func() {
		t.Helper()
		for _, n := range ns {
			if uid, err := ask(t.Context(), n, clusterIP+":80"); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("from %s without endpoints: %q, %v; want refused", n.Name(), uid, err)
			}
		}
	}
	reach := func(want ...endpoint) {
		t.Helper()
		var ips []string
		for _, w := range want {
			ips = append(ips, w.ip.String())
		}
		slices.Sort(ips)
		for _, n := range ns {
			if got := c.routed(n); !slices.Equal(got, ips) {
				t.Errorf("%s routes to %v, want %v", n.Name(), got, ips)
			}
			got := c.answers(n, 300)
			for _, w := range want {
				if got[w.uid] == 0 {
					t.Errorf("from %s: %s was never reached in 300 connections", n.Name(), w.uid)
				}
				delete(got, w.uid)
			}
			if len(got) > 0 {
				t.Errorf("from %s: others answered: %v", n.Name(), got)
			}
		}
	}

	c.settle(func() {
		_, err := services.Create(t.Context(), webService(), metav1.CreateOptions{})
		must(err)
	})
	refused()
	c.settle(func() {
		_, err := epSlices.Create(t.Context(), webSlice(eps[0]), metav1.CreateOptions{})
		must(err)
	})
	reach(eps[0])
	update := func(eps ...endpoint) {
		c.settle(func() {
			_, err := epSlices.Update(t.Context(), webSlice(eps...), metav1.UpdateOptions{})
			must(err)
		})
	}
	update(eps[0], eps[1], eps[2])
	reach(eps[0], eps[1], eps[2])
	update(eps[3], eps[1])
	reach(eps[3], eps[1])

	// After a removal is committed nothing reaches the removed endpoint,
	// although its listener is still there.
	update(eps[1])
	for _, n := range ns {
		if got := c.answers(n, 500); got["uid-b"] != 500 {
			t.Errorf("from %s after the removal: %v", n.Name(), got)
		}
	}
	update()
	refused()
	c.settle(func() { must(services.Delete(t.Context(), "web", metav1.DeleteOptions{})) })
	for _, n := range ns {
		out, err := n.Exec(t.Context(), "nft", "list", "ruleset")
		must(err)
		if strings.Contains(string(out), clusterIP) {
			t.Errorf("%s still knows the ClusterIP of a deleted Service:\n%s", n.Name(), out)
		}
	}
}
