package desired

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// MaxMirrored is how many addresses of one subset of hand-made Endpoints are
// mirrored (MirroringMaxEndpointsPerSubset in k8s.io/kubernetes
// pkg/controller/endpointslicemirroring/config).
const MaxMirrored = 1000

// Mirrored says which endpoints the slices that mirror hand-made Endpoints of a
// Service without selector should publish, by the rules of the mirroring
// controller (k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring,
// reconciler.go): each address as ready or not as it stands, where not ready
// wins when it is both for the same port. They tell nothing of serving and
// terminating, so that these have Kubernetes' defaults. Nodes are left out:
// collect.Endpoints has none.
//
// Of a subset with more than MaxMirrored addresses only that many are
// mirrored, the ready ones first. Upstream picks which by a hash; here it is by
// address, so only the number may be relied on.
//
// The result is sorted by address, then UID, and is nil for Endpoints that are
// not to be mirrored.
func Mirrored(e *collect.Endpoints) []SliceEntry {
	if e == nil || e.NotMirrored {
		return nil
	}
	type id struct {
		ip  netip.Addr
		uid string
	}
	none := collect.SlicePort{Port: -1} // of a subset without ports
	names := map[id]string{}
	byPort := map[collect.SlicePort]map[id]bool{}
	for i := range e.Addresses {
		a := &e.Addresses[i]
		who := id{a.IP.Unmap(), a.PodUID}
		names[who] = a.PodName
		ports := a.Ports
		if len(ports) == 0 {
			ports = []collect.SlicePort{none}
		}
		for _, p := range ports {
			if byPort[p] == nil {
				byPort[p] = map[id]bool{}
			}
			if ready, seen := byPort[p][who]; !seen || ready {
				byPort[p][who] = a.Ready
			}
		}
	}
	entries := map[id]*SliceEntry{}
	for port, ready := range byPort {
		ids := make([]id, 0, len(ready))
		for who := range ready {
			ids = append(ids, who)
		}
		slices.SortFunc(ids, func(a, b id) int {
			if ready[a] != ready[b] {
				if ready[a] {
					return -1
				}
				return 1
			}
			return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.uid, b.uid))
		})
		for _, who := range ids[:min(len(ids), MaxMirrored)] {
			entry := entries[who]
			if entry == nil {
				entry = &SliceEntry{PodName: names[who], PodUID: who.uid, Address: who.ip, Serving: true}
				entries[who] = entry
			}
			entry.Ready = entry.Ready || ready[who]
			if port != none {
				entry.Ports = append(entry.Ports, port)
			}
		}
	}
	out := make([]SliceEntry, 0, len(entries))
	for _, entry := range entries {
		SortPorts(entry.Ports)
		out = append(out, *entry)
	}
	slices.SortFunc(out, func(a, b SliceEntry) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.PodUID, b.PodUID))
	})
	return out
}
