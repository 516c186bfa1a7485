package lab

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/lab/workloads"
	"github.com/kconverge/kconverge/engine/reconcile"
)

// controlPlane is what makes a cluster of the lab's nodes: an API server, and
// whatever turns Deployments into pods, gives pods their nodes and writes
// EndpointSlices. Everything else of the lab (kubelets, rule syncs, what observes)
// is a client of its API server and does not know which one it is.
type controlPlane interface {
	// Config leads to the API server with every right and without client-side
	// rate limits. Each call returns a copy.
	Config() *rest.Config
	// Kubeconfig is the same for other programs, as a file's content.
	Kubeconfig() ([]byte, error)
	// parts are what has to run beside the API server in this process until the
	// lab ends. A part that returns an error ends the lab.
	parts(clients *clients, sink collect.Sink) ([]part, error)
	// admit returns when a pod that is created may go to any of the nodes, which
	// are registered by then.
	admit(ctx context.Context, client kubernetes.Interface, nodes []string) error
	// Stop ends everything that was started; past ctx's deadline by force.
	Stop(ctx context.Context) error
}

// startPlane starts the control plane that the options ask for. ctx bounds the
// start only.
func (l *Lab) startPlane(ctx context.Context) (controlPlane, error) {
	if l.o.ControlPlane != nil {
		return startReal(ctx, l.o, l.families())
	}
	server, err := apiserver.Start(ctx, apiserver.Options{Addr: l.o.Addr, Log: l.zap(), NoIPv6: text(l.noIPv6), Wrap: l.faults.Handler, CheckConfigMap: l.faults.CheckConfigMap})
	if err != nil {
		return nil, err
	}
	return ownPlane{server, l.faults}, nil
}

// ownPlane is all in this process, and tells what its endpoint controllers do.
type ownPlane struct {
	*apiserver.Server
	faults *faults.Faults
}

func (p ownPlane) parts(clients *clients, sink collect.Sink) ([]part, error) {
	slices, err := reconcile.New(reconcile.Options{
		Client: clients.reconciler, Sink: sink, Before: p.faults.BeforeReconcile, Lost: p.faults.Lost,
	})
	if err != nil {
		return nil, err
	}
	controllers := workloads.New(workloads.Options{Client: clients.workloads})
	return []part{
		{"workload controllers", controllers.Run},
		{"endpoint controllers", slices.Run},
		{"faults of controllers", func(ctx context.Context) error {
			return p.faults.Tune(ctx, func(t faults.Tuned) {
				slices.SetWorkers(t.Workers)
				slices.SetResync(t.Resync)
				controllers.SetNodeGrace(t.NodeGrace)
			})
		}},
	}, nil
}

// admit has nothing to wait for: nodes are ready as they are registered.
func (ownPlane) admit(context.Context, kubernetes.Interface, []string) error { return nil }
