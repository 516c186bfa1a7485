package rulesync

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// checkHealth asks a node's health check port from inside the node.
func checkHealth(t *testing.T, n *nodes.Node, port uint16, status int, local float64) {
	t.Helper()
	conn, err := n.Dial(t.Context(), "tcp", netip.AddrPortFrom(n.Addresses()[0], port).String())
	if err != nil {
		t.Errorf("%s does not answer: %v", n.Name(), err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: lb\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var body struct {
		Service             map[string]string
		LocalEndpoints      float64
		ServiceProxyHealthy bool
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	weight := r.Header.Get("X-Load-Balancing-Endpoint-Weight")
	if r.StatusCode != status || body.LocalEndpoints != local || !body.ServiceProxyHealthy || weight != map[float64]string{0: "0", 1: "1", 2: "2"}[local] ||
		body.Service["namespace"] != "default" || body.Service["name"] != "web" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s answers %s with weight %q and %+v; want %d and %v local endpoints", n.Name(), r.Status, weight, body, status, local)
	}
}

func TestNodesSayWhetherTheyHaveEndpointsOfALocalLoadBalancer(t *testing.T) {
	inBothPlanes(t, 2, func(t *testing.T, c *cluster) {
		ns, ctx := c.net.Nodes(), t.Context()
		a, b, other := c.pod("uid-a", ns[0]), c.pod("uid-b", ns[0]), c.pod("uid-c", ns[1])
		svc := webService()
		svc.Spec.Type, svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal, 31999
		c.offer(svc, a, b)
		checkHealth(t, ns[0], 31999, http.StatusOK, 2)
		checkHealth(t, ns[1], 31999, http.StatusServiceUnavailable, 0)
		// One that is terminating does not count, although it serves.
		sl := webSlice(a, other)
		no, yes := false, true
		sl.Endpoints[0].Conditions.Ready, sl.Endpoints[0].Conditions.Serving, sl.Endpoints[0].Conditions.Terminating = &no, &yes, &yes
		c.settle(func() {
			must2(t)(c.client.DiscoveryV1().EndpointSlices("default").Update(ctx, sl, metav1.UpdateOptions{}))
		})
		checkHealth(t, ns[0], 31999, http.StatusServiceUnavailable, 0)
		checkHealth(t, ns[1], 31999, http.StatusOK, 1)
		svc.Spec.HealthCheckNodePort = 31998
		c.settle(func() { must2(t)(c.client.CoreV1().Services("default").Update(ctx, svc, metav1.UpdateOptions{})) })
		checkHealth(t, ns[1], 31998, http.StatusOK, 1)
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		c.settle(func() { must2(t)(c.client.CoreV1().Services("default").Update(ctx, svc, metav1.UpdateOptions{})) })
		for _, n := range ns {
			for _, port := range []uint16{31998, 31999} {
				if conn, err := n.Dial(ctx, "tcp", netip.AddrPortFrom(n.Addresses()[0], port).String()); err == nil {
					conn.Close()
					t.Errorf("%s still listens on %d", n.Name(), port)
				}
			}
		}
	})
}
