package workloads

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// maxHistoryChars bounds the revision-history annotation.
	maxHistoryChars = 2000
)

// notCopied are the annotations of a Deployment that its ReplicaSets do not get.
var notCopied = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true,
	revisionAnnotation:                 true,
	revisionHistoryAnnotation:          true,
	desiredReplicasAnnotation:          true,
	maxReplicasAnnotation:              true,
	appsv1.DeprecatedRollbackTo:        true,
}

// sameTemplate compares pod templates without the label that the controller
// adds to a ReplicaSet's.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	strip := func(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
		cp := *t
		cp.Labels = maps.Clone(t.Labels)
		delete(cp.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		return &cp
	}
	return equality.Semantic.DeepEqual(strip(a), strip(b))
}

func revision(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func byRevision(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(revision(a), revision(b)), oldestFirst(a, b))
}

func (r *rollout) nextRevision() int64 {
	var n int64
	for _, rs := range r.old {
		n = max(n, revision(rs))
	}
	return n + 1
}

// syncRevision brings the annotations of the newest ReplicaSet and of the
// Deployment up to date, when that ReplicaSet exists.
func (r *rollout) syncRevision(ctx context.Context) error {
	if r.new == nil {
		return nil
	}
	rs := r.new.DeepCopy()
	changed := annotate(rs, r.d, r.nextRevision())
	if rs.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds, changed = r.d.Spec.MinReadySeconds, true
	}
	if changed {
		updated, err := r.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, rs, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update revision of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
		r.new = updated
	}
	return r.setDeploymentRevision(ctx, r.new.Annotations[revisionAnnotation])
}

// annotate copies the Deployment's annotations to its newest ReplicaSet and
// raises that one's revision; revisions it had before (it is being rolled back
// to) are kept as its history.
func annotate(rs *appsv1.ReplicaSet, d *appsv1.Deployment, next int64) (changed bool) {
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	for k, v := range d.Annotations {
		if have, ok := rs.Annotations[k]; !notCopied[k] && (!ok || have != v) {
			rs.Annotations[k], changed = v, true
		}
	}
	before, had := rs.Annotations[revisionAnnotation]
	if revision(rs) >= next {
		return changed
	}
	rs.Annotations[revisionAnnotation] = strconv.FormatInt(next, 10)
	if had {
		rs.Annotations[revisionHistoryAnnotation] = appendHistory(rs.Annotations[revisionHistoryAnnotation], before)
	}
	return true
}

// appendHistory drops the oldest revisions when the list becomes too long.
func appendHistory(history, rev string) string {
	if history == "" {
		return rev
	}
	all := strings.Split(history+","+rev, ",")
	for len(strings.Join(all, ",")) > maxHistoryChars {
		all = all[1:]
	}
	return strings.Join(all, ",")
}

// setDeploymentRevision writes the annotation together with the status, as the
// real controller does: an update of the Deployment itself would raise its
// generation, as if somebody had changed what is wanted.
//
// Another revision is another rollout. Unless the condition Progressing says so,
// a Recreate rollout, in which all counted replicas are updated ones at any
// moment, passes for the completed one before it and never times out. The
// condition is missing when ensureNew could make the ReplicaSet but not write
// the status, and when an old revision is rolled back to.
func (r *rollout) setDeploymentRevision(ctx context.Context, rev string) error {
	if r.d.Annotations[revisionAnnotation] == rev {
		return nil
	}
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, rev)
	if c := condition(&r.d.Status, appsv1.DeploymentProgressing); r.hasDeadline() && c != nil && c.Reason == reasonNewAvailable {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", r.new.Name))
	}
	return r.writeStatus(ctx)
}

// ensureNew creates the ReplicaSet of the current template if there is none.
func (r *rollout) ensureNew(ctx context.Context) error {
	if r.new != nil {
		return nil
	}
	rs := r.buildNew()
	next := r.nextRevision()
	annotate(rs, r.d, next)
	created, err := r.client.AppsV1().ReplicaSets(rs.Namespace).Create(ctx, rs, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.resolveCollision(ctx, rs.Name, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case err != nil:
		msg := fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err)
		r.events.Event(r.d, corev1.EventTypeWarning, "ReplicaSetCreateError", msg)
		if r.hasDeadline() {
			r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError", msg)
			if serr := r.writeStatus(ctx); serr != nil {
				return fmt.Errorf("%w; and the status was not written: %w", err, serr)
			}
		}
		return err
	}
	if n := *created.Spec.Replicas; n > 0 {
		r.events.Eventf(r.d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", created.Name, n)
	}
	r.new = created
	if r.hasDeadline() {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", created.Name))
	}
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, created.Annotations[revisionAnnotation])
	return r.writeStatus(ctx)
}

// buildNew has a name that follows from its content, so that a stale cache
// cannot lead to a second one.
func (r *rollout) buildNew() *appsv1.ReplicaSet {
	d := r.d
	hash := templateHash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	selector := d.Spec.Selector.DeepCopy()
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	name := d.Name
	if most := validation.DNS1123SubdomainMaxLength - len(hash) - 1; len(name) > most {
		name = name[:most]
	}
	size := newReplicaSetSize(d, r.old, 0)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-" + hash, Namespace: d.Namespace, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, deploymentKind)},
			Annotations:     sizeAnnotations(d),
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &size, MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: template},
	}
}

// resolveCollision handles a ReplicaSet that exists under the new one's name: it
// is ours and the cache was stale, or its template has the same hash by chance.
func (r *rollout) resolveCollision(ctx context.Context, name string, exists error) error {
	rs, err := r.client.AppsV1().ReplicaSets(r.d.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if metav1.IsControlledBy(rs, r.d) && sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
		r.new = rs
		return r.setDeploymentRevision(ctx, rs.Annotations[revisionAnnotation])
	}
	n := int32(1)
	if c := r.d.Status.CollisionCount; c != nil {
		n = *c + 1
	}
	r.d.Status.CollisionCount = &n
	if err := r.writeStatus(ctx); err != nil {
		return err
	}
	return exists
}
