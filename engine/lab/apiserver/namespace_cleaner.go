package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// namespaceCleaner empties namespaces that are being deleted and then lets
// them go, as pkg/controller/namespace does.
type namespaceCleaner struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	lister    corelisters.NamespaceLister
	resources []schema.GroupVersionResource
	queue     workqueue.TypedRateLimitingInterface[string]
}

// cleanAgain is how often a namespace is looked at while its pods terminate.
const cleanAgain = 200 * time.Millisecond

func newNamespaceCleaner(client kubernetes.Interface, meta metadata.Interface, informer cache.SharedIndexInformer, lister corelisters.NamespaceLister, resources []schema.GroupVersionResource) (*namespaceCleaner, error) {
	c := &namespaceCleaner{
		client: client, metadata: meta, lister: lister, resources: resources,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](cleanAgain, 10*time.Second)),
	}
	look := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && ns.DeletionTimestamp != nil {
			c.queue.Add(ns.Name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return c, nil
}

// run works until ctx ends.
func (c *namespaceCleaner) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	for {
		name, quit := c.queue.Get()
		if quit {
			return
		}
		switch done, err := c.clean(ctx, name); {
		case err != nil:
			c.queue.AddRateLimited(name)
		case !done:
			c.queue.Forget(name)
			c.queue.AddAfter(name, cleanAgain)
		default:
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// clean reports whether the namespace is gone.
func (c *namespaceCleaner) clean(ctx context.Context, name string) (bool, error) {
	ns, err := c.lister.Get(name)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	left := 0
	var errs []error
	for _, r := range c.resources {
		n, err := c.empty(ctx, name, r)
		left += n
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || left > 0 {
		return false, err
	}
	ns = ns.DeepCopy()
	ns.Spec.Finalizers = nil
	_, err = c.client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	return true, nil
}

// empty asks for everything in the namespace to be deleted and returns how
// much is still there.
func (c *namespaceCleaner) empty(ctx context.Context, namespace string, r schema.GroupVersionResource) (int, error) {
	client := c.metadata.Resource(r).Namespace(namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	if len(list.Items) == 0 {
		return 0, nil
	}
	// In the background: dependants are in this namespace and go with it.
	policy := metav1.DeletePropagationBackground
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{}); err != nil {
		return 0, err
	}
	list, err = client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}
