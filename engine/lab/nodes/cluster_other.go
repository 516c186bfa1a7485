//go:build !linux

package nodes

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
)

// Cluster is a set of nodes; only Linux has network namespaces.
type Cluster struct{}

// Node is one node of a Cluster.
type Node struct{}

var errNoNamespaces = &NotAllowedError{
	Refused: "network namespaces", Err: errors.ErrUnsupported,
	Fix: runtime.GOOS + " has none: use the table in memory, or run the lab on Linux",
}

// Start fails: only Linux has network namespaces.
func Start(context.Context, Options) (*Cluster, error) { return nil, errNoNamespaces }

// Path says how packets travel between the nodes.
func (*Cluster) Path() Path { return PathLocal }

// Nodes returns none.
func (*Cluster) Nodes() []*Node { return nil }

// Node returns nil.
func (*Cluster) Node(string) *Node { return nil }

// Close does nothing.
func (*Cluster) Close() error { return nil }

// SetTargetPorts does nothing.
func (*Cluster) SetTargetPorts([]int32) {}

// Name is the node's name.
func (*Node) Name() string { return "" }

// Addresses are none.
func (*Node) Addresses() []netip.Addr { return nil }

// PodCIDRs are none.
func (*Node) PodCIDRs() []netip.Prefix { return nil }

// NetNS is -1.
func (*Node) NetNS() int { return -1 }

// Do fails.
func (*Node) Do(func() error) error { return errNoNamespaces }

// Dial fails.
func (*Node) Dial(context.Context, string, string) (net.Conn, error) { return nil, errNoNamespaces }

// DialFrom fails.
func (*Node) DialFrom(context.Context, string, uint16) (net.Conn, error) {
	return nil, errNoNamespaces
}

// Exec fails.
func (*Node) Exec(context.Context, string, ...string) ([]byte, error) { return nil, errNoNamespaces }

// Allocate fails.
func (*Node) Allocate(string) ([]netip.Addr, error) { return nil, errNoNamespaces }

// Release does nothing.
func (*Node) Release(string) {}

// Listen fails.
func (*Node) Listen(string, string, []netip.Addr, []int32) error { return errNoNamespaces }

// ListenUDP fails.
func (*Node) ListenUDP(string, []int32) error { return errNoNamespaces }

// SetTargetUDPPorts does nothing.
func (*Cluster) SetTargetUDPPorts([]int32) {}

// Close does nothing.
func (*Node) Close(string) {}

// Cut fails.
func (*Node) Cut(bool) error { return errNoNamespaces }
