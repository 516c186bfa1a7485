package reconcile

import (
	"context"
	"errors"
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
	endpointsliceutil "k8s.io/endpointslice/util"
)

// The real controller's name, in the managed-by label of its slices, and the
// longest wait between its retries (pkg/controller/endpointslicemirroring).
const (
	mirrorManagedBy  = "endpointslicemirroring-controller.k8s.io"
	maxMirrorBackoff = 100 * time.Second
)

// mirrorController copies hand-made Endpoints of Services without selector into
// slices, since kube-proxy reads nothing else. Its keys are those of the
// Endpoints, which are those of the Services.
type mirrorController struct {
	*loop
	endpoints corelisters.EndpointsLister
	slices    discoverylisters.EndpointSliceLister
	recorder  record.EventRecorder
	events    record.EventBroadcaster
	tracker   *endpointsliceutil.EndpointSliceTracker
	clients   perWorker[*recorder]
}

// newMirrorController expects that the other two controllers have set up the
// informers' error handlers.
func newMirrorController(ctx context.Context, o *Options, f informers.SharedInformerFactory) (*mirrorController, error) {
	c := &mirrorController{
		endpoints: f.Core().V1().Endpoints().Lister(), slices: f.Discovery().V1().EndpointSlices().Lister(),
		events:  record.NewBroadcaster(record.WithContext(ctx)),
		tracker: endpointsliceutil.NewEndpointSliceTracker(),
	}
	c.recorder = c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "endpoint-slice-mirroring-controller"})
	c.loop = newLoop(MirrorController, o, f.Core().V1().Services().Lister(), workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, maxMirrorBackoff),
		&workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(retriesPerSecond, retriesAtOnce)},
	))
	c.sync = c.syncEndpoints
	c.clients.make = func() *recorder { return &recorder{Interface: o.Client} }
	var errs []error
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		f.Core().V1().Services().Informer():            c.onSelector(),
		f.Core().V1().Endpoints().Informer():           c.onEndpoints(),
		f.Discovery().V1().EndpointSlices().Informer(): c.onSlice(),
	} {
		_, err := informer.AddEventHandler(handler)
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

func (c *mirrorController) run(ctx context.Context) {
	c.events.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.o.Client.CoreV1().Events("")})
	defer c.events.Shutdown()
	c.loop.run(ctx)
}

// syncEndpoints is a syncFunc.
func (c *mirrorController) syncEndpoints(ctx context.Context, n int, key string) ([]string, error) {
	client := c.clients.of(n)
	return client.finish(c.syncWith(ctx, client, key))
}

