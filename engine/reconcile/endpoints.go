package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"
)

// Label, value and annotation of the real controller (pkg/controller/endpoint).
const (
	labelEndpointsManagedBy = "endpoints.kubernetes.io/managed-by"
	endpointsManagedBy      = "endpoint-controller"
	overCapacityTruncated   = "truncated"
	// leaderAnnotation marks Endpoints that old versions used as locks.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
)

var errStaleEndpoints = errors.New("the informer has not seen this controller's last write yet")

// endpointsController keeps legacy Endpoints.
type endpointsController struct {
	*loop
	pods      corelisters.PodLister
	endpoints corelisters.EndpointsLister
	triggers  *endpointsliceutil.TriggerTimeTracker
	clients   perWorker[*recorder]

	mu sync.Mutex
	// overwritten is, for each object, the resourceVersion that the last
	// update replaced: an informer that still shows it is behind.
	overwritten map[string]string
}

func newEndpointsController(o *Options, f informers.SharedInformerFactory) (*endpointsController, error) {
	c := &endpointsController{
		pods: f.Core().V1().Pods().Lister(), endpoints: f.Core().V1().Endpoints().Lister(),
		triggers:    endpointsliceutil.NewTriggerTimeTracker(),
		overwritten: map[string]string{},
	}
	// This controller, unlike the other one, retries from 5 ms on.
	c.loop = newLoop(EndpointsController, o, f.Core().V1().Services().Lister(), workqueue.DefaultTypedControllerRateLimiter[string]())
	c.sync = c.syncService
	c.clients.make = func() *recorder { return &recorder{Interface: o.Client} }
	// The other controller has set up these two informers' error handlers.
	_, err1 := f.Core().V1().Services().Informer().AddEventHandler(c.onService())
	_, err2 := f.Core().V1().Pods().Informer().AddEventHandler(c.onPod())
	return c, errors.Join(err1, err2, quietly(f.Core().V1().Endpoints().Informer(), cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				c.queue.Add(key)
			}
		},
	}))
}

func (c *endpointsController) run(ctx context.Context) {
	c.queueLeftovers()
	c.loop.run(ctx)
}

// queueLeftovers has every Endpoints object looked at once: its Service may
// have gone while nobody watched.
func (c *endpointsController) queueLeftovers() {
	list, err := c.endpoints.List(labels.Everything())
	if err != nil {
		return // a cache in memory that has just been filled
	}
	for _, e := range list {
		if _, lock := e.Annotations[leaderAnnotation]; !lock {
			c.queue.Add(e.Namespace + "/" + e.Name)
		}
	}
}

// syncService is a syncFunc.
func (c *endpointsController) syncService(ctx context.Context, n int, key string) ([]string, error) {
	client := c.clients.of(n)
	return client.finish(c.syncWith(ctx, client, key))
}

func (c *endpointsController) syncWith(ctx context.Context, client *recorder, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		err := client.CoreV1().Endpoints(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Endpoints %s: %w", key, err)
		}
		c.triggers.DeleteService(namespace, name)
		c.setOverwritten(key, "")
		return nil
	}
	if err != nil {
		return err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return nil // its Endpoints, if any, are made by hand
	}
	pods, err := c.pods.Pods(namespace).List(labels.Set(service.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return err
	}
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(namespace, service, pods)
	current, err := c.endpoints.Endpoints(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		current = nil
	} else if err != nil {
		return err
	} else if c.isOverwritten(key, current.ResourceVersion) {
		return errStaleEndpoints
	}
	wanted := wantedEndpoints(service, pods, current)
	if current != nil && sameEndpoints(current, wanted) {
		return nil
	}
	if trigger.IsZero() {
		delete(wanted.Annotations, corev1.EndpointsLastChangeTriggerTime)
	} else {
		wanted.Annotations[corev1.EndpointsLastChangeTriggerTime] = trigger.UTC().Format(time.RFC3339Nano)
	}
	return c.write(ctx, client, key, current, wanted)
}

func (c *endpointsController) write(ctx context.Context, client *recorder, key string, current, wanted *corev1.Endpoints) error { //nolint:staticcheck // the legacy controller
	api := client.CoreV1().Endpoints(wanted.Namespace)
	if current == nil {
		_, err := api.Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // nothing can be created there any more
		}
		if err != nil {
			return fmt.Errorf("create Endpoints %s: %w", key, err)
		}
		return nil
	}
	updated, err := api.Update(ctx, wanted, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update Endpoints %s: %w", key, err)
	}
	if updated.ResourceVersion != current.ResourceVersion {
		c.setOverwritten(key, current.ResourceVersion)
	}
	return nil
}

