package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/netns"
)

// Cluster is a set of nodes and the network between them. It is safe for
// concurrent use.
type Cluster struct {
	opts   Options
	path   Path
	fabric int // namespace of the fabric, -1 without one
	nodes  []*Node

	mu      sync.Mutex
	closed  bool
	targets [transports][]int32 // ports that Services target, sorted
	pods    map[string]*pod
}

// Node is one node: a network namespace with an address and a range of pod
// addresses of each family, and listeners. It is safe for concurrent use.
type Node struct {
	cluster *Cluster
	number  int // from 1
	name    string
	addrs   []netip.Addr
	pods    []netip.Prefix // one for each of addrs
	ns      int

	mu   sync.Mutex
	pool *pool
}

// Start makes the nodes. A *NotAllowedError means that this machine or user may
// not have network namespaces. The caller must Close the cluster; should the
// process end before, the kernel cleans up.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Path == PathLocal {
		return start(ctx, o, PathLocal)
	}
	c, err := start(ctx, o, PathRouted)
	var refused *NotAllowedError
	if err == nil || o.Path == PathRouted || errors.As(err, &refused) || ctx.Err() != nil {
		return c, err
	}
	local, localErr := start(ctx, o, PathLocal)
	if localErr != nil {
		return nil, errors.Join(err, localErr)
	}
	return local, nil
}

func start(ctx context.Context, o Options, path Path) (_ *Cluster, err error) {
	c := &Cluster{opts: o, path: path, fabric: -1, pods: map[string]*pod{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	var fabric *netlink.Handle
	if path == PathRouted {
		c.fabric, err = newNetNS(func() error {
			if err := quiet(o.DualStack); err != nil {
				return err
			}
			if err := sysctl("ipv4.ip_forward", "1"); err != nil {
				return err
			}
			if o.DualStack {
				if err := sysctl("ipv6.conf.all.forwarding", "1"); err != nil {
					return err
				}
			}
			if fabric, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
				return fmt.Errorf("open a route socket: %w", err)
			}
			return setUp(fabric)
		})
		if err != nil {
			return nil, fmt.Errorf("make the fabric between the nodes: %w", err)
		}
		defer fabric.Close()
	}
	for i, name := range o.Names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := &Node{cluster: c, number: i + 1, name: name, addrs: o.nodeAddrs(i + 1), pods: o.podCIDRs(i + 1), ns: -1}
		n.pool = newPool(n.pods, o.reuse(name))
		c.nodes = append(c.nodes, n)
		if err := n.start(i+1, fabric); err != nil {
			return nil, fmt.Errorf("make node %s: %w", name, err)
		}
	}
	return c, nil
}

