package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/engine/lab/controlplane"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/process"
)

const (
	// RealName is the name of the real node.
	RealName = "real-1"
	// RealLabel is on the real node alone, with the value "true": a pod asks for
	// it by a nodeSelector. RealTaint of the same name keeps off those that do
	// not tolerate it, whose images nobody has.
	RealLabel = "kconverge/real"
	RealTaint = RealLabel
)

// Programs of a real node, beside kube-proxy.
const (
	containerd = "containerd"
	kubelet    = "kubelet"
	ctr        = "ctr"
	shim       = "containerd-shim-runc-v2"
	runc       = "runc"
)

// RealPrograms are those of a real node that testdata/cluster builds.
var RealPrograms = []string{containerd, shim, ctr, kubelet}

// cniPlugins is where Debian's containernetworking-plugins are.
const cniPlugins = "/usr/lib/cni"

// Real says how to make one node real.
type Real struct {
	// Pause is the path of engine/cluster/pod's program.
	Pause string
	// Images are there for pods, which must not ask for them to be pulled.
	Images []Image
}

// RealRefused tells why no node can be real on this machine and for this user, or
// nil. What is merely not installed is no such reason.
func RealRefused() error {
	if os.Geteuid() != 0 {
		return errors.New("a container runtime needs root")
	}
	g := &ground{}
	err := g.makeCgroups()
	if err := errors.Join(err, g.removeCgroups()); err != nil {
		return fmt.Errorf("cgroups cannot be made here: %w", err)
	}
	return nil
}

// realNode is the running real node.
type realNode struct {
	o      Real
	node   *nodes.Node
	bin    string
	runc   string
	dir    string
	ground *ground
}

// newRealNode looks for what is needed.
func newRealNode(o Options) (*realNode, error) {
	if err := RealRefused(); err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.Bin)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	r := &realNode{o: *o.Real, bin: bin, dir: filepath.Join(dir, RealName)}
	for _, name := range RealPrograms {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w: `make cluster-bin` builds it", err)
		}
	}
	if r.runc, err = exec.LookPath(runc); err != nil {
		return nil, fmt.Errorf("%w: `make deps` installs it", err)
	}
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(cniPlugins, name)); err != nil {
			return nil, fmt.Errorf("%w: `make deps` installs the CNI plugins", err)
		}
	}
	return r, nil
}

// start starts the container runtime, gives it the images, and starts the kubelet,
// which registers the node by itself.
func (r *realNode) start(ctx context.Context, c *Cluster) (err error) {
	if err := r.writeFiles(); err != nil {
		return err
	}
	// The relay is that of the node's kube-proxy.
	if err := c.writeKubeconfig(r.node, r.path("kubeconfig"), ""); err != nil {
		return err
	}
	if r.ground, err = newGround(ctx, r.node, r.dir, c.launch); err != nil {
		return err
	}
	if err := r.writeKubeletConfig(); err != nil {
		return err
	}
	// Both look for other programs there: the shim, runc, iptables, mount.
	environment := c.environment(modes[c.ModeOf(RealName)], r.bin)
	runtime, err := c.launch(r.ground.inside(process.Command{
		Name: containerd + " of " + RealName, Path: filepath.Join(r.bin, containerd), Env: environment,
		Args: []string{"--config=" + r.path("containerd.toml"), "--log-level=warn"},
	}))
	if err != nil {
		return err
	}
	if err := until(ctx, runtime, "containerd", func(ctx context.Context) error {
		_, err := r.ctr(ctx, "version")
		return err
	}); err != nil {
		return err
	}
	for _, i := range append([]Image{{Name: pauseImage, Program: r.o.Pause, Args: []string{"pause"}}}, r.o.Images...) {
		if err := r.give(ctx, i); err != nil {
			return err
		}
	}
	_, err = c.launch(r.ground.inside(process.Command{
		Name: kubelet + " of " + RealName, Path: filepath.Join(r.bin, kubelet), Env: environment,
		Args: []string{
			"--config=" + r.path("kubelet.yaml"), "--kubeconfig=" + r.path("kubeconfig"),
			"--hostname-override=" + RealName, "--node-ip=" + r.node.Addresses()[0].String(),
			"--node-labels=" + RealLabel + "=true," + corev1.LabelTopologyZone + "=" + zones[0],
			"--v=1",
		},
	}))
	return err
}

// give makes an image known to the container runtime.
func (r *realNode) give(ctx context.Context, i Image) (err error) {
	f, err := os.CreateTemp(r.dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := errors.Join(i.write(f), f.Close()); err != nil {
		return err
	}
	_, err = r.ctr(ctx, "--namespace=k8s.io", "images", "import", f.Name())
	return err
}

func (r *realNode) ctr(ctx context.Context, args ...string) ([]byte, error) {
	return r.ground.exec(ctx, filepath.Join(r.bin, ctr), append([]string{"--address=" + containerdSocket}, args...)...)
}

// until waits for a program to be of use.
func until(ctx context.Context, p *process.Process, what string, works func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, admitEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Done():
			return false, p.Ended()
		default:
		}
		last = works(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for %s: %w", what, err), last)
	}
	return nil
}

// rangeOf tells the API of the range that the node's pods have. Its kubelet does not
// know it, the CNI configuration does.
func (r *realNode) rangeOf(ctx context.Context, client kubernetes.Interface) error {
	cidr := r.node.PodCIDRs()[0].String()
	_, err := client.CoreV1().Nodes().Patch(ctx, RealName, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"podCIDR":%q,"podCIDRs":[%q]}}`, cidr, cidr), metav1.PatchOptions{})
	return err
}

// dial connects to the node for the API server, which asks its kubelet for logs, and
// knows it by its name first (--kubelet-preferred-address-types).
func (c *Cluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || c.real == nil {
		return nil, controlplane.ErrNoKubelet
	}
	own := c.real.node.Addresses()[0].String()
	if host != RealName && host != own {
		return nil, controlplane.ErrNoKubelet
	}
	return c.real.node.Dial(ctx, "tcp", net.JoinHostPort(own, port))
}

// Real is the real node, nil without one.
func (c *Cluster) Real() *nodes.Node {
	if c.real == nil {
		return nil
	}
	return c.real.node
}

// Ctr runs containerd's ctr on the real node, in the namespace of Kubernetes, and
// returns what it printed.
func (c *Cluster) Ctr(ctx context.Context, args ...string) (string, error) {
	out, err := c.real.ctr(ctx, append([]string{"--namespace=k8s.io"}, args...)...)
	return strings.TrimSpace(string(out)), err
}
