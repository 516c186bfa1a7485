package workloads

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// The indexes that shared informers carry.
const (
	// byOwner finds the objects that name a UID among their ownerReferences.
	byOwner = "owner"
	// byController finds the objects that a UID controls, and under
	// orphansOf(namespace) those that nothing controls.
	byController = "controller"
)

// sharedCaches are the informers that all controllers share.
type sharedCaches struct {
	deployments, replicaSets, pods, nodes, services, slices, endpoints cache.SharedIndexInformer
	statefulSets, daemonSets, jobs, revisions, leases                  cache.SharedIndexInformer

	statefulSetLister appslisters.StatefulSetLister
	leaseLister       coordinationlisters.LeaseLister
	jobLister         batchlisters.JobLister
	daemonSetLister   appslisters.DaemonSetLister
	deploymentLister  appslisters.DeploymentLister
	replicaSetLister  appslisters.ReplicaSetLister
	podLister         corelisters.PodLister
	nodeLister        corelisters.NodeLister

	err error
}

func newSharedCaches(f informers.SharedInformerFactory) *sharedCaches {
	s := &sharedCaches{
		deployments:       f.Apps().V1().Deployments().Informer(),
		replicaSets:       f.Apps().V1().ReplicaSets().Informer(),
		pods:              f.Core().V1().Pods().Informer(),
		nodes:             f.Core().V1().Nodes().Informer(),
		services:          f.Core().V1().Services().Informer(),
		slices:            f.Discovery().V1().EndpointSlices().Informer(),
		endpoints:         f.Core().V1().Endpoints().Informer(),
		statefulSets:      f.Apps().V1().StatefulSets().Informer(),
		daemonSets:        f.Apps().V1().DaemonSets().Informer(),
		revisions:         f.Apps().V1().ControllerRevisions().Informer(),
		jobs:              f.Batch().V1().Jobs().Informer(),
		leases:            f.Coordination().V1().Leases().Informer(),
		leaseLister:       f.Coordination().V1().Leases().Lister(),
		jobLister:         f.Batch().V1().Jobs().Lister(),
		statefulSetLister: f.Apps().V1().StatefulSets().Lister(),
		daemonSetLister:   f.Apps().V1().DaemonSets().Lister(),
		deploymentLister:  f.Apps().V1().Deployments().Lister(),
		replicaSetLister:  f.Apps().V1().ReplicaSets().Lister(),
		podLister:         f.Core().V1().Pods().Lister(),
		nodeLister:        f.Core().V1().Nodes().Lister(),
	}
	for _, i := range []cache.SharedIndexInformer{s.deployments, s.replicaSets, s.pods, s.services, s.slices, s.endpoints, s.statefulSets, s.daemonSets, s.jobs, s.revisions} {
		s.wired(i.AddIndexers(cache.Indexers{byOwner: ownerIndex}))
	}
	for _, i := range []cache.SharedIndexInformer{s.replicaSets, s.pods, s.revisions} {
		s.wired(i.AddIndexers(cache.Indexers{byController: controllerIndex}))
	}
	s.wired(s.pods.AddIndexers(cache.Indexers{byNode: nodeIndex}))
	return s
}

// on adds typed handlers to an informer. A failure is kept for Run to return.
func on[T any](s *sharedCaches, i cache.SharedIndexInformer, add func(T), update func(old, cur T), del func(T)) {
	_, err := i.AddEventHandler(handlers(add, update, del))
	s.wired(err)
}

// wired keeps an error of wiring the informers until Run, which returns it.
func (s *sharedCaches) wired(err error) {
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("wire the informers: %w", err))
	}
}

func ownerIndex(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range m.GetOwnerReferences() {
		out = append(out, string(r.UID))
	}
	return out, nil
}

func controllerIndex(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansOf(m.GetNamespace())}, nil
}

// orphansOf cannot collide with a UID, which has no slash.
func orphansOf(namespace string) string { return "orphans/" + namespace }

// controlledBy returns what the UID controls and, with orphans, what nothing
// controls in the namespace.
func controlledBy[T any](i cache.SharedIndexInformer, uid types.UID, namespace string, orphans bool) ([]T, error) {
	keys := []string{string(uid)}
	if orphans {
		keys = append(keys, orphansOf(namespace))
	}
	var out []T
	for _, k := range keys {
		objs, err := i.GetIndexer().ByIndex(byController, k)
		if err != nil {
			return nil, err
		}
		for _, o := range objs {
			if t, ok := o.(T); ok {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// replicaSetOf resolves a controller reference to the ReplicaSet with that very
// UID, or nil.
func (s *sharedCaches) replicaSetOf(namespace string, ref *metav1.OwnerReference) *appsv1.ReplicaSet {
	if ref == nil || ref.Kind != "ReplicaSet" {
		return nil
	}
	rs, err := s.replicaSetLister.ReplicaSets(namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID {
		return nil
	}
	return rs
}

// deploymentOf is replicaSetOf for Deployments.
func (s *sharedCaches) deploymentOf(namespace string, ref *metav1.OwnerReference) *appsv1.Deployment {
	if ref == nil || ref.Kind != "Deployment" {
		return nil
	}
	d, err := s.deploymentLister.Deployments(namespace).Get(ref.Name)
	if err != nil || d.UID != ref.UID {
		return nil
	}
	return d
}

// podCondition returns the condition of a type, or nil.
func podCondition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func podReady(p *corev1.Pod) bool {
	c := podCondition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func podTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// podActive is what a ReplicaSet counts: neither finished nor being deleted.
func podActive(p *corev1.Pod) bool {
	return !podTerminal(p) && p.DeletionTimestamp == nil
}
