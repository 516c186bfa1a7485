package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/topologycache"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
)

// The real controller's name, in the managed-by label of its slices, and its
// timing (pkg/controller/endpointslice).
const (
	sliceManagedBy = "endpointslice-controller.k8s.io"
	// A slice that changed by another hand is looked at after a second, so
	// that changes to several make one sync.
	sliceChangeDelay = time.Second
	minBackoff       = time.Second
	maxBackoff       = 1000 * time.Second
	retriesPerSecond = 10
	retriesAtOnce    = 100
)

var errStaleSlices = errors.New("the informer has not seen all of this controller's own writes yet")

// sliceController keeps EndpointSlices.
type sliceController struct {
	*loop
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	slices   discoverylisters.EndpointSliceLister
	recorder record.EventRecorder
	events   record.EventBroadcaster
	tracker  *endpointsliceutil.EndpointSliceTracker
	triggers *endpointsliceutil.TriggerTimeTracker
	topology *topologycache.TopologyCache
	// All share tracker and topology.
	workers      perWorker[*sliceWorker]
	nodesChanged chan struct{}
}

type sliceWorker struct {
	writes     *recorder
	reconciler *endpointslice.Reconciler
}

func newSliceController(ctx context.Context, o *Options, f informers.SharedInformerFactory) (*sliceController, error) {
	c := &sliceController{
		pods: f.Core().V1().Pods().Lister(), nodes: f.Core().V1().Nodes().Lister(),
		slices:   f.Discovery().V1().EndpointSlices().Lister(),
		events:   record.NewBroadcaster(record.WithContext(ctx)),
		tracker:  endpointsliceutil.NewEndpointSliceTracker(),
		triggers: endpointsliceutil.NewTriggerTimeTracker(),
		topology: topologycache.NewTopologyCache(),

		nodesChanged: make(chan struct{}, 1),
	}
	c.recorder = c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "endpoint-slice-controller"})
	c.loop = newLoop(EndpointSliceController, o, f.Core().V1().Services().Lister(), workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, maxBackoff),
		&workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(retriesPerSecond, retriesAtOnce)},
	))
	c.sync = c.syncService
	c.workers.make = func() *sliceWorker {
		w := &sliceWorker{writes: &recorder{Interface: o.Client}}
		w.reconciler = endpointslice.NewReconciler(w.writes, c.nodes, o.MaxEndpointsPerSlice, c.tracker, c.topology,
			c.recorder, sliceManagedBy, endpointslice.WithPreferSameTrafficDistributionEnabled(true))
		return w
	}
	return c, errors.Join(
		quietly(f.Core().V1().Services().Informer(), c.onService()),
		quietly(f.Core().V1().Pods().Informer(), c.onPod()),
		quietly(f.Core().V1().Nodes().Informer(), c.onNode()),
		quietly(f.Discovery().V1().EndpointSlices().Informer(), c.onSlice()),
	)
}

func (c *sliceController) run(ctx context.Context) {
	c.events.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.o.Client.CoreV1().Events("")})
	defer c.events.Shutdown()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.followNodes(ctx)
	}()
	c.loop.run(ctx)
	<-stopped
}

// syncService is a syncFunc.
func (c *sliceController) syncService(ctx context.Context, n int, key string) ([]string, error) {
	w := c.workers.of(n)
	return w.writes.finish(c.syncWith(ctx, w.reconciler, key))
}

