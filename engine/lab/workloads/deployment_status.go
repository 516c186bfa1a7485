package workloads

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Progressing, which kubectl rollout status reads.
const (
	reasonNewAvailable = "NewReplicaSetAvailable"
	reasonTimedOut     = "ProgressDeadlineExceeded"
	reasonPaused       = "DeploymentPaused"
)

func (r *rollout) hasDeadline() bool {
	s := r.d.Spec.ProgressDeadlineSeconds
	return s != nil && *s != math.MaxInt32
}

func (r *rollout) complete(s *appsv1.DeploymentStatus) bool {
	want := *r.d.Spec.Replicas
	return s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want && s.ObservedGeneration >= r.d.Generation
}

// markPaused notes on the condition Progressing that the Deployment was paused
// or resumed, so that the time it was paused does not count as lack of progress.
func (r *rollout) markPaused(ctx context.Context) error {
	c := condition(&r.d.Status, appsv1.DeploymentProgressing)
	if !r.hasDeadline() || c != nil && c.Reason == reasonTimedOut {
		return nil
	}
	marked := c != nil && c.Reason == reasonPaused
	switch {
	case r.d.Spec.Paused && !marked:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !r.d.Spec.Paused && marked:
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
	default:
		return nil
	}
	return r.writeStatus(ctx)
}

// updateStatus counts and writes what changed. estimate is whether to judge the
// progress of a rollout, which scaling and pausing do not.
func (r *rollout) updateStatus(ctx context.Context, estimate bool) error {
	before := *r.d.Status.DeepCopy()
	r.d.Status = r.counted()
	if estimate {
		r.estimateProgress(&before)
		r.copyReplicaFailure()
	}
	if equality.Semantic.DeepEqual(before, r.d.Status) {
		r.wakeAtDeadline(estimate)
		return nil
	}
	return r.writeStatus(ctx)
}

func (r *rollout) writeStatus(ctx context.Context) error {
	d, err := r.client.AppsV1().Deployments(r.d.Namespace).UpdateStatus(ctx, r.d, metav1.UpdateOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	r.d = d
	return nil
}

func (r *rollout) counted() appsv1.DeploymentStatus {
	all := r.all()
	s := *r.d.Status.DeepCopy()
	s.ObservedGeneration = r.d.Generation
	s.Replicas = sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas })
	s.ReadyReplicas = sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.ReadyReplicas })
	s.AvailableReplicas = availableReplicas(all)
	s.UnavailableReplicas = max(0, specReplicas(all)-s.AvailableReplicas)
	terminating := sum(all, func(rs *appsv1.ReplicaSet) int32 {
		if rs.Status.TerminatingReplicas == nil {
			return 0
		}
		return *rs.Status.TerminatingReplicas
	})
	s.TerminatingReplicas = &terminating
	s.UpdatedReplicas = 0
	if r.new != nil {
		s.UpdatedReplicas = r.new.Status.Replicas
	}
	if s.AvailableReplicas >= *r.d.Spec.Replicas-maxUnavailable(r.d) {
		setCondition(&s, r.newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability."))
	} else {
		setCondition(&s, r.newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."))
	}
	return s
}

// estimateProgress sets the condition Progressing by comparing the status before
// with the one counted now.
func (r *rollout) estimateProgress(before *appsv1.DeploymentStatus) {
	s := &r.d.Status
	if !r.hasDeadline() {
		dropCondition(s, appsv1.DeploymentProgressing)
		return
	}
	current := condition(before, appsv1.DeploymentProgressing)
	if s.Replicas == s.UpdatedReplicas && current != nil && current.Reason == reasonNewAvailable {
		// The latest rollout has completed before: pods that come and go
		// since are no rollout.
		return
	}
	what := fmt.Sprintf("Deployment %q", r.d.Name)
	if r.new != nil {
		what = fmt.Sprintf("ReplicaSet %q", r.new.Name)
	}
	switch {
	case r.complete(s):
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonNewAvailable, what+" has successfully progressed.")
	case progressed(before, s):
		c := r.newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", what+" is progressing.")
		if current != nil && current.Status == corev1.ConditionTrue {
			c.LastTransitionTime = current.LastTransitionTime
		}
		// Removed first: lastUpdateTime must move with each progress, even if
		// nothing else of the condition does.
		dropCondition(s, appsv1.DeploymentProgressing)
		setCondition(s, c)
	case r.timedOut():
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, what+" has timed out progressing.")
	}
}

func progressed(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas ||
		now.AvailableReplicas > before.AvailableReplicas
}

func (r *rollout) timedOut() bool {
	c := condition(&r.d.Status, appsv1.DeploymentProgressing)
	switch {
	case c == nil || c.Reason == reasonNewAvailable:
		return false
	case c.Reason == reasonTimedOut:
		return true
	}
	return r.untilDeadline(c) < 0
}

func (r *rollout) untilDeadline(c *appsv1.DeploymentCondition) time.Duration {
	return c.LastUpdateTime.Add(time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second).Sub(r.clock.Now())
}

// wakeAtDeadline makes sure that a rollout without any further event is looked
// at again when its deadline has passed.
func (r *rollout) wakeAtDeadline(estimate bool) {
	c := condition(&r.d.Status, appsv1.DeploymentProgressing)
	if !estimate || !r.hasDeadline() || c == nil || r.complete(&r.d.Status) || c.Reason == reasonTimedOut {
		return
	}
	r.queue.AddAfter(keyOf(r.d), max(0, r.untilDeadline(c))+time.Second)
}

// copyReplicaFailure carries the newest ReplicaSet's failure over, else an old
// one's.
func (r *rollout) copyReplicaFailure() {
	all := r.all()
	slices.Reverse(all)
	for _, rs := range all {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				setCondition(&r.d.Status, appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime,
				})
				return
			}
		}
	}
	dropCondition(&r.d.Status, appsv1.DeploymentReplicaFailure)
}

func (r *rollout) newCondition(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, msg string) appsv1.DeploymentCondition {
	now := metav1.NewTime(r.clock.Now()).Rfc3339Copy()
	return appsv1.DeploymentCondition{Type: t, Status: status, LastUpdateTime: now, LastTransitionTime: now, Reason: reason, Message: msg}
}

func (r *rollout) setCondition(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, msg string) {
	setCondition(&r.d.Status, r.newCondition(t, status, reason, msg))
}

func condition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition leaves a condition of the same status and reason as it is, and
// keeps the transition time while the status stays.
func setCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if old := condition(s, c.Type); old != nil {
		if old.Status == c.Status && old.Reason == c.Reason {
			return
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	dropCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

func dropCondition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	// A new slice: the old one may be shared with the status before.
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == t })
}
