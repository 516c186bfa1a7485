package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func startCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ask connects from a node and returns the body of the answer.
func ask(t *testing.T, n *Node, addr netip.Addr, port int) (uid, body string, err error) {
	t.Helper()
	c, err := n.Dial(t.Context(), "tcp", netip.AddrPortFrom(addr, uint16(port)).String())
	if err != nil {
		return "", "", err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		return "", "", err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", "", err
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return "", "", err
	}
	return r.Header.Get("X-Pod-UID"), string(b), r.Body.Close()
}

func TestEveryNodeReachesEveryPodOnItsDeclaredPort(t *testing.T) {
	for _, path := range []Path{PathRouted, PathLocal} {
		t.Run(string(path), func(t *testing.T) {
			c := startCluster(t, Options{Count: 3, Path: path, DualStack: true})
			if c.Path() != path {
				t.Fatalf("path %q, want %q", c.Path(), path)
			}
			ips := map[string][]netip.Addr{}
			for _, n := range c.Nodes() {
				uid := "uid-" + n.Name()
				got, err := n.Allocate(uid)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 2 || len(n.PodCIDRs()) != 2 || !n.PodCIDRs()[0].Contains(got[0]) || !n.PodCIDRs()[1].Contains(got[1]) {
					t.Fatalf("%s is not in %s", got, n.PodCIDRs())
				}
				if err := n.Listen(uid, "pod-"+n.Name(), got, []int32{8080}); err != nil {
					t.Fatal(err)
				}
				ips[uid] = got
			}
			for _, n := range c.Nodes() {
				for uid, pair := range ips {
					for _, ip := range pair {
						got, body, err := ask(t, n, ip, 8080)
						if err != nil {
							t.Fatalf("from %s to %s: %v", n.Name(), ip, err)
						}
						if want := fmt.Sprintf("%s pod-%s\n", uid, strings.TrimPrefix(uid, "uid-")); got != uid || body != want {
							t.Errorf("from %s to %s: header %q body %q, want %q", n.Name(), ip, got, body, want)
						}
					}
				}
			}
		})
	}
}

func TestPodsOfTheHostNetworkAnswerAtTheNodesAddressFromEveryNode(t *testing.T) {
	for _, path := range []Path{PathRouted, PathLocal} {
		t.Run(string(path), func(t *testing.T) {
			c := startCluster(t, Options{Count: 2, Path: path, DualStack: true})
			a, b := c.Nodes()[0], c.Nodes()[1]
			c.SetTargetPorts([]int32{7070})
			for uid, port := range map[string]int32{"u1": 8080, "u2": 9090} {
				if err := a.Listen(uid, "host", a.Addresses(), []int32{port}); err != nil {
					t.Fatal(err)
				}
			}
			for _, from := range []*Node{a, b} {
				for port, want := range map[int]string{8080: "u1", 9090: "u2"} {
					for _, addr := range a.Addresses() {
						if got, _, err := ask(t, from, addr, port); err != nil || got != want {
							t.Errorf("from %s to %s: %q, %v", from.Name(), addr, got, err)
						}
					}
				}
				// One of the two has the port that only a Service asks for.
				for _, addr := range a.Addresses() {
					if got, _, err := ask(t, from, addr, 7070); err != nil || got == "" {
						t.Errorf("from %s to %s: %q, %v", from.Name(), addr, got, err)
					}
				}
			}
			if err := a.Listen("u3", "host", a.Addresses(), []int32{8080}); err == nil {
				t.Error("a port that is taken was given out twice")
			}
		})
	}
}

func TestAClientThatOnlyReadsIsAnsweredToo(t *testing.T) {
	c := startCluster(t, Options{Count: 1})
	n := c.Nodes()[0]
	ips, err := n.Allocate("u")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Listen("u", "web", ips, []int32{80}); err != nil {
		t.Fatal(err)
	}
	conn, err := n.Dial(t.Context(), "tcp", netip.AddrPortFrom(ips[0], 80).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(b), "u web\n") {
		t.Fatalf("got %q, %v", b, err)
	}
}