func (n *Node) start(number int, fabric *netlink.Handle) (err error) {
	o := n.cluster.opts
	n.ns, err = newNetNS(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open a route socket: %w", err)
		}
		defer h.Close()
		if fabric == nil {
			if o.DualStack {
				if err := allowIPv6(); err != nil {
					return err
				}
			}
			if err := setUp(h, n.elsewhere()...); err != nil {
				return err
			}
			for _, a := range n.addrs {
				if err := localPath(h, a, o.services(a)); err != nil {
					return err
				}
			}
			return nil
		}
		if err := quiet(o.DualStack); err != nil {
			return err
		}
		answered := n.pods
		if slices.Contains(o.Unanswered, n.name) {
			answered = nil
		}
		if err := setUp(h, answered...); err != nil {
			return err
		}
		self, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /proc/thread-self/ns/net: %w", err)
		}
		defer func() { _ = unix.Close(self) }()
		fabricEnd, err := link(fabric, self, number, n.addrs, o.gateway)
		if err != nil {
			return err
		}
		nodeEnd, err := joinFabric(h, n.addrs, o.gateway, fabricEnd)
		if err != nil {
			return err
		}
		for i, a := range n.addrs {
			if err := routeToNode(fabric, number, a, n.pods[i], nodeEnd); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// elsewhere is what a node answers for by itself where there are no links: the
// pods of all nodes, and those that have the address of another node.
func (n *Node) elsewhere() []netip.Prefix {
	o := n.cluster.opts
	out := []netip.Prefix{o.PodCIDR}
	if o.DualStack {
		out = append(out, PodCIDRv6)
	}
	for i := range o.Names {
		for _, a := range o.nodeAddrs(i + 1) {
			if !slices.Contains(n.addrs, a) {
				out = append(out, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	}
	return out
}

// Path says how packets travel between the nodes.
func (c *Cluster) Path() Path { return c.path }

// Nodes returns the nodes in the order of their names in Options.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// Node returns the node with the name, or nil.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// Close stops every listener and gives up the namespaces, which the kernel
// removes once nothing else holds them. It may be called more than once.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	open := make([]*pod, 0, len(c.pods))
	for _, p := range c.pods {
		open = append(open, p)
	}
	clear(c.pods)
	c.mu.Unlock()
	for _, p := range open {
		p.close()
	}
	var errs []error
	for _, n := range c.nodes {
		n.mu.Lock()
		if n.ns >= 0 {
			errs = append(errs, closeNS(n.ns, "node "+n.name))
			n.ns = -1
		}
		n.mu.Unlock()
	}
	if c.fabric >= 0 {
		errs = append(errs, closeNS(c.fabric, "the fabric"))
		c.fabric = -1
	}
	return errors.Join(errs...)
}

func closeNS(fd int, of string) error {
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("give up the network namespace of %s: %w", of, err)
	}
	return nil
}

// Name is the node's name.
func (n *Node) Name() string { return n.name }

// Addresses are the node's own: one of IPv4 and, in a dual-stack cluster, one of
// IPv6 after it.
func (n *Node) Addresses() []netip.Addr { return slices.Clone(n.addrs) }

// PodCIDRs are the ranges of the node's pods, one for each of its addresses.
func (n *Node) PodCIDRs() []netip.Prefix { return slices.Clone(n.pods) }

// NetNS is a file descriptor of the node's network namespace, for netlink
// libraries. It belongs to the node and is valid until the cluster is closed,
// after which NetNS is -1.
func (n *Node) NetNS() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ns
}

// Do runs f on a thread inside the node's namespace. Sockets that f opens there
// stay in the namespace and can be used from anywhere. Goroutines that f starts
// are not inside.
func (n *Node) Do(f func() error) error {
	ns := n.NetNS()
	if ns < 0 {
		return fmt.Errorf("node %s is closed", n.name)
	}
	return netns.Do(ns, f)
}

// Dial connects from inside the node's namespace. addr must be an address and
// a port, since names would be resolved elsewhere.
func (n *Node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("dial from node %s: want ADDRESS:PORT: %w", n.name, err)
	}
	return n.dial(ctx, new(net.Dialer), network, addr)
}

// DialFrom is Dial over TCP from a source port, which others may have to other
// addresses. The error is EADDRINUSE or EADDRNOTAVAIL where somebody has it.
func (n *Node) DialFrom(ctx context.Context, addr string, port uint16) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("dial from node %s: want ADDRESS:PORT: %w", n.name, err)
	}
	return n.dial(ctx, &net.Dialer{LocalAddr: &net.TCPAddr{Port: int(port)}, Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		})
		return errors.Join(err, failed)
	}}, "tcp", addr)
}

func (n *Node) dial(ctx context.Context, d *net.Dialer, network, addr string) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = d.DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

// Exec runs a program inside the node's network namespace and returns what it
// printed. It is meant for tests and for looking around (nft, ip).
func (n *Node) Exec(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out []byte
	err := n.Do(func() (err error) {
		out, err = exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s on node %s: %w: %s", name, n.name, err, collect.Plain(string(out)))
		}
		return nil
	})
	return out, err
}

// Allocate gives the pod an address out of each of the node's ranges, those that
// have been free for the longest. Asked again for the same pod it returns the
// same ones.
func (n *Node) Allocate(uid string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.pool.take(uid)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.name, err)
	}
	return a, nil
}

// Release gives the pod's addresses back and stops its listeners.
func (n *Node) Release(uid string) {
	n.Close(uid)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pool.release(uid)
}
