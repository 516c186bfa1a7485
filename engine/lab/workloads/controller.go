package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// controller is what the controllers of workloads have in common.
type controller struct {
	client       kubernetes.Interface
	clock        clock.PassiveClock
	caches       *sharedCaches
	events       record.EventRecorder
	expectations *expectations
	queue        *queue
}

func newController(name string, client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder, sync func(ctx context.Context, key string) error) controller {
	return controller{
		client: client, clock: clk, caches: caches, events: events,
		expectations: newExpectations(clk), queue: newQueue(name, clk, sync),
	}
}

// follow wakes the controller for the objects it is there for. What one expected
// is forgotten when it is gone, or when another has taken its name.
func follow[T metav1.Object](c *controller, i cache.SharedIndexInformer) {
	on(c.caches, i,
		func(o T) { c.queue.add(o) },
		func(old, cur T) {
			if old.GetUID() != cur.GetUID() {
				c.expectations.forget(keyOf(old))
			}
			c.queue.add(cur)
		},
		func(o T) {
			c.expectations.forget(keyOf(o))
			c.queue.add(o)
		})
}

// followPods tells what was expected of the owners of a kind that it has come,
// and wakes for every pod as it was and as it is. A deletion has come when
// termination begins; a pod first seen while terminating fulfils no creation.
func (c *controller) followPods(kind string, wake func(*corev1.Pod)) {
	on(c.caches, c.caches.pods,
		func(p *corev1.Pod) {
			if key := controllerKey(p, kind); key != "" && p.DeletionTimestamp == nil {
				c.expectations.created(key)
			}
			wake(p)
		},
		func(old, cur *corev1.Pod) {
			if key := controllerKey(cur, kind); key != "" && cur.DeletionTimestamp != nil {
				c.expectations.deleted(key, cur.UID)
			}
			wake(old)
			wake(cur)
		},
		func(p *corev1.Pod) {
			if key := controllerKey(p, kind); key != "" {
				c.expectations.deleted(key, p.UID)
			}
			wake(p)
		})
}

// wakeOwnersOf wakes the owner of a kind that controls the pod, or, when nothing
// does, those that select it and may want to adopt it.
func wakeOwnersOf[T metav1.Object](c *controller, p *corev1.Pod, kind string, selecting func(*corev1.Pod) ([]T, error)) {
	if metav1.GetControllerOfNoCopy(p) != nil {
		if key := controllerKey(p, kind); key != "" {
			c.queue.Add(key)
		}
		return
	}
	owners, err := selecting(p)
	if err != nil {
		return // the lister's way to say that there is none
	}
	for _, o := range owners {
		c.queue.add(o)
	}
}

// controllerKey is the key of the object of a kind that controls a pod, or "".
func controllerKey(p *corev1.Pod, kind string) string {
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == kind {
		return p.Namespace + "/" + ref.Name
	}
	return ""
}
