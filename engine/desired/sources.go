package desired

import (
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// DefaultAffinityTimeout is Kubernetes' default for
// sessionAffinityConfig.clientIP.timeoutSeconds.
const DefaultAffinityTimeout = 3 * time.Hour

// AffinityTimeout is for how long a client of the Service stays with its
// endpoint; 0 without session affinity.
func AffinityTimeout(svc *collect.Service) time.Duration {
	switch {
	case svc.SessionAffinity != "ClientIP":
		return 0
	case svc.AffinityTimeout == 0:
		return DefaultAffinityTimeout
	}
	return svc.AffinityTimeout
}

// LoadBalancerSources lists where connections to the Service's load balancer
// addresses of a family may come from, as kube-proxy writes it: unsorted and
// with overlaps. nil means anywhere: without ranges in the family, with one that
// has every address, or without an address to protect (serviceport.go). When a
// range has the node itself, the load balancer's addresses are sources too: a
// node that has one as its own sends from it (nftables/proxier.go).
func LoadBalancerSources(svc *collect.Service, family collect.Family, node NodeRef) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range svc.SourceRanges {
		if collect.FamilyOf(p.Addr()) != family {
			continue
		}
		if p.Bits() == 0 {
			return nil
		}
		out = append(out, p)
	}
	var vips []netip.Prefix
	for _, ip := range svc.LoadBalancerIPs {
		if collect.FamilyOf(ip) == family {
			ip = ip.Unmap()
			vips = append(vips, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	if len(out) == 0 || len(vips) == 0 {
		return nil
	}
	// The node's address is the first of the family.
	i := slices.IndexFunc(node.Addresses, func(a netip.Addr) bool { return collect.FamilyOf(a) == family })
	if i >= 0 && slices.ContainsFunc(out, func(p netip.Prefix) bool { return p.Contains(node.Addresses[i].Unmap()) }) {
		out = append(out, vips...)
	}
	return out
}
