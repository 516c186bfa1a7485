package rulesync

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// kube-proxy's periods: nftables.minSyncPeriod and nftables.syncPeriod (how soon
// a failed sync is tried again) of its configuration, and FullSyncPeriod of
// pkg/proxy/util/utils.go.
const (
	DefaultMinSyncPeriod  = time.Second
	DefaultRetryPeriod    = 30 * time.Second
	DefaultFullSyncPeriod = time.Hour
)

// Dataplane is a layout of rules in the kernel.
type Dataplane string

const (
	// KubeProxy is the layout of kube-proxy's nftables mode, the default.
	KubeProxy Dataplane = "kube-proxy"
	// Flat has one map with an element for each endpoint of each frontend, so
	// that a change writes a few elements and no rules.
	Flat Dataplane = "flat"
)

// Options configure a Syncer.
type Options struct {
	// Node is whose rules are kept. NodePorts answer on its Addresses only, as
	// in kube-proxy's nftables mode.
	Node desired.NodeRef
	// NetNS is a file descriptor of the node's network namespace, valid until
	// Run ends. It is not used when Table is set.
	NetNS int
	// Dataplane is the layout written into NetNS; default KubeProxy.
	Dataplane Dataplane
	// Table replaces the kernel's tables in NetNS. Run closes it.
	Table Table
	// Families are the IP families to keep rules for; default IPv4 only.
	Families []collect.Family
	// ClusterCIDRs are where pods have their addresses, at most one range of
	// each family, kube-proxy's --cluster-cidr: connections to a ClusterIP from
	// elsewhere are masqueraded. Empty: nothing is known about it.
	ClusterCIDRs []netip.Prefix
	// ServiceCIDRs are where ClusterIPs are given out: connections to one that
	// nobody has are dropped, as kube-proxy does by the ServiceCIDR objects.
	// Empty: they are not.
	ServiceCIDRs []netip.Prefix

	// Client makes own watches of Services and EndpointSlices, as each
	// kube-proxy has. Instead, informers can be shared; whoever shares them
	// runs them.
	Client           kubernetes.Interface
	Services, Slices cache.SharedIndexInformer

	// Sink takes a collect.SyncStep for each step; nil discards them.
	Sink collect.Sink
	// Clock is for timing and stamps; default the wall clock.
	Clock clock.WithTicker
	// Periods; zero means the default.
	MinSyncPeriod, RetryPeriod, FullSyncPeriod time.Duration
	// Before is called at the start of each sync and may delay it or make it
	// fail. It is meant for faults; nil for none.
	Before func(ctx context.Context, full bool) error
}

func (o Options) withDefaults() (Options, error) {
	if o.Node.Name == "" {
		return o, errors.New("rule sync needs the name of its node")
	}
	if o.Table == nil && o.NetNS <= 0 {
		return o, errors.New("rule sync of " + o.Node.Name + " needs a table or a file descriptor of the node's network namespace: it never writes rules of the host")
	}
	if o.Client == nil && (o.Services == nil || o.Slices == nil) {
		return o, errors.New("rule sync of " + o.Node.Name + " needs a client or informers of both Services and EndpointSlices")
	}
	switch o.Dataplane {
	case "":
		o.Dataplane = KubeProxy
	case KubeProxy, Flat:
	default:
		return o, fmt.Errorf("unknown dataplane %q: use %q or %q", o.Dataplane, KubeProxy, Flat)
	}
	if len(o.Families) == 0 {
		o.Families = []collect.Family{collect.IPv4}
	}
	if o.Sink == nil {
		o.Sink = collect.SinkFunc(func(collect.Event) {})
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for _, p := range []struct {
		d   *time.Duration
		def time.Duration
	}{{&o.MinSyncPeriod, DefaultMinSyncPeriod}, {&o.RetryPeriod, DefaultRetryPeriod}, {&o.FullSyncPeriod, DefaultFullSyncPeriod}} {
		if *p.d == 0 {
			*p.d = p.def
		}
		if *p.d < 0 {
			return o, errors.New("periods of the rule sync cannot be negative")
		}
	}
	if o.FullSyncPeriod < o.MinSyncPeriod {
		return o, errors.New("the full sync period cannot be shorter than the minimum period")
	}
	return o, nil
}
