package rulesync

import (
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// udpSlice is webSlice over UDP.
func udpSlice(eps ...endpoint) *discoveryv1.EndpointSlice {
	s := webSlice(eps...)
	udp, port := corev1.ProtocolUDP, int32(5353)
	s.Ports[0].Protocol, s.Ports[0].Port = &udp, &port
	return s
}

// asks sends a datagram over the socket until somebody answers, and returns who.
// Datagrams can be lost while rules change.
func asks(t *testing.T, conn net.Conn) string {
	t.Helper()
	buf := make([]byte, 256)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		// Refused: what an ICMP message said about an earlier datagram.
		if _, err := conn.Write([]byte("?")); err != nil && !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(buf); err == nil {
			uid, _, _ := strings.Cut(string(buf[:n]), " ")
			return uid
		}
	}
	t.Fatal("nobody answers the client's socket")
	return ""
}

// TestAUDPClientThatKeepsItsSocketReachesTheNewEndpoint: the old endpoint still
// listens, so only its entry in the connection tracking decides.
func TestAUDPClientThatKeepsItsSocketReachesTheNewEndpoint(t *testing.T) {
	inBothPlanes(t, 2, func(t *testing.T, c *cluster) {
		client, ctx := c.net.Nodes()[1], t.Context()
		a, b := c.pod("uid-a", c.net.Nodes()[0]), c.pod("uid-b", c.net.Nodes()[0])
		for _, uid := range []string{"uid-a", "uid-b"} {
			if err := c.net.Nodes()[0].ListenUDP(uid, []int32{5353}); err != nil {
				t.Fatal(err)
			}
		}
		services, epSlices := c.client.CoreV1().Services("default"), c.client.DiscoveryV1().EndpointSlices("default")
		svc := webService()
		svc.Spec.Ports[0].Protocol, svc.Spec.Ports[0].Port = corev1.ProtocolUDP, 53
		c.settle(func() { must2(t)(services.Create(ctx, svc, metav1.CreateOptions{})) })
		c.settle(func() { must2(t)(epSlices.Create(ctx, udpSlice(a), metav1.CreateOptions{})) })
		conn, err := client.Dial(ctx, "udp", clusterIP+":53")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := asks(t, conn); got != "uid-a" {
			t.Fatalf("%q answers, want uid-a", got)
		}
		// Another one comes: the flow stays, as those of TCP do.
		c.settle(func() { must2(t)(epSlices.Update(ctx, udpSlice(a, b), metav1.UpdateOptions{})) })
		for range 5 {
			if got := asks(t, conn); got != "uid-a" {
				t.Fatalf("%q answers although uid-a is still there", got)
			}
		}
		c.settle(func() { must2(t)(epSlices.Update(ctx, udpSlice(b), metav1.UpdateOptions{})) })
		for range 5 {
			if got := asks(t, conn); got != "uid-b" {
				t.Fatalf("%q answers after uid-a left, want uid-b", got)
			}
		}
		// Nobody, then the first one again, over the same socket.
		c.settle(func() { must2(t)(epSlices.Update(ctx, udpSlice(), metav1.UpdateOptions{})) })
		if _, err := conn.Write([]byte("?")); err == nil {
			buf := make([]byte, 256)
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, err := conn.Read(buf); err == nil {
				t.Errorf("%q answers although there is no endpoint", buf[:n])
			}
		}
		c.settle(func() { must2(t)(epSlices.Update(ctx, udpSlice(a), metav1.UpdateOptions{})) })
		if got := asks(t, conn); got != "uid-a" {
			t.Errorf("%q answers after uid-a came back", got)
		}
	})
}
