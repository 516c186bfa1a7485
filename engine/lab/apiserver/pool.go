package apiserver

import "sync"

// pool hands out the numbers of a range, each to one holder at a time. A
// number given back is used again last, so a rule left behind in some kernel
// does not soon point at another Service. Safe for concurrent use.
type pool struct {
	mu          sync.Mutex
	first, last uint32 // may be held
	from        uint32 // the first that is given to who does not ask for one
	next        uint32
	held        map[uint32]struct{}
}

func newPool(first, from, last uint32) *pool {
	return &pool{first: first, last: last, from: from, next: from, held: map[uint32]struct{}{}}
}

// take holds n; ok is false when somebody else does.
func (p *pool) take(n uint32) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.held[n]; taken {
		return false
	}
	p.held[n] = struct{}{}
	return true
}

// any holds and returns a free number; ok is false when all are held.
func (p *pool) any() (n uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.last - p.from + 1 {
		n := p.next
		if p.next++; p.next > p.last {
			p.next = p.from
		}
		if _, taken := p.held[n]; !taken {
			p.held[n] = struct{}{}
			return n, true
		}
	}
	return 0, false
}

func (p *pool) free(n uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, n)
}

func (p *pool) contains(n uint32) bool { return n >= p.first && n <= p.last }

// The ranges are the ones kubeadm and kube-apiserver default to
// (--service-cluster-ip-range, --service-node-port-range). As there, the low
// part of the address range is left for addresses chosen by hand
// (pkg/registry/core/service/ipallocator).
const (
	// ServiceCIDR is where ClusterIPs of IPv4 come from.
	ServiceCIDR = "10.96.0.0/12"
	// ServiceCIDRv6 is where those of IPv6 come from; kubeadm and
	// kube-apiserver have no default for it.
	ServiceCIDRv6 = "fd00:10:96::/112"

	serviceIPsByHand = 256
	nodePortFirst    = 30000
	nodePortLast     = 32767
	nodePortsByHand  = 86
)

func newNodePorts() *pool {
	return newPool(nodePortFirst, nodePortFirst+nodePortsByHand, nodePortLast)
}
