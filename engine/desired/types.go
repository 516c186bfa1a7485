package desired

import (
	"net/netip"

	"github.com/kconverge/kconverge/collect"
)

// ServiceRef is a Service with its name: what the rules are computed from.
type ServiceRef struct {
	Namespace, Name string
	Service         *collect.Service
}

// PodRef is a Pod with its name and UID.
type PodRef struct {
	Name, UID string
	Pod       *collect.Pod
	// NodeGone says that the pod's node is known not to exist: the
	// EndpointSlice controller then leaves the pod out.
	NodeGone bool
}

// NodeRef is the node whose rules are asked for.
type NodeRef struct {
	Name, Zone string
	// Addresses are the node's own; NodePorts answer on them.
	Addresses []netip.Addr
}

// Routable reports that the entry may be sent new connections when the plain
// rule applies (ready) and that it offers at least one port.
func (e *SliceEntry) Routable() bool { return e.Ready && len(e.Ports) > 0 }

// SliceEntry is one endpoint as the slices should publish it, in one family.
type SliceEntry struct {
	PodName, PodUID             string
	Address                     netip.Addr
	Node                        string
	Ready, Serving, Terminating bool
	// Ports are the resolved target ports, sorted by name, protocol, port. A
	// named target port that the pod lacks is left out.
	Ports []collect.SlicePort
}
