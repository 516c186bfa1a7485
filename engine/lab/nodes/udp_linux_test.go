package nodes

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// Both families, on both paths: an address of IPv6 that no interface has can only
// be bound by a socket that asks for it.
func TestPodsAnswerOverUDPOnEachAddress(t *testing.T) {
	for _, path := range []Path{PathRouted, PathLocal} {
		t.Run(string(path), func(t *testing.T) {
			n := startCluster(t, Options{Count: 1, Path: path, DualStack: true}).Nodes()[0]
			ips, err := n.Allocate("u")
			if err != nil || len(ips) != 2 {
				t.Fatalf("%s %v", ips, err)
			}
			if err := n.Listen("u", "web", ips, nil); err != nil {
				t.Fatal(err)
			}
			if err := n.ListenUDP("u", []int32{5353}); err != nil {
				t.Fatal(err)
			}
			for _, ip := range ips {
				conn, err := n.Dial(t.Context(), "udp", netip.AddrPortFrom(ip, 5353).String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if got := datagram(t, conn); got != "u web\n" {
					t.Errorf("%s answers %q", ip, got)
				}
			}
		})
	}
}

// datagram sends datagrams until one is answered.
func datagram(t *testing.T, conn net.Conn) string {
	t.Helper()
	buf := make([]byte, 256)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if _, err := conn.Write([]byte("?")); err != nil && !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(buf); err == nil {
			return string(buf[:n])
		}
	}
	t.Fatalf("%s does not answer", conn.RemoteAddr())
	return ""
}
