package workloads

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sizeAnnotations(d *appsv1.Deployment) map[string]string {
	return map[string]string{
		desiredReplicasAnnotation: strconv.Itoa(int(*d.Spec.Replicas)),
		maxReplicasAnnotation:     strconv.Itoa(int(*d.Spec.Replicas + maxSurge(d))),
	}
}

// wasScaled reports that an active ReplicaSet was last sized for another number
// of replicas.
func (r *rollout) wasScaled() bool {
	for _, rs := range active(r.all()) {
		if n, ok := annotationInt(rs, desiredReplicasAnnotation); ok && n != *r.d.Spec.Replicas {
			return true
		}
	}
	return false
}

// scale spreads a changed number of replicas over the ReplicaSets, in
// proportion to their sizes when a rollout is under way.
func (r *rollout) scale(ctx context.Context) error {
	if one := r.activeOrLatest(); one != nil {
		// Forced, so that a wrong record on a ReplicaSet of the right size is
		// corrected and does not pass for a scaling for ever.
		_, err := r.resize(ctx, one, *r.d.Spec.Replicas, true)
		return err
	}
	if r.saturated() {
		for _, rs := range active(r.old) {
			if _, err := r.resize(ctx, rs, 0, false); err != nil {
				return err
			}
		}
		return nil
	}
	if r.d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return nil
	}
	return r.scaleInProportion(ctx)
}

func (r *rollout) scaleInProportion(ctx context.Context) error {
	rss := active(r.all())
	allowed := int32(0)
	if *r.d.Spec.Replicas > 0 {
		allowed = *r.d.Spec.Replicas + maxSurge(r.d)
	}
	add := allowed - specReplicas(rss)
	// Scaling up favours newer ones of equal size, scaling down older ones.
	rss = sortedBy(rss, largestFirst(add > 0))
	sizes := make([]int32, len(rss))
	var added int32
	for i, rs := range rss {
		p := proportion(rs, r.d, add, added)
		sizes[i] = *rs.Spec.Replicas + p
		added += p
	}
	if len(sizes) > 0 {
		// What rounding left over goes to the largest.
		sizes[0] = max(0, sizes[0]+add-added)
	}
	for i, rs := range rss {
		if _, err := r.resize(ctx, rs, sizes[i], true); err != nil {
			return err
		}
	}
	return nil
}

// activeOrLatest is the only active ReplicaSet, or the newest when none is, or
// nil when several are.
func (r *rollout) activeOrLatest() *appsv1.ReplicaSet {
	switch a := active(r.all()); len(a) {
	case 0:
		if r.new != nil {
			return r.new
		}
		if len(r.old) > 0 {
			return r.old[len(r.old)-1]
		}
		return nil
	case 1:
		return a[0]
	default:
		return nil
	}
}

// saturated reports that the newest ReplicaSet has all the pods and all of them
// are available.
func (r *rollout) saturated() bool {
	if r.new == nil {
		return false
	}
	desired, ok := annotationInt(r.new, desiredReplicasAnnotation)
	want := *r.d.Spec.Replicas
	return ok && desired == want && *r.new.Spec.Replicas == want && r.new.Status.AvailableReplicas == want
}

// resize sets the size of a ReplicaSet and records for how many replicas of the
// Deployment it was. With force the record is written even if the size stays.
func (r *rollout) resize(ctx context.Context, rs *appsv1.ReplicaSet, size int32, force bool) (bool, error) {
	from := *rs.Spec.Replicas
	want := sizeAnnotations(r.d)
	recorded := rs.Annotations[desiredReplicasAnnotation] == want[desiredReplicasAnnotation] && rs.Annotations[maxReplicasAnnotation] == want[maxReplicasAnnotation]
	if from == size && (recorded || !force) {
		return false, nil
	}
	cp := rs.DeepCopy()
	cp.Spec.Replicas = &size
	if cp.Annotations == nil {
		cp.Annotations = map[string]string{}
	}
	maps.Copy(cp.Annotations, want)
	updated, err := r.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, cp, metav1.UpdateOptions{})
	if err != nil {
		return false, fmt.Errorf("scale ReplicaSet %s/%s from %d to %d: %w", rs.Namespace, rs.Name, from, size, err)
	}
	r.put(updated)
	if from == size {
		return false, nil
	}
	way := "up"
	if size < from {
		way = "down"
	}
	r.events.Eventf(r.d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", way, rs.Name, from, size)
	return true, nil
}
