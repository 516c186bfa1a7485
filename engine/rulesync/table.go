package rulesync

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// Table is where rules are written: the kernel's tables of a node, or one in
// memory. It is used by one goroutine at a time.
type Table interface {
	// Write makes the change. After an error the table's content is unknown
	// and the next change must be full.
	Write(ctx context.Context, ch Change) (Result, error)
	// Close gives up what the table holds open. The rules stay.
	Close() error
}

// Change is what one sync writes.
type Change struct {
	// Full: Services is everything there should be, and whatever the table
	// holds beside it goes. Otherwise Services are those that changed.
	Full bool
	// Services are the ports of each Service in all families. A Service
	// without ports has no rules.
	Services map[types.NamespacedName][]Port
	// Now is when the sync started; emptied chains are deleted by it.
	Now time.Time
}

// Result is what came of a Change.
type Result struct {
	// Generation is the kernel's rule generation that holds the change; when
	// nothing had to be written, the current one. 0 when there is none.
	Generation uint32
	// Transactions is how many were committed.
	Transactions int
	// Note is worth telling although the change was made, for instance that
	// it did not fit into one transaction.
	Note string
}

// Port is one Service port in one family, with everything a table needs to know
// to carry it: the ServicePort and endpoint sets of kube-proxy.
type Port struct {
	Service  types.NamespacedName
	Name     string
	Protocol collect.Protocol
	Family   collect.Family

	ClusterIP       netip.Addr
	Port            uint16
	NodePort        uint16 // 0 without one
	ExternalIPs     []netip.Addr
	LoadBalancerIPs []netip.Addr
	// Sources are the only places from which LoadBalancerIPs may be reached,
	// as kube-proxy lists them (desired.LoadBalancerSources); nil for anywhere.
	Sources []netip.Prefix

	// InternalLocal and ExternalLocal: the traffic policy is Local.
	InternalLocal, ExternalLocal bool
	// Cluster and Local are the endpoints under each policy, as far as the
	// port uses it.
	Cluster, Local []netip.AddrPort
	// HasEndpoints: there is a usable endpoint on some node, not necessarily
	// one that this node may use.
	HasEndpoints bool
	// OnNode are those of Cluster and Local that are on the node itself.
	OnNode []netip.AddrPort

	// Affinity: SessionAffinity is ClientIP, for AffinityTimeout.
	Affinity        bool
	AffinityTimeout time.Duration
}

// External reports that something other than the ClusterIP leads to the port.
func (p *Port) External() bool {
	return p.NodePort != 0 || len(p.ExternalIPs) > 0 || len(p.LoadBalancerIPs) > 0
}

// reachable are the endpoints that this node may use, under either policy.
func (p *Port) reachable() []netip.AddrPort {
	eps := slices.Concat(p.Cluster, p.Local)
	slices.SortFunc(eps, netip.AddrPort.Compare)
	return slices.Compact(eps)
}

// sorted are the names of a map's Services in order.
func sorted[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
