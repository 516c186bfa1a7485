package lab

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/controlplane"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// noKubelets is why kubectl logs, exec, attach, port-forward and proxy end here.
const noKubelets = "the lab's pods run no program and answer inside the nodes' own networks only"

// realPlane is Kubernetes' own programs. What they do inside is not seen; what
// they write is.
type realPlane struct{ *controlplane.ControlPlane }

func startReal(ctx context.Context, o Options, families []collect.Family) (controlPlane, error) {
	port, err := portOf(o.Addr)
	if err != nil {
		return nil, err
	}
	pods, services := nodes.DefaultPodCIDR.String(), nodes.DefaultServiceCIDR.String()
	if slices.Contains(families, collect.IPv6) {
		pods += "," + nodes.PodCIDRv6.String()
		services += "," + nodes.ServiceCIDRv6.String()
	}
	c, err := controlplane.Start(ctx, controlplane.Options{
		Programs: o.ControlPlane, Name: apiserver.ContextName, Port: port,
		PodCIDR: pods, ServiceCIDR: services,
		NoKubelets: noKubelets, Log: o.Logs, Guard: o.Guard,
	})
	if err != nil {
		return nil, err
	}
	return realPlane{c}, nil
}

// portOf is the port of an address, 0 for any; the programs listen on 127.0.0.1
// whatever else it says.
func portOf(addr string) (int, error) {
	if addr == "" {
		return 0, nil
	}
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("the API server's address: %w", err)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the API server's address %s: %w", addr, err)
	}
	return int(n), nil
}

// Config has what kubelets and observers of a whole cluster in one process need.
func (r realPlane) Config() *rest.Config {
	c := r.ControlPlane.Config()
	c.ContentType, c.AcceptContentTypes = protobuf, protobuf+",application/json"
	c.QPS = -1
	// The lab talks to itself about Endpoints; that it is deprecated is for the
	// people who write manifests.
	c.WarningHandler = rest.NoWarnings{}
	return c
}

const protobuf = "application/vnd.kubernetes.protobuf"

// parts end the lab when one of the programs ends.
func (r realPlane) parts(*clients, collect.Sink) ([]part, error) {
	return []part{{"control plane", func(ctx context.Context) error {
		select {
		case <-r.Done():
			return r.Err()
		case <-ctx.Done():
			return nil
		}
	}}}, nil
}

// admitEvery is how often the nodes are looked at until they take pods.
const admitEvery = 50 * time.Millisecond

// admit waits until the node lifecycle controller has taken its not-ready taint
// off every node.
func (r realPlane) admit(ctx context.Context, client kubernetes.Interface, names []string) error {
	return wait.PollUntilContextCancel(ctx, admitEvery, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("look whether the nodes take pods: %w", err)
		}
		open := 0
		for i := range list.Items {
			n := &list.Items[i]
			if slices.Contains(names, n.Name) && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }) {
				open++
			}
		}
		return open == len(names), nil
	})
}