func TestPodsListenOnTargetPortsAsTheyChange(t *testing.T) {
	for _, path := range []Path{PathRouted, PathLocal} {
		t.Run(string(path), func(t *testing.T) {
			c := startCluster(t, Options{Count: 2, Path: path, DualStack: true, Failed: func(err error) { t.Error(err) }})
			a, b := c.Nodes()[0], c.Nodes()[1]
			ips, err := a.Allocate("u")
			if err != nil {
				t.Fatal(err)
			}
			refused := func(port int) {
				t.Helper()
				for _, ip := range ips {
					if _, _, err := ask(t, b, ip, port); !isRefused(err) {
						t.Errorf("%s, port %d: %v, want refused", ip, port, err)
					}
				}
			}
			answered := func(port int) {
				t.Helper()
				for _, ip := range ips {
					if uid, _, err := ask(t, b, ip, port); err != nil || uid != "u" {
						t.Errorf("%s, port %d: %q, %v", ip, port, uid, err)
					}
				}
			}
			refused(8080)
			c.SetTargetPorts([]int32{8080, 8080})
			if err := a.Listen("u", "web", ips, nil); err != nil {
				t.Fatal(err)
			}
			answered(8080)
			refused(9090)
			c.SetTargetPorts([]int32{9090})
			answered(9090)
			refused(8080)
			a.Close("u")
			refused(9090)
		})
	}
}

func TestAnAddressIsUsedAgainAsLateAsPossible(t *testing.T) {
	c := startCluster(t, Options{Count: 1, DualStack: true})
	n := c.Nodes()[0]
	first, err := n.Allocate("a")
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(first) != "[10.244.1.2 fd00:10:244:1::2]" {
		t.Errorf("first addresses %s, want 10.244.1.2 (.1 is reserved) and fd00:10:244:1::2", first)
	}
	if again, err := n.Allocate("a"); err != nil || !slices.Equal(again, first) {
		t.Errorf("asked again: %s, %v; want %s", again, err, first)
	}
	n.Release("a")
	seen := map[netip.Addr]bool{}
	for i := range 252 {
		a, err := n.Allocate(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range a {
			if slices.Contains(first, a) || seen[a] {
				t.Fatalf("allocation %d: %s was used again while others were free", i, a)
			}
			seen[a] = true
		}
	}
	if a, err := n.Allocate("last"); err != nil || !slices.Equal(a, first) {
		t.Errorf("last free address: %s, %v; want %s", a, err, first)
	}
	if _, err := n.Allocate("one more"); err == nil || !strings.Contains(err.Error(), "node-1") {
		t.Errorf("full range: %v, want an error that names the node", err)
	}
}

func TestNodesWithoutARouteToAClusterIPSayUnreachable(t *testing.T) {
	c := startCluster(t, Options{Count: 1, Path: PathRouted, DualStack: true})
	for _, to := range []string{"10.96.0.1:80", "[fd00:10:96::1]:80"} {
		_, err := c.Nodes()[0].Dial(t.Context(), "tcp", to)
		if err == nil || !strings.Contains(err.Error(), "unreachable") && !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("%s: got %v, want unreachable", to, err)
		}
	}
}

func TestDialTakesAddressesOnly(t *testing.T) {
	c := startCluster(t, Options{Count: 1})
	if _, err := c.Nodes()[0].Dial(context.Background(), "tcp", "web:80"); err == nil {
		t.Fatal("a name was taken")
	}
}

func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && strings.Contains(op.Error(), "refused")
}

