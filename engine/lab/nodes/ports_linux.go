package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"syscall"

	"github.com/kconverge/kconverge/collect"
)

// transport is a protocol that pods answer over.
type transport int

const (
	tcp transport = iota
	udp
	transports
)

// ports are a pod's of one transport.
type ports struct {
	declared []int32
	open     map[int32][]io.Closer
}

// close closes the ports that are chosen.
func (ps *ports) close(chosen func(port int32) bool) {
	for port, sockets := range ps.open {
		if !chosen(port) {
			continue
		}
		for _, s := range sockets {
			_ = s.Close()
		}
		delete(ps.open, port)
	}
}

// setTargets says which ports Services target.
func (c *Cluster) setTargets(t transport, ports []int32) {
	ports = slices.Clone(ports)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	c.mu.Lock()
	if slices.Equal(ports, c.targets[t]) {
		c.mu.Unlock()
		return
	}
	c.targets[t] = ports
	open := make([]*pod, 0, len(c.pods))
	for _, p := range c.pods {
		open = append(open, p)
	}
	c.mu.Unlock()
	for _, p := range open {
		if err := p.adjust(t); err != nil {
			c.opts.Failed(fmt.Errorf("pod %s: %w", collect.Plain(p.name), err))
		}
	}
}

func (c *Cluster) targeted(t transport) []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.targets[t]
}

func (p *pod) declare(t transport, ports []int32) error {
	p.mu.Lock()
	p.ports[t].declared = slices.Clone(ports)
	p.mu.Unlock()
	return p.adjust(t)
}

// adjust opens what is missing of the declared and the targeted ports and closes
// what is neither.
func (p *pod) adjust(t transport) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	ps := &p.ports[t]
	want := map[int32]bool{}
	// Targets are read under the pod's lock, so that of two adjustments the later
	// one has the later ports.
	for _, port := range slices.Concat(ps.declared, p.cluster.targeted(t)) {
		if port < 1 || port > 65535 {
			return fmt.Errorf("port %d is not between 1 and 65535", port)
		}
		want[port] = true
	}
	ps.close(func(port int32) bool { return !want[port] })
	var missing []int32
	for port := range want {
		if ps.open[port] == nil {
			missing = append(missing, port)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, n := range p.in {
		if err := n.Do(func() error { return p.openIn(t, missing) }); err != nil {
			return err
		}
	}
	return nil
}

// openIn opens the ports in the calling thread's namespace. p.mu is held.
func (p *pod) openIn(t transport, missing []int32) error {
	ps := &p.ports[t]
	if ps.open == nil {
		ps.open = map[int32][]io.Closer{}
	}
	for _, port := range missing {
		for _, ip := range p.ips {
			s, err := p.open(t, netip.AddrPortFrom(ip, uint16(port)))
			if errors.Is(err, syscall.EADDRINUSE) && !slices.Contains(ps.declared, port) {
				// Another pod with the node's own address has it; what a Service
				// targets is no demand of this one's.
				continue
			}
			if err != nil {
				return err
			}
			ps.open[port] = append(ps.open[port], s)
		}
	}
	return nil
}

// open answers on an address until the socket is closed.
func (p *pod) open(t transport, at netip.AddrPort) (io.Closer, error) {
	c := listenConfig(at.Addr())
	if t == udp {
		conn, err := c.ListenPacket(context.Background(), "udp", at.String())
		if err != nil {
			return nil, err
		}
		go p.serveUDP(conn)
		return conn, nil
	}
	l, err := c.Listen(context.Background(), "tcp", at.String())
	if err != nil {
		return nil, err
	}
	go p.serve(l)
	return l, nil
}
