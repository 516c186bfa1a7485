package workloads

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// Options configure the controllers.
type Options struct {
	// Client reaches the API server. It should have no client-side rate limit
	// (rest.Config.QPS -1), which would add lags that no cluster has.
	Client kubernetes.Interface
	// Clock tells the time for conditions, minReadySeconds and delayed work;
	// the real clock when nil.
	Clock clock.WithTicker
	// Workers is the number of keys each controller handles at a time; 5 when
	// zero, as kube-controller-manager has. The scheduler always has one.
	Workers int
	// NodeGrace is how long a node may be silent before it counts as not ready,
	// 50 s when zero.
	NodeGrace time.Duration
}

// Controllers runs the workload controllers. Make one with New.
type Controllers struct {
	workers   int
	factory   informers.SharedInformerFactory
	events    record.EventBroadcaster
	client    kubernetes.Interface
	queues    []*queue
	oneWorker map[*queue]bool
	once      sync.Once
	wiring    error
	lifecycle *nodeLifecycle
}

// New wires the controllers to shared informers; nothing runs before Run.
func New(opts Options) *Controllers {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers <= 0 {
		opts.Workers = 5
	}
	c := &Controllers{
		workers: opts.Workers,
		client:  opts.Client,
		factory: informers.NewSharedInformerFactoryWithOptions(opts.Client, 0, informers.WithTransform(withoutManagedFields)),
		events:  record.NewBroadcaster(),
	}
	recorder := func(component string) record.EventRecorder {
		return c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	}
	shared := newSharedCaches(c.factory)
	lifecycle := newNodeLifecycle(opts, shared, recorder("node-controller"))
	c.lifecycle = lifecycle
	sched := newScheduler(opts.Client, opts.Clock, shared, recorder("default-scheduler"))
	c.queues = []*queue{
		newDeploymentController(opts.Client, opts.Clock, shared, recorder("deployment-controller")).queue,
		newReplicaSetController(opts.Client, opts.Clock, shared, recorder("replicaset-controller")).queue,
		newStatefulSetController(opts.Client, opts.Clock, shared, recorder("statefulset-controller")).queue,
		newDaemonSetController(opts.Client, opts.Clock, shared, recorder("daemonset-controller")).queue,
		newJobController(opts.Client, opts.Clock, shared, recorder("job-controller")).queue,
		lifecycle.queue,
		newGarbageCollector(opts.Client, opts.Clock, shared).queue,
		newPodCollector(opts.Client, opts.Clock, shared).queue,
		sched.queue,
	}
	c.wiring = shared.err
	c.oneWorker = map[*queue]bool{sched.queue: true}
	return c
}

// SetNodeGrace changes for how long a node may be silent before it counts as not ready;
// 0 means Options.NodeGrace. Safe for concurrent use.
func (c *Controllers) SetNodeGrace(d time.Duration) { c.lifecycle.setGrace(d) }

// withoutManagedFields takes away what is most of an object's memory and what no
// controller reads; an update that leaves it out keeps the server's.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// Run runs until ctx ends and returns when every goroutine it started has been
// told to stop and every worker has. It returns nil after ctx ended, and an
// error when called a second time.
func (c *Controllers) Run(ctx context.Context) error {
	err := errors.New("the workload controllers were started before: make new ones")
	c.once.Do(func() { err = c.run(ctx) })
	return err
}

func (c *Controllers) run(ctx context.Context) error {
	if c.wiring != nil {
		return c.wiring
	}
	c.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	defer c.events.Shutdown()

	ctx, cancel := context.WithCancel(ctx)
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown()
	defer cancel()

	var wg sync.WaitGroup
	defer wg.Wait()
	for _, q := range c.queues {
		defer q.ShutDown()
	}
	if err := c.factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, q := range c.queues {
		n := c.workers
		if c.oneWorker[q] {
			n = 1
		}
		for range n {
			wg.Go(func() { q.work(ctx) })
		}
	}
	<-ctx.Done()
	return nil
}
