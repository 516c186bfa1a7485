package kubelet

import (
	"context"
	"net"
	"net/netip"
)

// Sandbox is a node's network as its kubelet needs it. All methods are safe for
// concurrent use.
type Sandbox interface {
	// Allocate gives the pod an address out of each of the node's ranges, the
	// least recently used ones first. Asked again for a pod that has some it
	// returns the same, so that a restarted kubelet finds its pods. The first
	// is the pod's primary one.
	Allocate(uid string) ([]netip.Addr, error)
	// Release gives the pod's addresses back, if it has some.
	Release(uid string)
	// Listen opens the pod's listeners on each of its addresses: they answer every connection with an
	// HTTP/1.1 response whose body is the pod's UID and name. ports are the
	// declared TCP container ports; the sandbox adds the ports that Services
	// target. Asked again it replaces what was there.
	Listen(uid, name string, ips []netip.Addr, ports []int32) error
	// ListenUDP opens the UDP ports of a pod that listens: they answer each
	// datagram by one with the pod's UID and name. ports are the declared
	// ones; the sandbox adds those that Services target.
	ListenUDP(uid string, ports []int32) error
	// Close closes the pod's listeners, if there are any.
	Close(uid string)
	// Dial connects from the node's own network.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}
