package workloads

import (
	"context"
	"fmt"

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

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// deploymentController makes a ReplicaSet for each revision of a Deployment and
// moves replicas from the old ones to the newest.
type deploymentController struct {
	controller
}

func newDeploymentController(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *deploymentController {
	c := &deploymentController{}
	c.controller = newController("deployment", client, clk, caches, events, c.sync)
	follow[*appsv1.Deployment](&c.controller, caches.deployments)
	on(caches, caches.replicaSets, c.wakeOwner,
		func(old, cur *appsv1.ReplicaSet) {
			c.wakeOwner(old)
			c.wakeOwner(cur)
		},
		c.wakeOwner)
	// A Recreate rollout waits for the old pods to be gone.
	on(caches, caches.pods,
		func(*corev1.Pod) {},
		func(old, cur *corev1.Pod) {
			if !podTerminal(old) && podTerminal(cur) {
				c.wakeRecreate(cur)
			}
		},
		c.wakeRecreate)
	return c
}

// wakeOwner wakes the Deployment of a ReplicaSet, or those that may adopt it.
func (c *deploymentController) wakeOwner(rs *appsv1.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		if d := c.caches.deploymentOf(rs.Namespace, ref); d != nil {
			c.queue.add(d)
		}
		return
	}
	if rs.DeletionTimestamp != nil {
		return
	}
	ds, err := c.caches.deploymentLister.Deployments(rs.Namespace).List(labels.Everything())
	if err != nil {
		// A lister over a cache has no way to fail.
		return
	}
	for _, d := range ds {
		if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil && !s.Empty() && s.Matches(labels.Set(rs.Labels)) {
			c.queue.add(d)
		}
	}
}

func (c *deploymentController) wakeRecreate(p *corev1.Pod) {
	rs := c.caches.replicaSetOf(p.Namespace, metav1.GetControllerOfNoCopy(p))
	if rs == nil {
		return
	}
	d := c.caches.deploymentOf(rs.Namespace, metav1.GetControllerOfNoCopy(rs))
	if d != nil && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		c.queue.add(d)
	}
}

func (c *deploymentController) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	cached, err := c.caches.deploymentLister.Deployments(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(cached.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of Deployment %s: %w", key, err)
	}
	if selector.Empty() {
		c.events.Event(cached, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
		return nil
	}
	rss, err := controlledBy[*appsv1.ReplicaSet](c.caches.replicaSets, cached.UID, namespace, true)
	if err != nil {
		return err
	}
	if rss, err = claim(ctx, c.claimer(cached, selector), rss); err != nil {
		return err
	}
	r := newRollout(c, cached.DeepCopy(), rss)
	if r.d.DeletionTimestamp != nil {
		return r.updateStatus(ctx, false)
	}
	if err := r.markPaused(ctx); err != nil {
		return err
	}
	if err := r.syncRevision(ctx); err != nil {
		return err
	}
	switch {
	case r.d.Spec.Paused:
		if err := r.scale(ctx); err != nil {
			return err
		}
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
		return r.updateStatus(ctx, false)
	case r.wasScaled():
		if err := r.scale(ctx); err != nil {
			return err
		}
		return r.updateStatus(ctx, false)
	case r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return r.recreate(ctx)
	case r.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		return r.rollingUpdate(ctx)
	}
	return fmt.Errorf("Deployment %s has strategy %q: it must be RollingUpdate or Recreate", key, r.d.Spec.Strategy.Type)
}

func (c *deploymentController) claimer(d *appsv1.Deployment, selector labels.Selector) *claimer {
	return &claimer{
		owner: d, kind: deploymentKind, selector: selector,
		fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, name string, data []byte) error {
			_, err := c.client.AppsV1().ReplicaSets(d.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
			return err
		},
	}
}

// rollout is one pass over one Deployment: the Deployment (an own copy) and its
// ReplicaSets, split into the newest revision and the older ones. Writes put
// what the API server answered in the place of what was read.
type rollout struct {
	*deploymentController
	d *appsv1.Deployment
	// new is the ReplicaSet of the current template, nil until it exists.
	new *appsv1.ReplicaSet
	// old are the other ones, oldest first.
	old []*appsv1.ReplicaSet
}

func newRollout(c *deploymentController, d *appsv1.Deployment, rss []*appsv1.ReplicaSet) *rollout {
	r := &rollout{deploymentController: c, d: d}
	for _, rs := range sortedBy(rss, oldestFirst) {
		if r.new == nil && sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			r.new = rs
			continue
		}
		r.old = append(r.old, rs)
	}
	return r
}

func (r *rollout) all() []*appsv1.ReplicaSet {
	out := append([]*appsv1.ReplicaSet(nil), r.old...)
	if r.new != nil {
		out = append(out, r.new)
	}
	return out
}

// put replaces a ReplicaSet by its newer version.
func (r *rollout) put(rs *appsv1.ReplicaSet) {
	if r.new != nil && r.new.UID == rs.UID {
		r.new = rs
	}
	for i := range r.old {
		if r.old[i].UID == rs.UID {
			r.old[i] = rs
		}
	}
}

// cleanUp deletes the oldest revisions beyond revisionHistoryLimit.
func (r *rollout) cleanUp(ctx context.Context) error {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil {
		return nil
	}
	var candidates []*appsv1.ReplicaSet
	for _, rs := range sortedBy(r.old, byRevision) {
		if rs.DeletionTimestamp == nil {
			candidates = append(candidates, rs)
		}
	}
	for _, rs := range candidates[:max(0, len(candidates)-int(*limit))] {
		if rs.Status.Replicas != 0 || *rs.Spec.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		err := r.client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(rs.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete old revision %s/%s: %w", rs.Namespace, rs.Name, err)
		}
	}
	return nil
}
