package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kconverge/kconverge/collect"
)

// Defaults, as the real controllers have them.
const (
	DefaultWorkers              = 5
	DefaultResync               = 12 * time.Hour
	DefaultMaxEndpointsPerSlice = 100
	// DefaultMaxEndpointsPerSubset is how many addresses of one subset of
	// hand-made Endpoints are mirrored.
	DefaultMaxEndpointsPerSubset = 1000
)

// Names of the controllers in collect.ReconcileStep.
const (
	EndpointSliceController = "endpointslice"
	EndpointsController     = "endpoints"
	MirrorController        = "mirroring"
)

// Options configure a Reconciler.
type Options struct {
	// Client reads and writes; required.
	Client kubernetes.Interface
	// Sink takes the steps as events of collect.SourceReconciler about the
	// Service; required.
	Sink collect.Sink
	// Clock stamps steps and times retries; the real clock when nil.
	Clock clock.WithTicker
	// Workers of each controller; DefaultWorkers when 0.
	Workers int
	// Resync looks at every Service again this often, whatever happens;
	// DefaultResync when 0.
	Resync time.Duration
	// BatchPeriod delays what pod changes ask for, so that several make one
	// write; 0, the real default, does not.
	BatchPeriod time.Duration
	// MaxEndpointsPerSlice; DefaultMaxEndpointsPerSlice when 0.
	MaxEndpointsPerSlice int32
	// MaxEndpointsPerSubset; DefaultMaxEndpointsPerSubset when 0.
	MaxEndpointsPerSubset int32
	// Before is called before each sync of a Service ("namespace/name") by a
	// controller; an error counts as a failed sync. It may wait, to make the
	// controller slow. It is called by all workers at once.
	Before func(ctx context.Context, controller, key string) error
	// Lost may let what a changed pod means to a Service ("namespace/name") get lost:
	// the controller does not look at it, until something else makes it. It is meant
	// for faults; nil for never.
	Lost func(controller, key string) bool
}

// Reconciler runs the three controllers.
type Reconciler struct {
	o    Options
	tune tuning
}

// New checks the options and fills in defaults.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.Sink == nil {
		return nil, errors.New("reconcile: Options.Client and Options.Sink are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	o.Workers = min(o.Workers, MaxWorkers)
	if o.Resync <= 0 {
		o.Resync = DefaultResync
	}
	if o.MaxEndpointsPerSlice <= 0 {
		o.MaxEndpointsPerSlice = DefaultMaxEndpointsPerSlice
	}
	if o.MaxEndpointsPerSubset <= 0 {
		o.MaxEndpointsPerSubset = DefaultMaxEndpointsPerSubset
	}
	return &Reconciler{o: o, tune: tuning{workers: o.Workers, changed: make(chan struct{})}}, nil
}

// Run reconciles until ctx ends and returns when all workers have stopped. The
// error names what could not be started.
func (r *Reconciler) Run(ctx context.Context) error {
	// client-go logs to the context's logger. What goes wrong with a Service
	// is a step; an API server that does not answer is seen by every watch.
	ctx = klog.NewContext(ctx, klog.Logger{})
	factory := informers.NewSharedInformerFactoryWithOptions(r.o.Client, r.o.Resync, informers.WithTransform(trim))
	slices, err := newSliceController(ctx, &r.o, factory)
	if err != nil {
		return err
	}
	endpoints, err := newEndpointsController(&r.o, factory)
	if err != nil {
		return err
	}
	mirror, err := newMirrorController(ctx, &r.o, factory)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	for _, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil // ctx has ended
		}
	}
	r.begin(slices.loop, endpoints.loop, mirror.loop)
	var wg sync.WaitGroup
	wg.Go(func() { r.resyncs(ctx, slices.loop, endpoints.loop) })
	wg.Go(func() { slices.run(ctx) })
	wg.Go(func() { endpoints.run(ctx) })
	wg.Go(func() { mirror.run(ctx) })
	wg.Wait()
	return nil
}

// trim drops what no controller reads, for memory.
func trim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// quietly sets up an informer: its reflector retries by itself, and must not
// write to the terminal.
func quietly(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	if err != nil || handler == nil {
		return err
	}
	_, err = informer.AddEventHandler(handler)
	return err
}
