package nodes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

// acceptPause keeps a listener that cannot accept for the moment from spinning.
const acceptPause = 5 * time.Millisecond

// pod is what answers behind a pod's addresses.
type pod struct {
	cluster   *Cluster
	uid, name string
	ips       []netip.Addr
	in        []*Node // whose namespaces its listeners are in

	mu     sync.Mutex
	ports  [transports]ports
	closed bool
}

// Listen makes the pod answer on each of its addresses: on each of the given TCP
// ports and on those that Services target (see SetTargetPorts). Each connection
// gets an HTTP response with the pod's UID and name. Asked again it replaces what was there;
// ports that stay are not interrupted.
func (n *Node) Listen(uid, name string, ips []netip.Addr, ports []int32) error {
	c := n.cluster
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("node %s is closed", n.name)
	}
	p := c.pods[uid]
	if p == nil || !slices.Equal(p.ips, ips) || p.name != name {
		old := p
		p = &pod{cluster: c, uid: uid, name: name, ips: slices.Clone(ips), in: []*Node{n}}
		if c.path == PathLocal {
			p.in = c.nodes
		}
		c.pods[uid] = p
		if old != nil {
			// A pod's addresses or name never changes; whoever asks for another
			// means another pod.
			defer old.close()
		}
	}
	c.mu.Unlock()
	if err := p.declare(tcp, ports); err != nil {
		n.Close(uid)
		return fmt.Errorf("pod %s on node %s: %w", collect.Plain(name), n.name, err)
	}
	return nil
}

// Close stops the pod's listeners. Connections that are being answered go on.
func (n *Node) Close(uid string) {
	c := n.cluster
	c.mu.Lock()
	p := c.pods[uid]
	delete(c.pods, uid)
	c.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// SetTargetPorts says which TCP port numbers Services target. Every open pod
// listens on them beside the ports it declares, since a pod need not declare any:
// in a real container the program listens on what it likes. Options.Failed is told
// what could not be opened.
func (c *Cluster) SetTargetPorts(ports []int32) { c.setTargets(tcp, ports) }

// listenConfig is how to open a port of an address that the namespace answers
// for. Unlike in IPv4 a local route is not enough to bind one of IPv6: the socket
// has to ask for an address that no interface has.
func listenConfig(ip netip.Addr) (c net.ListenConfig) {
	if ip.Is6() {
		c.Control = func(_, _ string, raw syscall.RawConn) error {
			var set error
			if err := raw.Control(func(fd uintptr) {
				set = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
			}); err != nil {
				return err
			}
			return set
		}
	}
	return c
}

func (p *pod) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// A connection that broke, or no descriptors left for the moment:
			// the listener itself is fine, the client sees its own error.
			time.Sleep(acceptPause)
			continue
		}
		go answer(c, p.uid, p.name)
	}
}

func (p *pod) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for i := range p.ports {
		p.ports[i].close(func(int32) bool { return true })
	}
}