// syncWith mirrors, or clears away what was mirrored: when the Endpoints are
// gone or not to be mirrored, when there is no Service of that name, and when
// the Service has a selector.
func (c *mirrorController) syncWith(ctx context.Context, client *recorder, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	existing, err := c.slicesOf(namespace, name)
	if err != nil {
		return err
	}
	endpoints, err := c.endpoints.Endpoints(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	service, serviceErr := c.services.Services(namespace).Get(name)
	if serviceErr != nil && !apierrors.IsNotFound(serviceErr) {
		return serviceErr
	}
	if err != nil || serviceErr != nil || service.Spec.Selector != nil || !mirrored(endpoints) {
		c.tracker.DeleteService(namespace, name)
		return c.write(ctx, client, endpoints, mirrorPlan{remove: existing})
	}
	if c.tracker.StaleSlices(service, existing) {
		return errStaleSlices
	}
	wanted, skipped := mirrorOf(endpoints, int(c.o.MaxEndpointsPerSubset))
	skipped.tell(c.recorder, endpoints, c.o.MaxEndpointsPerSubset)
	plan := planMirror(endpoints, wanted, existing)
	for _, s := range plan.keep {
		if !c.tracker.Has(s) {
			c.tracker.Update(s)
		}
	}
	return c.write(ctx, client, endpoints, plan)
}

// mirrored reports whether Endpoints are to be mirrored if their Service has no
// selector: not when they ask to be left out, nor when they are the lock of a
// leader election.
func mirrored(e *corev1.Endpoints) bool { //nolint:staticcheck // what is mirrored
	_, lock := e.Annotations[leaderAnnotation]
	return !lock && e.Labels[discoveryv1.LabelSkipMirror] != "true"
}

// slicesOf returns the slices that this controller made for a Service.
func (c *mirrorController) slicesOf(namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	return c.slices.EndpointSlices(namespace).List(labels.Set{
		discoveryv1.LabelServiceName: name,
		discoveryv1.LabelManagedBy:   mirrorManagedBy,
	}.AsSelectorPreValidated())
}

// onSelector queues Services without selector as they come and go, and those
// that gain or lose theirs.
func (c *mirrorController) onSelector() cache.ResourceEventHandler {
	queue := func(s *corev1.Service, of bool) {
		if of {
			c.queue.Add(s.Namespace + "/" + s.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if s, ok := obj.(*corev1.Service); ok {
				queue(s, s.Spec.Selector == nil)
			}
		},
		UpdateFunc: func(oldObj, obj any) {
			old, ok1 := oldObj.(*corev1.Service)
			s, ok2 := obj.(*corev1.Service)
			if ok1 && ok2 {
				queue(s, (old.Spec.Selector == nil) != (s.Spec.Selector == nil))
			}
		},
		DeleteFunc: func(obj any) {
			if s, ok := last[*corev1.Service](obj); ok {
				queue(s, s.Spec.Selector == nil)
			}
		},
	}
}

// onEndpoints queues Endpoints that are, or were, to be mirrored.
func (c *mirrorController) onEndpoints() cache.ResourceEventHandler {
	changed := func(old, e *corev1.Endpoints) { //nolint:staticcheck // what is mirrored
		if !mirrored(old) && !mirrored(e) || c.ofAnother(e) {
			return
		}
		c.queue.Add(e.Namespace + "/" + e.Name)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if e, ok := obj.(*corev1.Endpoints); ok { //nolint:staticcheck // what is mirrored
				changed(e, e)
			}
		},
		UpdateFunc: func(oldObj, obj any) {
			old, ok1 := oldObj.(*corev1.Endpoints) //nolint:staticcheck // what is mirrored
			e, ok2 := obj.(*corev1.Endpoints)      //nolint:staticcheck // what is mirrored
			if ok1 && ok2 {
				changed(old, e)
			}
		},
		DeleteFunc: func(obj any) {
			if e, ok := last[*corev1.Endpoints](obj); ok { //nolint:staticcheck // what is mirrored
				changed(e, e)
			}
		},
	}
}

// ofAnother reports that Endpoints are the other controller's business, so that
// a sync would find nothing to do. The real controller does that sync: it would
// only fill the record of steps here. Should the Service's selector be older
// than it seems, the change of it queues the Service.
func (c *mirrorController) ofAnother(e *corev1.Endpoints) bool { //nolint:staticcheck // what is mirrored
	s, err := c.services.Services(e.Namespace).Get(e.Name)
	if err != nil || s.Spec.Selector == nil {
		return false
	}
	made, err := c.slicesOf(e.Namespace, e.Name)
	return err == nil && len(made) == 0
}

// onSlice queues the Service of a mirrored slice that changed by another hand.
func (c *mirrorController) onSlice() cache.ResourceEventHandler {
	ours := func(s *discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelManagedBy] == mirrorManagedBy
	}
	queue := func(s *discoveryv1.EndpointSlice) {
		if key, err := endpointslice.ServiceControllerKey(s); err == nil {
			c.queue.AddAfter(key, c.o.BatchPeriod)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if s, ok := obj.(*discoveryv1.EndpointSlice); ok && ours(s) && c.tracker.ShouldSync(s) {
				queue(s)
			}
		},
		UpdateFunc: func(oldObj, obj any) {
			old, ok1 := oldObj.(*discoveryv1.EndpointSlice)
			s, ok2 := obj.(*discoveryv1.EndpointSlice)
			switch {
			case !ok1 || !ok2 || !ours(old) && !ours(s):
			case old.Labels[discoveryv1.LabelServiceName] != s.Labels[discoveryv1.LabelServiceName]:
				queue(s)
				queue(old)
			case ours(old) != ours(s) || c.tracker.ShouldSync(s):
				queue(s)
			}
		},
		DeleteFunc: func(obj any) {
			s, ok := last[*discoveryv1.EndpointSlice](obj)
			if ok && ours(s) && c.tracker.Has(s) && !c.tracker.HandleDeletion(s) {
				queue(s)
			}
		},
	}
}

// last returns the last known state of a deleted object.
func last[T any](obj any) (T, bool) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	t, ok := obj.(T)
	return t, ok
}
