package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// burstReplicas is how many pods one pass creates or deletes at most.
const burstReplicas = 500

// manage creates or deletes pods until there are as many as wanted.
func (c *replicaSetController) manage(ctx context.Context, key string, rs *appsv1.ReplicaSet, active []*corev1.Pod) error {
	diff := len(active) - int(*rs.Spec.Replicas)
	switch {
	case diff < 0:
		return c.createPods(ctx, key, rs, min(-diff, burstReplicas))
	case diff > 0:
		return c.deleteSurplus(ctx, key, rs, active, min(diff, burstReplicas))
	}
	return nil
}

// createPods creates n pods in batches of 1, 2, 4, …: what fails for one fails
// for all mostly, and is then tried once, not n times.
func (c *replicaSetController) createPods(ctx context.Context, key string, rs *appsv1.ReplicaSet, n int) error {
	c.expectations.expectCreates(key, n)
	done := 0
	var failure error
	for batch := 1; done < n && failure == nil; batch *= 2 {
		size := min(batch, n-done)
		errs := inParallel(size, func(int) error { return c.createPod(ctx, rs) })
		done += size - len(errs)
		failure = errors.Join(errs...)
	}
	for range n - done {
		c.expectations.created(key)
	}
	return failure
}

func (c *replicaSetController) createPod(ctx context.Context, rs *appsv1.ReplicaSet) error {
	p, err := c.client.CoreV1().Pods(rs.Namespace).Create(ctx, podFromTemplate(rs), metav1.CreateOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// All creations fail until the ReplicaSet itself goes with its
		// namespace: there is nothing to try again.
		return nil
	}
	if err != nil {
		c.events.Eventf(rs, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return fmt.Errorf("create a pod of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	c.events.Eventf(rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", p.Name)
	return nil
}

func podFromTemplate(rs *appsv1.ReplicaSet) *corev1.Pod {
	p := podOf(&rs.Spec.Template, rs, replicaSetKind)
	p.GenerateName = namePrefix(rs)
	return p
}

// namePrefix is what the names of an owner's pods begin with.
func namePrefix(owner metav1.Object) string {
	prefix := owner.GetName() + "-"
	if len(validation.IsDNS1123Subdomain(prefix+"x")) > 0 {
		prefix = owner.GetName()
	}
	return prefix
}

// podOf is a pod without a name, made from a template for its owner.
func podOf(t *corev1.PodTemplateSpec, owner metav1.Object, kind schema.GroupVersionKind) *corev1.Pod {
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       owner.GetNamespace(),
			Labels:          labels,
			Annotations:     maps.Clone(t.Annotations),
			Finalizers:      slices.Clone(t.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: *t.Spec.DeepCopy(),
	}
}

func (c *replicaSetController) deleteSurplus(ctx context.Context, key string, rs *appsv1.ReplicaSet, active []*corev1.Pod, n int) error {
	related, err := c.relatedPods(rs)
	if err != nil {
		return err
	}
	return c.deletePods(ctx, key, rs, podsToDelete(active, related, n, c.clock.Now()))
}

// relatedPods are the pods of all ReplicaSets of the same owner.
func (c *replicaSetController) relatedPods(rs *appsv1.ReplicaSet) ([]*corev1.Pod, error) {
	siblings := []*appsv1.ReplicaSet{rs}
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		var err error
		if siblings, err = controlledBy[*appsv1.ReplicaSet](c.caches.replicaSets, ref.UID, rs.Namespace, false); err != nil {
			return nil, err
		}
	}
	var out []*corev1.Pod
	for _, s := range siblings {
		pods, err := controlledBy[*corev1.Pod](c.caches.pods, s.UID, s.Namespace, false)
		if err != nil {
			return nil, err
		}
		out = append(out, pods...)
	}
	return out, nil
}
