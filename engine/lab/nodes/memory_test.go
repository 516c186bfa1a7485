package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

func TestPodsInMemoryAnswerWithTheirUIDOnDeclaredAndTargetedPorts(t *testing.T) {
	m, err := StartInMemory(Options{Count: 2, DualStack: true})
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.Nodes()[0], m.Nodes()[1]
	if a.Name() != "node-1" || fmt.Sprint(b.PodCIDRs(), b.Addresses()) != "[10.244.2.0/24 fd00:10:244:2::/64] [198.18.0.2 2001:2::2]" {
		t.Errorf("%s, %s %s: not what Start gives them", a.Name(), b.PodCIDRs(), b.Addresses())
	}
	ips, err := a.Allocate("u")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Allocate("u"); err != nil || !slices.Equal(again, ips) {
		t.Errorf("asked again: %s, %v", again, err)
	}
	askAt := func(ip netip.Addr, port int) string {
		t.Helper()
		conn, err := b.Dial(context.Background(), "tcp", netip.AddrPortFrom(ip, uint16(port)).String())
		if errors.Is(err, syscall.ECONNREFUSED) {
			return "refused"
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Get("X-Pod-UID")
	}
	ask := func(port int) string {
		t.Helper()
		four, six := askAt(ips[0], port), askAt(ips[1], port)
		if four != six {
			return four + " but at the other address " + six
		}
		return four
	}
	steps := []struct {
		do         func()
		p80, p8080 string
	}{
		{func() {}, "refused", "refused"},
		{func() {
			if err := a.Listen("u", "web", ips, []int32{8080}); err != nil {
				t.Fatal(err)
			}
		}, "refused", "u"},
		{func() { m.SetTargetPorts([]int32{80}) }, "u", "u"},
		{func() { m.SetTargetPorts(nil) }, "refused", "u"},
		{func() { a.Release("u") }, "refused", "refused"},
	}
	for i, s := range steps {
		s.do()
		if p80, p8080 := ask(80), ask(8080); p80 != s.p80 || p8080 != s.p8080 {
			t.Errorf("step %d: 80 %s, 8080 %s; want %s, %s", i, p80, p8080, s.p80, s.p8080)
		}
	}
	if next, err := a.Allocate("v"); err != nil || slices.Equal(next, ips) {
		t.Errorf("a released address was used again at once: %s, %v", next, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Listen("v", "web", ips, nil); err == nil {
		t.Error("a closed node took a pod")
	}
}
