package traffic

import "sync"

// The range of Linux's net.ipv4.ip_local_port_range.
const (
	firstPort = 32768
	lastPort  = 60999
)

// portTries is how many source ports are tried where others have them.
const portTries = 8

// ports gives the source ports of connections, those of one node to one address in
// turn. The kernel remembers for two minutes where it sent the first packet of a
// connection that nobody answered (net.netfilter.nf_conntrack_tcp_timeout_syn_sent), and
// sends one from the same source port there as well, whatever its rules say by then.
// Taken in turn none comes back within that time, at the highest rate; taken by chance,
// as programs let the kernel do it, one fails now and then for what another met before. It is safe for concurrent use.
type ports struct {
	mu   sync.Mutex
	last map[[2]string]uint16
}

func (p *ports) next(node, address string) uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[[2]string]uint16{}
	}
	key := [2]string{node, address}
	port := p.last[key] + 1
	if port < firstPort || port > lastPort {
		port = firstPort
	}
	p.last[key] = port
	return port
}
