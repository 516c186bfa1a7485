package workloads

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setUpdate is one look at a StatefulSet and what it leads to.
type setUpdate struct {
	c               *statefulSetController
	set             *appsv1.StatefulSet
	update, current *appsv1.ControllerRevision

	wanted    []*corev1.Pod // by ordinal from first on; nil where there is none
	condemned []*corev1.Pod // beyond the wanted ones, highest ordinal first
	first     int
}

func (u *setUpdate) sort(pods []*corev1.Pod) {
	if o := u.set.Spec.Ordinals; o != nil {
		u.first = int(o.Start)
	}
	u.wanted = make([]*corev1.Pod, int(*u.set.Spec.Replicas))
	for _, p := range pods {
		n, _ := ordinal(u.set, p.Name)
		if i := n - u.first; i >= 0 && i < len(u.wanted) {
			u.wanted[i] = p
		} else {
			u.condemned = append(u.condemned, p)
		}
	}
	number := func(p *corev1.Pod) int {
		n, _ := ordinal(u.set, p.Name)
		return n
	}
	slices.SortFunc(u.condemned, func(a, b *corev1.Pod) int { return cmp.Compare(number(b), number(a)) })
}

// ordered: one step at a time, each pod after the one before it.
func (u *setUpdate) ordered() bool {
	return u.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// manage creates, deletes and updates pods as far as the order allows now.
func (u *setUpdate) manage(ctx context.Context) error {
	now := u.c.clock.Now()
	var errs []error
	for i, p := range u.wanted {
		done := false
		switch {
		case p == nil:
			errs = append(errs, u.c.createPod(ctx, u.set, u.first+i, u.revisionFor(i)))
		case p.DeletionTimestamp != nil:
		case podTerminal(p):
			errs = append(errs, u.c.deletePod(ctx, u.set, p))
		default:
			done = u.c.available(u.set, p, now)
		}
		if !done && u.ordered() {
			return errors.Join(errs...)
		}
	}
	for _, p := range u.condemned {
		switch {
		case p.DeletionTimestamp != nil && u.ordered():
			return nil
		case p.DeletionTimestamp != nil:
			continue
		case u.ordered() && !runningReady(p) && p != u.firstUnhealthy():
			return nil
		}
		errs = append(errs, u.c.deletePod(ctx, u.set, p))
		if u.ordered() {
			return errors.Join(errs...)
		}
	}
	if err := errors.Join(errs...); err != nil || u.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return err
	}
	for i := len(u.wanted) - 1; i >= u.partition(); i-- {
		p := u.wanted[i]
		switch {
		case p == nil || p.DeletionTimestamp != nil:
			return nil
		case p.Labels[appsv1.ControllerRevisionHashLabelKey] != u.update.Name:
			return u.c.deletePod(ctx, u.set, p)
		case !u.c.available(u.set, p, now):
			return nil
		}
	}
	return nil
}

// firstUnhealthy is the one pod that may go although it is not ready.
func (u *setUpdate) firstUnhealthy() *corev1.Pod {
	byOrdinal := slices.Clone(u.condemned)
	slices.Reverse(byOrdinal)
	for _, p := range slices.Concat(u.wanted, byOrdinal) {
		if p != nil && (!runningReady(p) || p.DeletionTimestamp != nil) {
			return p
		}
	}
	return nil
}

// partition is the index of the first pod that is updated.
func (u *setUpdate) partition() int {
	if r := u.set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return int(*r.Partition)
	}
	return 0
}

// revisionFor says which revision a pod that is missing is made of: below the
// partition the one that the others had before the update.
func (u *setUpdate) revisionFor(i int) *appsv1.ControllerRevision {
	s := u.set.Spec.UpdateStrategy
	if s.Type == appsv1.RollingUpdateStatefulSetStrategyType && (s.RollingUpdate == nil && i < int(u.set.Status.CurrentReplicas) || s.RollingUpdate != nil && i < u.partition()) {
		return u.current
	}
	return u.update
}

func (u *setUpdate) writeStatus(ctx context.Context, pods []*corev1.Pod) error {
	s := *u.set.Status.DeepCopy()
	now := u.c.clock.Now()
	s.ObservedGeneration = u.set.Generation
	s.CurrentRevision, s.UpdateRevision = u.current.Name, u.update.Name
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas = 0, 0, 0, 0, 0
	if s.CollisionCount == nil {
		s.CollisionCount = new(int32)
	}
	for _, p := range pods {
		s.Replicas++
		if runningReady(p) {
			s.ReadyReplicas++
			if u.c.available(u.set, p, now) {
				s.AvailableReplicas++
			}
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		of := p.Labels[appsv1.ControllerRevisionHashLabelKey]
		if of == u.current.Name {
			s.CurrentReplicas++
		}
		if of == u.update.Name {
			s.UpdatedReplicas++
		}
	}
	if u.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.UpdatedReplicas == *u.set.Spec.Replicas && s.ReadyReplicas == *u.set.Spec.Replicas && s.Replicas == *u.set.Spec.Replicas {
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
	}
	if equality.Semantic.DeepEqual(u.set.Status, s) {
		return nil
	}
	client := u.c.client.AppsV1().StatefulSets(u.set.Namespace)
	cp := u.set.DeepCopy()
	cp.Status = s
	_, err := client.UpdateStatus(ctx, cp, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		// The newer object wakes this controller again.
		return nil
	}
	return ignoreNotFound(err)
}
