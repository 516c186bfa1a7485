package timeline

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// addressTaken notes that a pod was given an address that another had: from then on
// whoever still routes to the other reaches this one. Pods on their node's network
// share an address by design.
func (ch *change) addressTaken(p *podState, ip addr) {
	m := ch.m
	was := m.podByIP[ip]
	if p.pod.HostNetwork {
		return
	}
	m.podByIP[ip] = p
	if was == nil || was == p || !was.taken[ip].IsZero() || ch.baseline || !ch.notBefore.IsZero() {
		return
	}
	if was.taken == nil {
		was.taken = map[addr]time.Time{}
	}
	was.taken[ip] = ch.at
	for _, x := range was.paths {
		x.touch()
	}
}

// takeAddresses notes the addresses that a pod has now and had not before.
func (ch *change) takeAddresses(p *podState, now *collect.Pod) {
	for _, ip := range now.IPs {
		if ip = ip.Unmap(); !slices.Contains(p.ips, ip) {
			p.ips = append(p.ips, ip)
			ch.addressTaken(p, ip)
		}
	}
}

// dropAddresses forgets a pod's addresses.
func (m *Model) dropAddresses(p *podState) {
	for _, ip := range p.ips {
		if m.podByIP[ip] == p {
			delete(m.podByIP, ip)
		}
	}
}

// wrongPod is for how long nodes routed to a removed endpoint although its address
// was another pod's already: until the last of them let go, or a slice said whose it
// is. growing: some node still does. Zero when that never was, or is not known.
func (p *path) wrongPod() (d time.Duration, growing bool) {
	if p.Op != OpRemove || p.pod == nil {
		return 0, false
	}
	taken, ok := p.pod.taken[p.Endpoint.IP]
	if !ok {
		return 0, false
	}
	var last time.Time
	for _, h := range p.rules {
		at := h.At
		switch h.Status {
		case StatusOpen:
			at, growing = p.svc.m.now, true
		case StatusHandedOver:
			at = h.closedAt
		}
		if at.After(last) {
			last = at
		}
	}
	if d = last.Sub(taken); last.IsZero() || d <= 0 {
		return 0, false
	}
	return d, growing
}
