package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/controlplane"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/traffic"
	"github.com/kconverge/kconverge/engine/rulesync"
)

// Options configure a Lab.
type Options struct {
	// Nodes is the number of nodes, at least 1.
	Nodes int
	// Addr is where the API server listens, for instance "127.0.0.1:0".
	Addr string
	// ControlPlane, when set, are Kubernetes' own programs, as
	// controlplane.Find has found them: they run in the place of the lab's own
	// API server, controllers and scheduler.
	ControlPlane *controlplane.Programs
	// Guard, when set, is told the process group of each program that is started,
	// as process.Command says.
	Guard func(pgid int) (done func())
	// Seed starts the cluster with the Deployment and Service "web".
	Seed bool
	// Traffic is how many connections a second each node opens to each Service port
	// from the start; 0 for none. See SetTraffic.
	Traffic int
	// Dataplane is the layout of the nodes' rules; default kube-proxy's.
	Dataplane rulesync.Dataplane
	// Kubeconfig, when set, is called once with the content of a kubeconfig
	// when the cluster can be used.
	Kubeconfig func([]byte) error
	// Faults are in force from when the cluster can be used.
	Faults []faults.Setting
	// Logs takes what libraries log; nil discards it.
	Logs io.Writer
	// Tool is the version of the program.
	Tool string
	// Clock stamps events; default the wall clock.
	Clock collect.Clock
}

// Lab is one cluster. Run is called once; everything else is safe for
// concurrent use.
type Lab struct {
	o     Options
	names []string
	// refused is why the nodes are in memory, nil when they are not.
	refused error
	// noIPv6 is why the cluster has IPv4 alone, nil when it is dual-stack.
	noIPv6 error

	ready   chan struct{} // closed when client, sink, net and vouch are set
	failed  chan struct{} // closed when Run ended before that
	once    sync.Once
	err     error
	client  kubernetes.Interface
	own     kubernetes.Interface // for what no fault meets
	faults  *faults.Faults
	sink    collect.Sink
	net     *nodes.Cluster // nil in memory
	vouch   []collect.Voucher
	traffic *traffic.Traffic // nil in memory
}

// New returns a Lab that Run starts.
func New(o Options) *Lab {
	if o.Nodes < 1 {
		o.Nodes = 1
	}
	if o.Logs == nil {
		o.Logs = io.Discard
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	l := &Lab{o: o, ready: make(chan struct{}), failed: make(chan struct{})}
	for i := range o.Nodes {
		l.names = append(l.names, fmt.Sprintf("node-%d", i+1))
	}
	l.faults = faults.New(faults.Options{Clock: o.Clock, Nodes: l.names, OwnPlane: o.ControlPlane == nil})
	// Asked here rather than in Run, since the session's head says it.
	if l.refused = nodes.Allowed(len(l.names)); l.refused == nil {
		l.noIPv6 = nodes.NoIPv6()
	}
	return l
}

// NoIPv6 says why nodes, pods and Services have IPv4 alone, nil when they can
// have both families. Nodes in memory always have both.
func (l *Lab) NoIPv6() error { return l.noIPv6 }

// families are those that nodes and pods have addresses of.
func (l *Lab) families() []collect.Family {
	if l.noIPv6 != nil {
		return []collect.Family{collect.IPv4}
	}
	return []collect.Family{collect.IPv4, collect.IPv6}
}

// Refused says why this machine or user may not have network namespaces, and the
// way out: a *nodes.NotAllowedError. The nodes and their rules are then in
// memory, and no packets flow. It is nil where the rules are the kernel's.
func (l *Lab) Refused() error { return l.refused }

// Name implements collect.Source.
func (l *Lab) Name() string { return "lab" }

// Session heads the lab's stream of events.
func (l *Lab) Session() collect.Session {
	return collect.Session{
		Kind: "lab", Name: "lab", Version: l.version(), Tool: l.o.Tool,
		ControlPlane:  l.controlPlane(),
		Rules:         l.rules(),
		Needs:         []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceNodes},
		NodesExpected: true,
	}
}

// version is the API server's.
func (l *Lab) version() string {
	if p := l.o.ControlPlane; p != nil {
		return p.Kubernetes
	}
	return apiserver.KubernetesVersion
}

// controlPlane says which one runs.
func (l *Lab) controlPlane() string {
	if p := l.o.ControlPlane; p != nil {
		return fmt.Sprintf("Kubernetes' own programs %s, etcd %s (%s)", p.Kubernetes, p.Etcd, p.Dir)
	}
	return collect.OwnControlPlane
}

// rules says where the nodes' rules are.
func (l *Lab) rules() string {
	if l.refused != nil {
		return "in memory: network namespaces are refused"
	}
	where := "kernel"
	if l.o.Dataplane == rulesync.Flat {
		where += ", flat"
	}
	if l.noIPv6 != nil {
		where += ", IPv4 only"
	}
	return fmt.Sprintf("%s (%d netns)", where, len(l.names))
}

// errNotStarted says that the lab ended before it could be used.
var errNotStarted = errors.New("the lab stopped before it was ready")

// WaitReady returns once the API server answers, everything is watched and the
// kubeconfig is written.
func (l *Lab) WaitReady(ctx context.Context) error {
	select {
	case <-l.ready:
		return nil
	case <-l.failed:
		if l.err != nil {
			return l.err
		}
		return errNotStarted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Vouch implements collect.Voucher.
func (l *Lab) Vouch() {
	select {
	case <-l.ready:
	default:
		return
	}
	for _, v := range l.vouch {
		v.Vouch()
	}
}

// Nodes are the lab's nodes, in the order of their names; none when they are in
// memory. They exist once WaitReady has returned.
func (l *Lab) Nodes() []*nodes.Node {
	if l.net == nil {
		return nil
	}
	return l.net.Nodes()
}
