package kube

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect"
)

// annotationRevision is what the Deployment controller counts rollouts with
// (k8s.io/kubernetes pkg/controller/deployment/util, RevisionAnnotation).
const annotationRevision = "deployment.kubernetes.io/revision"

// ConvertDeployment returns what a Deployment wants and how far it is.
func ConvertDeployment(d *appsv1.Deployment) *collect.Workload {
	return &collect.Workload{
		Owner:              ownerOf(d),
		Selector:           matchLabels(d.Spec.Selector),
		Generation:         d.Generation,
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           replicas(d.Spec.Replicas),
		StatusReplicas:     d.Status.Replicas,
		Updated:            d.Status.UpdatedReplicas,
		Ready:              d.Status.ReadyReplicas,
		Available:          d.Status.AvailableReplicas,
		Revision:           d.Annotations[annotationRevision],
		MinReady:           seconds(d.Spec.MinReadySeconds),
		TemplateLabels:     maps.Clone(d.Spec.Template.Labels),
		Paused:             d.Spec.Paused,
	}
}

// ConvertReplicaSet returns what a ReplicaSet wants and how far it is. A
// ReplicaSet has one template, so Updated is the pods that carry its labels.
func ConvertReplicaSet(r *appsv1.ReplicaSet) *collect.Workload {
	return &collect.Workload{
		Owner:              ownerOf(r),
		Selector:           matchLabels(r.Spec.Selector),
		Generation:         r.Generation,
		ObservedGeneration: r.Status.ObservedGeneration,
		Replicas:           replicas(r.Spec.Replicas),
		StatusReplicas:     r.Status.Replicas,
		Updated:            r.Status.FullyLabeledReplicas,
		Ready:              r.Status.ReadyReplicas,
		Available:          r.Status.AvailableReplicas,
		Revision:           r.Annotations[annotationRevision],
		MinReady:           seconds(r.Spec.MinReadySeconds),
		TemplateLabels:     maps.Clone(r.Spec.Template.Labels),
	}
}

// ConvertStatefulSet returns what a StatefulSet wants and how far it is.
func ConvertStatefulSet(s *appsv1.StatefulSet) *collect.Workload {
	w := &collect.Workload{
		Owner:              ownerOf(s),
		Selector:           matchLabels(s.Spec.Selector),
		Generation:         s.Generation,
		ObservedGeneration: s.Status.ObservedGeneration,
		Replicas:           replicas(s.Spec.Replicas),
		StatusReplicas:     s.Status.Replicas,
		Updated:            s.Status.UpdatedReplicas,
		Ready:              s.Status.ReadyReplicas,
		Available:          s.Status.AvailableReplicas,
		Revision:           s.Status.UpdateRevision,
		MinReady:           seconds(s.Spec.MinReadySeconds),
		TemplateLabels:     maps.Clone(s.Spec.Template.Labels),
	}
	switch u := s.Spec.UpdateStrategy; {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		w.Partition = w.Replicas
	case u.RollingUpdate != nil && u.RollingUpdate.Partition != nil:
		w.Partition = min(*u.RollingUpdate.Partition, w.Replicas)
	}
	return w
}

// ConvertDaemonSet returns what a DaemonSet wants and how far it is.
func ConvertDaemonSet(d *appsv1.DaemonSet) *collect.Workload {
	w := &collect.Workload{
		Owner:              ownerOf(d),
		Selector:           matchLabels(d.Spec.Selector),
		Generation:         d.Generation,
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           d.Status.DesiredNumberScheduled,
		StatusReplicas:     d.Status.CurrentNumberScheduled,
		Updated:            d.Status.UpdatedNumberScheduled,
		Ready:              d.Status.NumberReady,
		Available:          d.Status.NumberAvailable,
		// The API server counts the changes of the template there.
		Revision:       d.Annotations[appsv1.DeprecatedTemplateGeneration],
		MinReady:       seconds(d.Spec.MinReadySeconds),
		TemplateLabels: maps.Clone(d.Spec.Template.Labels),
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		w.Partition = w.Replicas
	}
	return w
}

func matchLabels(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return maps.Clone(s.MatchLabels)
}

// replicas applies the API's default.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
