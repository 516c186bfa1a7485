package nodes

import (
	"errors"
	"fmt"
	"net"

	"github.com/kconverge/kconverge/collect"
)

// ListenUDP makes a pod that listens (Listen) answer on UDP ports too: on the
// given ones and on those that Services target (see SetTargetUDPPorts). Each
// datagram is answered by one with the pod's UID and name. Asked again it
// replaces what was there.
func (n *Node) ListenUDP(uid string, ports []int32) error {
	n.cluster.mu.Lock()
	p := n.cluster.pods[uid]
	n.cluster.mu.Unlock()
	if p == nil {
		return fmt.Errorf("pod %s on node %s does not listen", collect.Plain(uid), n.name)
	}
	if err := p.declare(udp, ports); err != nil {
		return fmt.Errorf("pod %s on node %s: %w", collect.Plain(p.name), n.name, err)
	}
	return nil
}

// SetTargetUDPPorts says which UDP port numbers Services target, as
// SetTargetPorts does for TCP.
func (c *Cluster) SetTargetUDPPorts(ports []int32) { c.setTargets(udp, ports) }

// serveUDP answers until the socket is closed.
func (p *pod) serveUDP(c net.PacketConn) {
	answer := fmt.Appendf(nil, "%s %s\n", collect.Plain(p.uid), collect.Plain(p.name))
	buf := make([]byte, 1) // what is asked does not matter
	for {
		_, from, err := c.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			// A client that is gone or out of reach does not concern others.
			_, _ = c.WriteTo(answer, from)
		}
	}
}
