package workloads

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// replicaSetController keeps as many pods as each ReplicaSet asks for.
type replicaSetController struct {
	controller
}

func newReplicaSetController(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *replicaSetController {
	c := &replicaSetController{}
	c.controller = newController("replicaset", client, clk, caches, events, c.sync)
	follow[*appsv1.ReplicaSet](&c.controller, caches.replicaSets)
	on(caches, caches.pods, c.podAdded, c.podUpdated, c.podDeleted)
	return c
}

func (c *replicaSetController) podAdded(p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		// First seen while terminating: it fulfils no creation.
		c.podDeleted(p)
		return
	}
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil {
		if rs := c.caches.replicaSetOf(p.Namespace, ref); rs != nil {
			c.expectations.created(keyOf(rs))
			c.queue.add(rs)
		}
		return
	}
	c.wakeSelecting(p)
}

func (c *replicaSetController) podUpdated(old, cur *corev1.Pod) {
	if old.UID != cur.UID {
		c.podDeleted(old)
		c.podAdded(cur)
		return
	}
	if cur.DeletionTimestamp != nil {
		// The deletion counts as done when termination begins: the ReplicaSet
		// replaces the pod now, not when it is gone.
		c.podDeleted(cur)
		if labels.Equals(old.Labels, cur.Labels) {
			return
		}
	}
	oldRef, ref := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(cur)
	moved := (oldRef == nil) != (ref == nil) || oldRef != nil && oldRef.UID != ref.UID
	if moved {
		if rs := c.caches.replicaSetOf(old.Namespace, oldRef); rs != nil {
			c.queue.add(rs)
		}
	}
	if ref == nil {
		if moved || !labels.Equals(old.Labels, cur.Labels) {
			c.wakeSelecting(cur)
		}
		return
	}
	rs := c.caches.replicaSetOf(cur.Namespace, ref)
	if rs == nil {
		return
	}
	c.queue.add(rs)
	if rs.Spec.MinReadySeconds > 0 && !podReady(old) && podReady(cur) {
		c.queue.AddAfter(keyOf(rs), time.Duration(rs.Spec.MinReadySeconds)*time.Second)
	}
}

func (c *replicaSetController) podDeleted(p *corev1.Pod) {
	if rs := c.caches.replicaSetOf(p.Namespace, metav1.GetControllerOfNoCopy(p)); rs != nil {
		c.expectations.deleted(keyOf(rs), p.UID)
		c.queue.add(rs)
	}
}

// wakeSelecting wakes the ReplicaSets that may want to adopt an orphan.
func (c *replicaSetController) wakeSelecting(p *corev1.Pod) {
	rss, err := c.caches.replicaSetLister.GetPodReplicaSets(p)
	if err != nil {
		// The lister's error means that none selects the pod.
		return
	}
	for _, rs := range rss {
		c.queue.add(rs)
	}
}

func (c *replicaSetController) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	rs, err := c.caches.replicaSetLister.ReplicaSets(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.expectations.forget(key)
		return nil
	}
	if err != nil {
		return err
	}
	// Asked before listing: what arrives in between can only make the list
	// fresher than the answer.
	mayManage := c.expectations.satisfied(key)
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return err
	}
	all, err := controlledBy[*corev1.Pod](c.caches.pods, rs.UID, rs.Namespace, true)
	if err != nil {
		return err
	}
	var active []*corev1.Pod
	var terminating int32
	for _, p := range all {
		switch {
		case podActive(p):
			active = append(active, p)
		case !podTerminal(p) && metav1.IsControlledBy(p, rs) && selector.Matches(labels.Set(p.Labels)):
			terminating++
		}
	}
	active, err = claim(ctx, c.claimer(rs, selector), active)
	if err != nil {
		return err
	}
	var manageErr error
	if mayManage && rs.DeletionTimestamp == nil {
		manageErr = c.manage(ctx, key, rs, active)
	}
	if err := c.updateStatus(ctx, rs, active, terminating, manageErr); err != nil {
		return err
	}
	if manageErr != nil {
		return manageErr
	}
	if next, ok := nextAvailability(active, rs.Spec.MinReadySeconds, c.clock.Now()); ok {
		c.queue.AddAfter(key, next)
	}
	return nil
}

func (c *replicaSetController) claimer(rs *appsv1.ReplicaSet, selector labels.Selector) *claimer {
	return &claimer{
		owner: rs, kind: replicaSetKind, selector: selector,
		fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().ReplicaSets(rs.Namespace).Get(ctx, rs.Name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, name string, data []byte) error {
			_, err := c.client.CoreV1().Pods(rs.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
			return err
		},
	}
}