func (c *endpointsController) setOverwritten(key, resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resourceVersion == "" {
		delete(c.overwritten, key)
	} else {
		c.overwritten[key] = resourceVersion
	}
}

func (c *endpointsController) isOverwritten(key, resourceVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overwritten[key] == resourceVersion
}

// wantedEndpoints is the object as it should be, on the base of the current
// one, nil when there is none. The trigger time is left as it is.
func wantedEndpoints(service *corev1.Service, pods []*corev1.Pod, current *corev1.Endpoints) *corev1.Endpoints { //nolint:staticcheck // the legacy controller
	out := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}} //nolint:staticcheck // the legacy controller
	if current != nil {
		out = current.DeepCopy()
	}
	out.Labels = maps.Clone(service.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[labelEndpointsManagedBy] = endpointsManagedBy
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Labels[corev1.IsHeadlessService] = ""
	} else {
		delete(out.Labels, corev1.IsHeadlessService)
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Subsets = repack(subsetsOf(service, pods))
	if truncate(out.Subsets) {
		out.Annotations[corev1.EndpointsOverCapacity] = overCapacityTruncated
	} else {
		delete(out.Annotations, corev1.EndpointsOverCapacity)
	}
	return out
}

// sameEndpoints compares all but the trigger time and the headless label, which
// the real controller corrects only together with something else
// (labelsCorrectForEndpoints). The current subsets may be in another order,
// written by another hand or version.
func sameEndpoints(current, wanted *corev1.Endpoints) bool { //nolint:staticcheck // the legacy controller
	unless := func(labels map[string]string) map[string]string {
		out := maps.Clone(labels)
		delete(out, corev1.IsHeadlessService)
		return out
	}
	return maps.Equal(unless(current.Labels), unless(wanted.Labels)) &&
		current.Annotations[corev1.EndpointsOverCapacity] == wanted.Annotations[corev1.EndpointsOverCapacity] &&
		apiequality.Semantic.DeepEqual(withoutVersions(current.Subsets), withoutVersions(wanted.Subsets))
}

// withoutVersions repacks, and drops the pods' resourceVersions, which old
// versions of the controller wrote.
func withoutVersions(in []corev1.EndpointSubset) []corev1.EndpointSubset { //nolint:staticcheck // the legacy controller
	out := repack(in)
	clear := func(list []corev1.EndpointAddress) { //nolint:staticcheck // the legacy controller
		for i := range list {
			if ref := list[i].TargetRef; ref != nil {
				c := *ref
				c.ResourceVersion = ""
				list[i].TargetRef = &c
			}
		}
	}
	for i := range out {
		clear(out[i].Addresses)
		clear(out[i].NotReadyAddresses)
	}
	return out
}

// subsetsOf gives each selected pod a subset for each of its ports.
func subsetsOf(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset { //nolint:staticcheck // the legacy controller
	var out []corev1.EndpointSubset
	for _, pod := range pods {
		// Terminating pods are left out, unlike in slices, unless not-ready
		// addresses are to be published.
		if !endpointsliceutil.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		ip, ok := addressFor(service, pod)
		if !ok {
			continue
		}
		address := corev1.EndpointAddress{ //nolint:staticcheck // the legacy controller
			IP: ip, NodeName: &pod.Spec.NodeName,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		if endpointsliceutil.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		subset := corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{address}}
		if !service.Spec.PublishNotReadyAddresses && !endpointsliceutil.IsPodReady(pod) {
			subset = corev1.EndpointSubset{NotReadyAddresses: []corev1.EndpointAddress{address}}
		}
		if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone {
			out = append(out, subset)
		}
		for i := range service.Spec.Ports {
			port := &service.Spec.Ports[i]
			number, err := endpointslice.FindPort(pod, port)
			if err != nil {
				continue // a named port that this pod does not have
			}
			s := subset
			s.Ports = []corev1.EndpointPort{{Name: port.Name, Port: int32(number), Protocol: port.Protocol, AppProtocol: port.AppProtocol}}
			out = append(out, s)
		}
	}
	return out
}

// addressFor returns the pod's address in the Service's first family.
func addressFor(service *corev1.Service, pod *corev1.Pod) (string, bool) {
	want6 := utilnet.IsIPv6String(pod.Status.PodIP)
	if len(service.Spec.IPFamilies) > 0 {
		want6 = service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	} else if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		want6 = utilnet.IsIPv6String(ip)
	}
	for _, p := range pod.Status.PodIPs {
		if ip := utilnet.ParseIPSloppy(p.IP); ip != nil && utilnet.IsIPv6(ip) == want6 {
			return ip.String(), true
		}
	}
	return "", false
}