func BenchmarkStart50(b *testing.B) {
	for b.Loop() {
		c, err := Start(context.Background(), Options{Count: 50})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWithoutDualStackNodesHaveNothingOfIPv6(t *testing.T) {
	for _, path := range []Path{PathRouted, PathLocal} {
		n := startCluster(t, Options{Count: 1, Path: path}).Nodes()[0]
		ips, err := n.Allocate("u")
		if err != nil || len(ips) != 1 || len(n.Addresses()) != 1 || len(n.PodCIDRs()) != 1 {
			t.Errorf("%s: pod %s, node %s %s, %v", path, ips, n.Addresses(), n.PodCIDRs(), err)
		}
		out, err := n.Exec(t.Context(), "ip", "-6", "-o", "addr", "show", "scope", "global")
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %s %v", path, out, err)
		}
	}
}

func TestIPv6CanBeHadWhereTheKernelHasIt(t *testing.T) {
	if err := NoIPv6(); err != nil {
		t.Fatalf("%v, and yet the other tests use it", err)
	}
}

// A node whose pods something else gives a network leaves their addresses alone;
// the others still find the way to it.
func TestAnUnansweredNodeLeavesItsPodsAlone(t *testing.T) {
	c := startCluster(t, Options{Count: 2, Path: PathRouted, Unanswered: []string{"node-2"}})
	for i, n := range c.Nodes() {
		out, err := n.Exec(t.Context(), "ip", "route", "show", "table", "local")
		if err != nil {
			t.Fatal(err)
		}
		if answered := strings.Contains(string(out), n.PodCIDRs()[0].String()); answered != (i == 0) {
			t.Errorf("%s answers for its pods: %v\n%s", n.Name(), answered, out)
		}
	}
	// What is there on the bridge of a CNI plugin is reached from the other node.
	at := add(c.Nodes()[1].PodCIDRs()[0].Addr(), 7)
	if out, err := c.Nodes()[1].Exec(t.Context(), "ip", "address", "add", at.String()+"/32", "dev", "lo"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var l net.Listener
	if err := c.Nodes()[1].Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(at, 80).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := c.Nodes()[0].Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for _, o := range []Options{{Count: 1, Path: PathRouted, Unanswered: []string{"none"}}, {Count: 1, Unanswered: []string{"node-1"}}} {
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestTheKernelRemembersWhereAnUnansweredConnectionWent: one from the same source port
// goes there, too, after the rules have changed. That is why traffic takes source ports
// in turn.
func TestTheKernelRemembersWhereAnUnansweredConnectionWent(t *testing.T) {
	c := startCluster(t, Options{Count: 2, Path: PathRouted})
	from, dead := c.Nodes()[0], c.Nodes()[1]
	pod := func(n *Node, uid string) string {
		ips, err := n.Allocate(uid)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Listen(uid, uid, ips, []int32{8080}); err != nil {
			t.Fatal(err)
		}
		return netip.AddrPortFrom(ips[0], 8080).String()
	}
	gone, alive := pod(dead, "gone"), pod(from, "alive")
	route := func(to string) {
		t.Helper()
		rules := "table ip web; flush table ip web; table ip web { chain out { type nat hook output priority -100; ip daddr 198.51.100.1 tcp dport 80 dnat to " + to + "\n}\n}\n"
		if out, err := from.Exec(t.Context(), "nft", rules); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	try := func(port uint16) error {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		conn, err := from.DialFrom(ctx, "198.51.100.1:80", port)
		if err != nil {
			return err
		}
		if got := conn.LocalAddr().(*net.TCPAddr).Port; got != int(port) {
			t.Errorf("it comes from port %d, not %d", got, port)
		}
		return conn.Close()
	}
	if err := dead.Cut(true); err != nil {
		t.Fatal(err)
	}
	route(gone)
	if err := try(40000); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a dead node answers: %v", err)
	}
	route(alive)
	if err := try(40000); err == nil {
		t.Error("the kernel has forgotten: source ports need not be taken in turn")
	}
	if err := try(40001); err != nil {
		t.Errorf("from another source port: %v", err)
	}
}
