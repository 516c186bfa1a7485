package fakenet

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

// Network is the pods' network of one node. Its methods are safe for concurrent
// use.
type Network struct {
	mu     sync.Mutex
	free   [][]netip.Addr
	owner  map[string][]netip.Addr
	open   map[string]listener
	status func(uid string) int
	log    []string
}

type listener struct {
	name  string
	ips   []netip.Addr
	ports []int32
}

var _ kubelet.Sandbox = &Network{}

// New makes a network whose pods get addresses of the prefix from the second
// one on, size of them at most, and one of each further prefix.
func New(pods netip.Prefix, size int, more ...netip.Prefix) *Network {
	n := &Network{owner: map[string][]netip.Addr{}, open: map[string]listener{}}
	var next []netip.Addr
	for _, p := range append([]netip.Prefix{pods}, more...) {
		next = append(next, p.Masked().Addr().Next().Next())
	}
	for i := 0; pods.Contains(next[0]) && i < size; i++ {
		n.free = append(n.free, slices.Clone(next))
		for j := range next {
			next[j] = next[j].Next()
		}
	}
	return n
}

// SetStatus sets which HTTP status each pod answers with; 200 when nil.
func (n *Network) SetStatus(f func(uid string) int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = f
}

// Log returns what was done, in order, as "listen UID", "close UID" and so on.
func (n *Network) Log() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}

// Allocate implements kubelet.Sandbox.
func (n *Network) Allocate(uid string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.owner[uid]; ok {
		return a, nil
	}
	if len(n.free) == 0 {
		return nil, fmt.Errorf("all %d pod addresses are in use", len(n.owner))
	}
	a := n.free[0]
	n.free = n.free[1:]
	n.owner[uid] = a
	n.log = append(n.log, "allocate "+uid)
	return a, nil
}

// Release implements kubelet.Sandbox.
func (n *Network) Release(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.owner[uid]; ok {
		delete(n.owner, uid)
		n.free = append(n.free, a)
		n.log = append(n.log, "release "+uid)
	}
}

// Listen implements kubelet.Sandbox.
func (n *Network) Listen(uid, name string, ips []netip.Addr, ports []int32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[uid] = listener{name, slices.Clone(ips), slices.Clone(ports)}
	n.log = append(n.log, "listen "+uid)
	return nil
}

// ListenUDP implements kubelet.Sandbox. Nobody answers.
func (n *Network) ListenUDP(string, []int32) error { return nil }

// Close implements kubelet.Sandbox.
func (n *Network) Close(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.open[uid]; ok {
		delete(n.open, uid)
		n.log = append(n.log, "close "+uid)
	}
}

// Dial implements kubelet.Sandbox: it is refused where no pod listens.
func (n *Network) Dial(_ context.Context, network, addr string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(service, 10, 32)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, l := range n.open {
		if !slices.ContainsFunc(l.ips, func(a netip.Addr) bool { return a.String() == host }) || !slices.Contains(l.ports, int32(port)) {
			continue
		}
		status := http.StatusOK
		if n.status != nil {
			status = n.status(uid)
		}
		client, server := net.Pipe()
		go answer(server, status, uid+" "+l.name+"\n")
		return client, nil
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

func answer(c net.Conn, status int, body string) {
	defer c.Close()
	if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
		return // a tcpSocket probe, which says nothing
	}
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}
