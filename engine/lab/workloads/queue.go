package workloads

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// maxRetries is after how many failures in a row a key is dropped until
// something about it changes. It is kube-controller-manager's number: with the
// doubling delays it stands for 82 s.
const maxRetries = 15

// queue is a work queue of keys with the function that handles one. A key is
// never handled by two workers at once; keys added meanwhile are merged.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
	name string
	sync func(ctx context.Context, key string) error
}

func newQueue(name string, clk clock.WithTicker, sync func(ctx context.Context, key string) error) *queue {
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: name, Clock: clk}),
		name: name,
		sync: sync,
	}
}

// work handles keys until the queue is shut down.
func (q *queue) work(ctx context.Context) {
	for {
		key, quit := q.Get()
		if quit {
			return
		}
		q.handle(ctx, key)
	}
}

func (q *queue) handle(ctx context.Context, key string) {
	defer q.Done(key)
	err := q.sync(ctx, key)
	switch {
	case err == nil:
		q.Forget(key)
	case ctx.Err() != nil:
		// The work was cut off by the end of the program: no failure.
	case q.NumRequeues(key) < maxRetries:
		q.AddRateLimited(key)
	default:
		klog.FromContext(ctx).Error(err, "Gave up until its next change", "controller", q.name, "key", key, "tries", maxRetries+1)
		q.Forget(key)
	}
}

// add enqueues an object by namespace and name.
func (q *queue) add(obj metav1.Object) { q.Add(keyOf(obj)) }

func keyOf(obj metav1.Object) string {
	return cache.MetaObjectToName(obj).String()
}

func splitKey(key string) (namespace, name string) {
	n, err := cache.ParseObjectName(key)
	if err != nil {
		// Keys come from keyOf alone; anything else finds no object.
		return "", key
	}
	return n.Namespace, n.Name
}

// deleted unwraps what an informer passes to a delete handler: the object, or
// the last known one when the deletion itself was missed.
func deleted[T any](obj any) (T, bool) {
	if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = t.Obj
	}
	o, ok := obj.(T)
	return o, ok
}

// handlers adapts three typed functions to an informer.
func handlers[T any](add func(T), update func(old, cur T), del func(T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { add(obj.(T)) },
		UpdateFunc: func(old, cur any) {
			update(old.(T), cur.(T))
		},
		DeleteFunc: func(obj any) {
			if o, ok := deleted[T](obj); ok {
				del(o)
			}
		},
	}
}
