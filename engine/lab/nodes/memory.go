package nodes

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/kconverge/kconverge/collect"
)

// Memory is a set of nodes where network namespaces are refused: addresses and
// pods that answer, but no network. A node reaches the pods of all nodes by
// their addresses, as its kubelet's probes need it; nothing leads to them from a
// ClusterIP, since no packets flow. It is safe for concurrent use.
type Memory struct {
	nodes []*MemoryNode

	mu      sync.Mutex
	closed  bool
	targets []int32
	pods    map[string]memoryPod // by UID
	cut     map[string]bool      // nodes that nothing reaches
}

type memoryPod struct {
	name     string
	ips      []netip.Addr
	declared []int32
	node     string
}

// MemoryNode is one node of a Memory.
type MemoryNode struct {
	cluster *Memory
	name    string
	addrs   []netip.Addr
	cidrs   []netip.Prefix

	mu   sync.Mutex
	pool *pool
}

// StartInMemory makes nodes in memory, with the names and addresses that Start
// gives them.
func StartInMemory(o Options) (*Memory, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Memory{pods: map[string]memoryPod{}, cut: map[string]bool{}}
	for i, name := range o.Names {
		cidrs := o.podCIDRs(i + 1)
		m.nodes = append(m.nodes, &MemoryNode{cluster: m, name: name, addrs: o.nodeAddrs(i + 1), cidrs: cidrs, pool: newPool(cidrs, o.reuse(name))})
	}
	return m, nil
}

// Nodes returns the nodes in the order of their names in Options.
func (m *Memory) Nodes() []*MemoryNode { return slices.Clone(m.nodes) }

// SetTargetPorts says which port numbers Services target: every pod answers on
// them beside those it declares.
func (m *Memory) SetTargetPorts(ports []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets = slices.Clone(ports)
}

// SetTargetUDPPorts does nothing: no packets flow in memory.
func (m *Memory) SetTargetUDPPorts([]int32) {}

// ListenUDP does nothing: no packets flow in memory.
func (n *MemoryNode) ListenUDP(string, []int32) error { return nil }

// Close lets no pod answer any more.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	clear(m.pods)
	return nil
}

// Name is the node's name.
func (n *MemoryNode) Name() string { return n.name }

// Addresses are the node's own: one of IPv4 and, in a dual-stack cluster, one of
// IPv6 after it.
func (n *MemoryNode) Addresses() []netip.Addr { return slices.Clone(n.addrs) }

// PodCIDRs are the ranges of the node's pods, one for each of its addresses.
func (n *MemoryNode) PodCIDRs() []netip.Prefix { return slices.Clone(n.cidrs) }

// Allocate gives the pod an address out of each of the node's ranges, those that
// have been free for the longest. Asked again for the same pod it returns the
// same ones.
func (n *MemoryNode) Allocate(uid string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := n.pool.take(uid)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.name, err)
	}
	return a, nil
}

// Release gives the pod's addresses back and lets it answer no more.
func (n *MemoryNode) Release(uid string) {
	n.Close(uid)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pool.release(uid)
}

// Listen makes the pod answer on its addresses, on the given TCP ports and on those that
// Services target. Asked again it replaces what was there.
func (n *MemoryNode) Listen(uid, name string, ips []netip.Addr, ports []int32) error {
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("pod %s on node %s: port %d is not between 1 and 65535", collect.Plain(name), n.name, port)
		}
	}
	m := n.cluster
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("node %s is closed", n.name)
	}
	m.pods[uid] = memoryPod{name, slices.Clone(ips), slices.Clone(ports), n.name}
	return nil
}

// Close lets the pod answer no more. Connections that are being answered go on.
func (n *MemoryNode) Close(uid string) {
	m := n.cluster
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}

// Dial connects to a pod, which answers as those of Start do; everywhere else
// connections are refused. addr must be an address and a port.
func (n *MemoryNode) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial from node %s: want ADDRESS:PORT: %w", n.name, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := n.cluster
	m.mu.Lock()
	cut := m.cut[n.name]
	for _, p := range m.pods {
		cut = cut || m.cut[p.node] && slices.Contains(p.ips, to.Addr())
	}
	if cut {
		m.mu.Unlock()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: ctx.Err()}
	}
	defer m.mu.Unlock()
	for uid, p := range m.pods {
		if !slices.Contains(p.ips, to.Addr()) || !slices.Contains(p.declared, int32(to.Port())) && !slices.Contains(m.targets, int32(to.Port())) {
			continue
		}
		client, server := net.Pipe()
		go answer(server, uid, p.name)
		return client, nil
	}
	return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: syscall.ECONNREFUSED}
}

// Cut takes the node off the network, or puts it back: meanwhile what connects to its
// pods, or from it, hears nothing.
func (n *MemoryNode) Cut(off bool) error {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cluster.cut[n.name] = off
	return nil
}
