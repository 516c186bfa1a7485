package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/engine/lab/controlplane"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/process"
)

// Version is the minor release of Kubernetes that the programs must be of.
const Version = "v1.37.2"

const (
	// startLimit is far beyond the seconds that a start takes, for machines that
	// are busy with something else.
	startLimit = 3 * time.Minute
	// stopLimit is how long each program has to end by itself.
	stopLimit = 5 * time.Second
	// admitEvery is how often the nodes are looked at until they take pods.
	admitEvery = 50 * time.Millisecond
)

// Options say what to run.
type Options struct {
	// Bin is the directory of the programs that testdata/cluster builds.
	Bin string
	// Agent is kconverge-agent's path; empty runs none.
	Agent string
	// AgentArgs are added to the agents' command lines.
	AgentArgs []string
	// Mode is the kube-proxies': NFTables, IPTables or another of Modes, or several
	// of them with commas between, for the nodes by turns.
	Mode string
	// Nodes is how many there are, at least 1.
	Nodes int
	// Real, when set, adds one node, RealName, that is real: a kubelet, a container
	// runtime and a kube-proxy, with programs in its pods. No agent is started there:
	// it is for a DaemonSet.
	Real *Real
	// Port of the API server on 127.0.0.1; 0 takes a free one.
	Port int
	// Dir is an existing private directory of the caller's: the kubeconfig, the
	// agents' lines and what the programs read are written there.
	Dir string
	// Audit are users whose requests the API server writes to AuditLog.
	Audit []string
	// Log takes what the programs print, a line at a time; nil discards it. It
	// must be safe for concurrent use.
	Log io.Writer
}

// Cluster is a running cluster. Its methods are safe for concurrent use.
type Cluster struct {
	o     Options
	plane *controlplane.ControlPlane
	net   *nodes.Cluster
	// dualStack tells that nodes, pods and Services may have IPv6 addresses too.
	dualStack bool
	real      *realNode // nil without

	mu      sync.Mutex
	running []*process.Process
	proxies map[string]*process.Process
	relays  []*relay
	configs map[string]string // node -> kube-proxy's configuration
}

// Start starts everything and returns when the nodes take pods. It runs until
// Stop; ctx bounds the start only. What it has started is gone again when it
// fails.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	programs, err := controlplane.Find(ctx, o.Bin, Version)
	if err != nil {
		return nil, err
	}
	if err := o.checkModes(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.Bin, kwok)); err != nil {
		return nil, fmt.Errorf("%w: `make cluster-bin` builds it", err)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	ground := nodes.Options{Path: nodes.PathRouted}
	for i := range max(o.Nodes, 1) {
		ground.Names = append(ground.Names, fmt.Sprintf("node-%d", i+1))
	}
	var real *realNode
	if o.Real != nil {
		if real, err = newRealNode(o); err != nil {
			return nil, fmt.Errorf("a real node: %w", err)
		}
		ground.Names, ground.Unanswered = append(ground.Names, RealName), []string{RealName}
	}
	c := &Cluster{o: o, real: real, proxies: map[string]*process.Process{}, configs: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	// The pods of a real node have IPv4 alone (its CNI's range).
	c.dualStack = o.Real == nil && nodes.NoIPv6() == nil
	ground.DualStack = c.dualStack
	if c.net, err = nodes.Start(ctx, ground); err != nil {
		return nil, err
	}
	if real != nil {
		real.node = c.net.Node(RealName)
	}
	policy, err := c.writeAudit()
	if err != nil {
		return nil, err
	}
	c.plane, err = controlplane.Start(ctx, controlplane.Options{
		Programs: programs, Name: contextName, Port: o.Port,
		PodCIDR: c.podCIDRs(), ServiceCIDR: c.serviceCIDRs(), AuditPolicy: policy, AuditLog: c.AuditLog(),
		NoKubelets: "kwok's pods run no program", DialNode: c.dial, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.writeFiles(); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	for i, n := range c.Simulated() {
		if err := register(ctx, client, n, zones[i%len(zones)]); err != nil {
			return err
		}
	}
	if err := c.startKwok(); err != nil {
		return err
	}
	for _, n := range c.net.Nodes() {
		if err := c.writeProxyConfig(n); err != nil {
			return err
		}
		if err := c.StartProxy(n.Name()); err != nil {
			return err
		}
		if c.o.Agent != "" && n != c.Real() {
			if err := c.startAgent(n); err != nil {
				return err
			}
		}
	}
	if c.real != nil {
		if err := c.real.start(ctx, c); err != nil {
			return err
		}
	}
	if err := c.admitted(ctx, client); err != nil || c.real == nil {
		return err
	}
	return c.real.rangeOf(ctx, client)
}

// admitted waits until the node lifecycle controller has taken its taints off the
// nodes.
func (c *Cluster) admitted(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, admitEvery, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("look whether the nodes take pods: %w", err)
		}
		return len(list.Items) == len(c.net.Nodes()) && !slices.ContainsFunc(list.Items, func(n corev1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != RealTaint })
		}), nil
	})
}

// Config is the administrator's, without client-side rate limits. Each call
// returns a copy.
func (c *Cluster) Config() *rest.Config {
	config := c.plane.Config()
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return KubeconfigIn(c.o.Dir) }

// KubeconfigIn is where a cluster whose Options.Dir is dir has its kubeconfig, once
// it has started.
func KubeconfigIn(dir string) string { return filepath.Join(dir, "kubeconfig") }

// Nodes are the nodes, in order, the real one last.
func (c *Cluster) Nodes() []*nodes.Node { return c.net.Nodes() }

// DualStack tells that nodes, pods and Services may have IPv6 addresses too. They
// may where this machine's kernel has IPv6, but not beside a real node.
func (c *Cluster) DualStack() bool { return c.dualStack }

// Simulated are the nodes whose kubelets kwok plays, in order.
func (c *Cluster) Simulated() []*nodes.Node {
	return slices.DeleteFunc(c.Nodes(), func(n *nodes.Node) bool { return n == c.Real() })
}

// Lines is the path of what a simulated node's agent prints.
func (c *Cluster) Lines(node string) string { return filepath.Join(c.o.Dir, node+".log") }

// Proxy is the kube-proxy that was started last on a node.
func (c *Cluster) Proxy(node string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proxies[node]
}

// Done is closed when a program of the control plane has ended by itself; Err then
// says which.
func (c *Cluster) Done() <-chan struct{} { return c.plane.Done() }

// Err says why Done was closed; it waits for that.
func (c *Cluster) Err() error { return c.plane.Err() }

// Stop ends everything and gives up the namespaces; the files in Options.Dir stay.
// Call it once.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	running, relays := slices.Clone(c.running), slices.Clone(c.relays)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range running {
		all.Go(func() { p.Stop(ctx) })
	}
	all.Wait()
	var errs []error
	if c.real != nil && c.real.ground != nil {
		errs = append(errs, c.real.ground.close())
	}
	for _, r := range relays {
		r.close()
	}
	if c.plane != nil {
		errs = append(errs, c.plane.Stop(context.Background()))
	}
	if c.net != nil {
		errs = append(errs, c.net.Close())
	}
	return errors.Join(errs...)
}
