package workloads

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// updateStatus writes what was counted, once more on a fresh object when the
// cached one was stale: the counts are as good as they were.
func (c *replicaSetController) updateStatus(ctx context.Context, rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, manageErr error) error {
	status := c.status(rs, active, terminating, manageErr)
	if equality.Semantic.DeepEqual(rs.Status, status) {
		return nil
	}
	client := c.client.AppsV1().ReplicaSets(rs.Namespace)
	cp := rs.DeepCopy()
	cp.Status = status
	_, err := client.UpdateStatus(ctx, cp, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		return ignoreNotFound(err)
	}
	fresh, err := client.Get(ctx, rs.Name, metav1.GetOptions{})
	if err != nil || fresh.UID != rs.UID {
		return ignoreNotFound(err)
	}
	fresh.Status = status
	_, err = client.UpdateStatus(ctx, fresh, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *replicaSetController) status(rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, manageErr error) appsv1.ReplicaSetStatus {
	now := c.clock.Now()
	s := *rs.Status.DeepCopy()
	s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = int32(len(active)), 0, 0, 0
	s.TerminatingReplicas = &terminating
	s.ObservedGeneration = rs.Generation
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			s.FullyLabeledReplicas++
		}
		if podReady(p) {
			s.ReadyReplicas++
			if wait := untilAvailable(p, rs.Spec.MinReadySeconds, now); wait <= 0 {
				s.AvailableReplicas++
			}
		}
	}
	failing := slices.IndexFunc(s.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case manageErr == nil && failing >= 0:
		s.Conditions = slices.Delete(s.Conditions, failing, failing+1)
	case manageErr != nil && failing < 0:
		reason := "FailedCreate"
		if len(active) > int(*rs.Spec.Replicas) {
			reason = "FailedDelete"
		}
		s.Conditions = append(s.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: manageErr.Error(),
		})
	}
	return s
}

// untilAvailable is how long a ready pod must stay ready to count as available.
func untilAvailable(p *corev1.Pod, minReadySeconds int32, now time.Time) time.Duration {
	if minReadySeconds == 0 {
		return 0
	}
	return readySince(p).Add(time.Duration(minReadySeconds) * time.Second).Sub(now)
}

// nextAvailability is when the next ready pod becomes available by waiting.
func nextAvailability(active []*corev1.Pod, minReadySeconds int32, now time.Time) (time.Duration, bool) {
	var next time.Duration
	for _, p := range active {
		if !podReady(p) {
			continue
		}
		if d := untilAvailable(p, minReadySeconds, now); d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	return next, next > 0
}