func (c *sliceController) syncWith(ctx context.Context, reconciler *endpointslice.Reconciler, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		// Its slices go with their owner, by garbage collection.
		c.triggers.DeleteService(namespace, name)
		c.tracker.DeleteService(namespace, name)
		for _, w := range c.workers.all() {
			w.reconciler.DeleteService(namespace, name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return nil // its slices, if any, are made by hand
	}
	pods, err := c.podsOf(service)
	if err != nil {
		return err
	}
	existing, err := c.slicesOf(service)
	if err != nil {
		return err
	}
	if c.tracker.StaleSlices(service, existing) {
		return errStaleSlices
	}
	// Also when nothing will be written: the tracker compares with the last
	// sync, whatever came of it.
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(namespace, service, pods)
	if err := reconciler.Reconcile(klog.FromContext(ctx), service, pods, existing, trigger); err != nil {
		c.recorder.Event(service, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			fmt.Sprintf("Error updating Endpoint Slices for Service %s: %v", key, err))
		return err
	}
	return nil
}

func (c *sliceController) podsOf(service *corev1.Service) ([]*corev1.Pod, error) {
	return c.pods.Pods(service.Namespace).List(labels.Set(service.Spec.Selector).AsSelectorPreValidated())
}

// slicesOf returns the Service's slices that are this controller's: those of
// other managers are left alone, and those being deleted are as good as gone.
func (c *sliceController) slicesOf(service *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	all, err := c.slices.EndpointSlices(service.Namespace).List(labels.Set{
		discoveryv1.LabelServiceName: service.Name,
		discoveryv1.LabelManagedBy:   sliceManagedBy,
	}.AsSelectorPreValidated())
	var out []*discoveryv1.EndpointSlice
	for _, s := range all {
		if s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out, err
}

func managed(s *discoveryv1.EndpointSlice) bool {
	return s.Labels[discoveryv1.LabelManagedBy] == sliceManagedBy
}

// onSlice queues the Service of a slice that changed by another hand: its
// generation is not what this controller wrote.
func (c *sliceController) onSlice() cache.ResourceEventHandler {
	queue := func(s *discoveryv1.EndpointSlice) {
		if key, err := endpointslice.ServiceControllerKey(s); err == nil {
			c.queue.AddAfter(key, max(sliceChangeDelay, c.o.BatchPeriod))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if s, ok := obj.(*discoveryv1.EndpointSlice); ok && managed(s) && c.tracker.ShouldSync(s) {
				queue(s)
			}
		},
		UpdateFunc: func(oldObj, obj any) {
			old, ok1 := oldObj.(*discoveryv1.EndpointSlice)
			s, ok2 := obj.(*discoveryv1.EndpointSlice)
			if !ok1 || !ok2 {
				return
			}
			if old.Labels[discoveryv1.LabelServiceName] != s.Labels[discoveryv1.LabelServiceName] {
				// Labels do not change the generation.
				queue(s)
				queue(old)
			} else if managed(old) != managed(s) || managed(s) && c.tracker.ShouldSync(s) {
				queue(s)
			}
		},
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			s, ok := obj.(*discoveryv1.EndpointSlice)
			if ok && managed(s) && c.tracker.Has(s) && !c.tracker.HandleDeletion(s) {
				queue(s)
			}
		},
	}
}

// onNode notes changes that matter to topology hints.
func (c *sliceController) onNode() cache.ResourceEventHandler {
	changed := func() {
		select {
		case c.nodesChanged <- struct{}{}:
		default: // one is pending, it will see this change too
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
		UpdateFunc: func(oldObj, obj any) {
			old, ok1 := oldObj.(*corev1.Node)
			cur, ok2 := obj.(*corev1.Node)
			if ok1 && ok2 && (nodeReady(old) != nodeReady(cur) ||
				old.Labels[corev1.LabelTopologyZone] != cur.Labels[corev1.LabelTopologyZone]) {
				changed()
			}
		},
	}
}

// followNodes queues the Services whose hints no longer fit the nodes.
func (c *sliceController) followNodes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.nodesChanged:
		}
		nodes, err := c.nodes.List(labels.Everything())
		if err != nil {
			continue // a cache in memory; the next change asks again
		}
		c.topology.SetNodes(klog.FromContext(ctx), nodes)
		for _, key := range c.topology.GetOverloadedServices() {
			c.queue.Add(key)
		}
	}
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
