package desired

import (
	"net/netip"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// topology is how hints restrict the ready endpoints of the Cluster policy.
type topology int

const (
	topologyNone topology = iota
	topologyNode
	topologyZone
)

// topologyOf is topologyModeFromHints (pkg/proxy/topology.go): only ready
// endpoints are examined; node hints count when every one of them has some and
// at least one names this node; else zone hints, likewise.
func topologyOf(eps []ruleEndpoint, node NodeRef) topology {
	anyReady, allNode, allZone, forNode, forZone := false, true, true, false, false
	for i := range eps {
		e := eps[i].owner
		if !e.Ready {
			continue
		}
		anyReady = true
		if len(e.HintNodes) == 0 {
			allNode = false
		} else if slices.Contains(e.HintNodes, node.Name) {
			forNode = true
		}
		if len(e.HintZones) == 0 {
			allZone = false
		} else if slices.Contains(e.HintZones, node.Zone) {
			forZone = true
		}
	}
	switch {
	case !anyReady:
		return topologyNone
	case allNode && forNode:
		return topologyNode
	case allZone && forZone:
		return topologyZone
	}
	return topologyNone
}

// clusterEndpoints are the endpoints of the Cluster policy: the ready ones that
// the topology allows, or, when there is no ready one, those that serve while
// they terminate.
func clusterEndpoints(eps []ruleEndpoint, node NodeRef) []netip.AddrPort {
	mode := topologyOf(eps, node)
	out := pick(eps, func(e *collect.SliceEndpoint) bool {
		if !e.Ready {
			return false
		}
		switch mode {
		case topologyNode:
			return slices.Contains(e.HintNodes, node.Name)
		case topologyZone:
			return slices.Contains(e.HintZones, node.Zone)
		}
		return true
	})
	if len(out) == 0 {
		out = pick(eps, func(e *collect.SliceEndpoint) bool { return e.Serving && e.Terminating })
	}
	return out
}

// localEndpoints are the endpoints of the Local policy: the node's own ready
// ones, or, when it has none, its own that serve while they terminate,
// whatever the Cluster policy found. Hints do not matter.
func localEndpoints(eps []ruleEndpoint, node string) []netip.AddrPort {
	if node == "" {
		return nil
	}
	out := pick(eps, func(e *collect.SliceEndpoint) bool { return e.Node == node && e.Ready })
	if len(out) == 0 {
		out = pick(eps, func(e *collect.SliceEndpoint) bool {
			return e.Node == node && !e.Ready && e.Serving && e.Terminating
		})
	}
	return out
}

// pick keeps the order of eps and allocates once, nothing when nothing matches.
func pick(eps []ruleEndpoint, want func(*collect.SliceEndpoint) bool) []netip.AddrPort {
	n := 0
	for i := range eps {
		if want(eps[i].owner) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make([]netip.AddrPort, 0, n)
	for i := range eps {
		if want(eps[i].owner) {
			out = append(out, eps[i].addr)
		}
	}
	return out
}
