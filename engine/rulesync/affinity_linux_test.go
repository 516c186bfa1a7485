package rulesync

import (
	"context"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// inBothPlanes runs a test of packets on a cluster of its own for each layout.
func inBothPlanes(t *testing.T, count int, f func(*testing.T, *cluster)) {
	for _, plane := range []Dataplane{KubeProxy, Flat} {
		t.Run(string(plane), func(t *testing.T) {
			f(t, startCluster(t, count, Options{Dataplane: plane, MinSyncPeriod: 10 * time.Millisecond}))
		})
	}
}

// offer makes the Service and its slice, or changes them.
func (c *cluster) offer(svc *corev1.Service, eps ...endpoint) {
	c.t.Helper()
	services, epSlices := c.client.CoreV1().Services("default"), c.client.DiscoveryV1().EndpointSlices("default")
	if _, err := services.Get(c.t.Context(), svc.Name, metav1.GetOptions{}); err != nil {
		c.settle(func() { must2(c.t)(services.Create(c.t.Context(), svc, metav1.CreateOptions{})) })
		c.settle(func() { must2(c.t)(epSlices.Create(c.t.Context(), webSlice(eps...), metav1.CreateOptions{})) })
		return
	}
	c.settle(func() { must2(c.t)(epSlices.Update(c.t.Context(), webSlice(eps...), metav1.UpdateOptions{})) })
}

// must2 fails the test at an error.
func must2(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// only is the one pod that answers.
func (c *cluster) only(n *nodes.Node, connections int) string {
	c.t.Helper()
	got := c.answers(n, connections)
	if len(got) != 1 {
		c.t.Fatalf("the connections of one client were answered by %v", got)
	}
	for uid := range got {
		return uid
	}
	panic("unreachable")
}

func TestAClientStaysWithItsEndpointWhateverElseChanges(t *testing.T) {
	inBothPlanes(t, 2, func(t *testing.T, c *cluster) {
		client := c.net.Nodes()[1]
		eps := map[string]endpoint{}
		var all []endpoint
		for _, uid := range []string{"uid-a", "uid-b", "uid-c", "uid-d", "uid-e", "uid-f"} {
			eps[uid] = c.pod(uid, c.net.Nodes()[0])
			all = append(all, eps[uid])
		}
		svc := webService()
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		without := func(uids ...string) (out []endpoint) {
			for _, ep := range all {
				gone := false
				for _, uid := range uids {
					gone = gone || ep.uid == uid
				}
				if !gone {
					out = append(out, ep)
				}
			}
			return out
		}
		c.offer(svc, all...)
		first := c.only(client, 50)
		// With others gone, and back: the places of those that stay may change.
		for _, ep := range all {
			if ep.uid == first {
				continue
			}
			c.offer(svc, without(ep.uid)...)
			if got := c.only(client, 20); got != first {
				t.Fatalf("without %s the client of %s came to %s", ep.uid, first, got)
			}
		}
		c.offer(svc, eps[first])
		if got := c.only(client, 20); got != first {
			t.Fatalf("alone %s is not reached, but %s", first, got)
		}
		c.offer(svc, without(first)...)
		second := c.only(client, 50)
		if second == first {
			t.Fatalf("%s is reached although it is gone", first)
		}
		third := ""
		for _, uid := range []string{"uid-a", "uid-b", "uid-c"} {
			if uid != first && uid != second {
				third = uid
			}
		}
		c.offer(svc, without(first, third)...)
		if got := c.only(client, 20); got != second {
			t.Errorf("the client went from %s to %s without need", second, got)
		}
	})
}

func TestOnlyTheSourcesOfALoadBalancerGetThrough(t *testing.T) {
	inBothPlanes(t, 3, func(t *testing.T, c *cluster) {
		ns := c.net.Nodes()
		a := c.pod("uid-a", ns[0])
		svc := webService()
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		svc.Spec.LoadBalancerSourceRanges = []string{netip.PrefixFrom(ns[1].Addresses()[0], 32).String(), "203.0.113.0/24"}
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
		c.offer(svc, a)
		dial := func(n *nodes.Node, limit time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return ask(ctx, n, "192.0.2.9:80")
		}
		if uid, err := dial(ns[1], 30*time.Second); err != nil || uid != "uid-a" {
			t.Errorf("a source that is let through: %q, %v", uid, err)
		}
		// Dropped packets show by silence only.
		for _, n := range []*nodes.Node{ns[0], ns[2]} {
			if uid, err := dial(n, 300*time.Millisecond); err == nil {
				t.Errorf("from %s, which is no source, %q answered", n.Name(), uid)
			}
		}
		// The ClusterIP is not limited.
		for _, n := range ns {
			if got := c.answers(n, 3); got["uid-a"] != 3 {
				t.Errorf("from %s to the ClusterIP: %v", n.Name(), got)
			}
		}
	})
}
