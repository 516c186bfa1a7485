package nodelog

import (
	"net/netip"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// watchSlack is how much later the viewer's watch may deliver an EndpointSlice
// than a node's kube-proxy has routed to what it brought.
const watchSlack = 100 * time.Millisecond

// goneMax is how many addresses that no slice publishes any more are remembered:
// some 10 MB. Of what went longer ago, a node that still brings it would have
// been behind by as many removals.
const goneMax = 50_000

// Causes remembers when EndpointSlices first published each address: no node
// can have routed to it before. It is a collect.Sink, to be told what the
// watches of the same viewer tell, and safe for concurrent use.
type Causes struct {
	mu     sync.Mutex
	limit  int // goneMax
	first  map[published]publication
	slices map[collect.ObjectKey][]published
	// gone are the addresses as they went, the oldest first. One that came
	// back meanwhile, or went once more, is passed over by its number.
	gone  []departure
	count uint64
}

// published is an address as a Service's slices publish it.
type published struct {
	namespace, service string
	addr               netip.AddrPort
}

type publication struct {
	at time.Time
	// spoiled: it was there before, or was published more than once, so that
	// a rule can stem from another time.
	spoiled bool
	slices  int    // how many publish it now
	went    uint64 // the number of its last departure
}

type departure struct {
	published
	number uint64
}

// NewCauses returns Causes that know nothing.
func NewCauses() *Causes {
	return &Causes{limit: goneMax, first: map[published]publication{}, slices: map[collect.ObjectKey][]published{}}
}

// Emit implements collect.Sink. Everything but EndpointSlices passes by.
func (c *Causes) Emit(e collect.Event) {
	sl, ok := e.Payload.(*collect.EndpointSlice)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var now []published
	has := map[published]bool{}
	gone := e.Op == collect.OpDeleted || e.Op == collect.OpGone
	if !gone {
		for i := range sl.Endpoints {
			if ep := &sl.Endpoints[i]; ep.Ready || ep.Serving {
				for _, p := range sl.Ports {
					a := published{e.Object.Namespace, sl.Service, netip.AddrPortFrom(ep.Address.Unmap(), uint16(p.Port))}
					if !has[a] { // one port of two protocols is there twice
						has[a] = true
						now = append(now, a)
					}
				}
			}
		}
	}
	observed := e.Op == collect.OpAdded || e.Op == collect.OpModified
	had := map[published]bool{}
	for _, p := range c.slices[e.Object] {
		had[p] = true
	}
	for _, p := range now {
		if had[p] {
			continue
		}
		x, known := c.first[p]
		if !known {
			x = publication{at: e.At, spoiled: !observed || !e.NotBefore.IsZero()}
		}
		x.slices++
		c.first[p] = x
	}
	for p := range had {
		if !has[p] {
			c.leave(p)
		}
	}
	if gone {
		delete(c.slices, e.Object)
	} else {
		c.slices[e.Object] = now
	}
}

// leave notes that a slice publishes the address no more, and forgets those that
// went longest ago.
func (c *Causes) leave(p published) {
	x := c.first[p]
	x.spoiled = true
	if x.slices--; x.slices == 0 {
		c.count++
		x.went = c.count
		c.gone = append(c.gone, departure{p, c.count})
	}
	c.first[p] = x
	for len(c.gone) > c.limit {
		d := c.gone[0]
		c.gone = c.gone[1:]
		if x := c.first[d.published]; x.slices == 0 && x.went == d.number {
			delete(c.first, d.published)
		}
	}
}

// of returns when the address was published, if that was once only and was
// seen.
func (c *Causes) of(k *collect.RulePortKey, addr netip.AddrPort) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.first[published{k.Namespace, k.Service, netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())}]
	return p.at, ok && !p.spoiled
}

// latest is when the latest of what the ports route to was published; zero when none of
// it is known.
func (c *Causes) latest(ports []collect.RulePort) (last time.Time) {
	for i := range ports {
		for _, a := range ports[i].Endpoints {
			if t, ok := c.of(&ports[i].RulePortKey, a); ok && t.After(last) {
				last = t
			}
		}
	}
	return last
}
