package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// rollingUpdate takes the next step of a rolling update: scale the newest
// ReplicaSet up as far as maxSurge allows, or else the old ones down as far as
// maxUnavailable allows. Each change of a ReplicaSet's status wakes it again.
func (r *rollout) rollingUpdate(ctx context.Context) error {
	if err := r.ensureNew(ctx); err != nil || r.new == nil {
		return err
	}
	size := *r.d.Spec.Replicas
	if *r.new.Spec.Replicas < size {
		size = newReplicaSetSize(r.d, r.all(), *r.new.Spec.Replicas)
	}
	scaled, err := r.resize(ctx, r.new, size, false)
	if err != nil {
		return err
	}
	if !scaled {
		if scaled, err = r.scaleDownOld(ctx); err != nil {
			return err
		}
	}
	if !scaled && r.complete(&r.d.Status) {
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return r.updateStatus(ctx, true)
}

// scaleDownOld first takes away old pods that are not available, which costs
// nothing, then as many others as may be unavailable.
func (r *rollout) scaleDownOld(ctx context.Context) (bool, error) {
	if specReplicas(r.old) == 0 {
		return false, nil
	}
	least := *r.d.Spec.Replicas - maxUnavailable(r.d)
	newUnavailable := *r.new.Spec.Replicas - r.new.Status.AvailableReplicas
	most := specReplicas(r.all()) - least - newUnavailable
	if most <= 0 {
		return false, nil
	}
	for _, rs := range active(r.old) {
		if rs.Status.AvailableReplicas > *rs.Spec.Replicas {
			// Its status lags behind its last scaling down. Pods that are on
			// their way out must not be counted as available: the next status
			// wakes us.
			return false, nil
		}
	}
	scaled := false
	for _, rs := range active(r.old) {
		if most <= 0 {
			break
		}
		n := min(most, *rs.Spec.Replicas-rs.Status.AvailableReplicas)
		if n <= 0 {
			continue
		}
		if _, err := r.resize(ctx, rs, *rs.Spec.Replicas-n, false); err != nil {
			return scaled, err
		}
		most -= n
		scaled = true
	}
	spare := availableReplicas(r.all()) - least
	for _, rs := range active(r.old) {
		if spare <= 0 {
			break
		}
		n := min(spare, *rs.Spec.Replicas)
		if _, err := r.resize(ctx, rs, *rs.Spec.Replicas-n, false); err != nil {
			return scaled, err
		}
		spare -= n
		scaled = true
	}
	return scaled, nil
}

// recreate takes the next step of a Recreate rollout: all old pods must be gone
// before the first new one is made.
func (r *rollout) recreate(ctx context.Context) error {
	scaled := false
	for _, rs := range active(r.old) {
		s, err := r.resize(ctx, rs, 0, false)
		if err != nil {
			return err
		}
		scaled = scaled || s
	}
	if scaled {
		return r.updateStatus(ctx, true)
	}
	running, err := r.oldPodsRunning()
	if err != nil {
		return err
	}
	if running {
		return r.updateStatus(ctx, true)
	}
	if err := r.ensureNew(ctx); err != nil || r.new == nil {
		return err
	}
	if _, err := r.resize(ctx, r.new, *r.d.Spec.Replicas, false); err != nil {
		return err
	}
	if r.complete(&r.d.Status) {
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return r.updateStatus(ctx, true)
}

// oldPodsRunning counts terminating pods as well: they run until they end.
func (r *rollout) oldPodsRunning() (bool, error) {
	if sum(r.old, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas }) > 0 {
		return true, nil
	}
	for _, rs := range r.old {
		pods, err := controlledBy[*corev1.Pod](r.caches.pods, rs.UID, rs.Namespace, false)
		if err != nil {
			return false, err
		}
		for _, p := range pods {
			if !podTerminal(p) {
				return true, nil
			}
		}
	}
	return false, nil
}
