package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kconverge/kconverge/collect"
)

// resource is one kind of object that is watched, and how it becomes a payload.
type resource struct {
	id         collect.SourceID
	kind       string
	gvr        schema.GroupVersionResource
	namespaced bool
	// convert returns nil for objects that are known but say nothing (slices
	// of names).
	convert func(runtime.Object) collect.Payload
}

// plural is the resource's name in messages and in RBAC rules:
// "endpointslices.discovery.k8s.io".
func (r *resource) plural() string { return r.gvr.GroupResource().String() }

// resources are all ten, in the order in which they are started.
var resources = []resource{
	{collect.SourceNodes, "Node", corev1.SchemeGroupVersion.WithResource("nodes"), false,
		converter(func(o *corev1.Node) collect.Payload { return ConvertNode(o) })},
	{collect.SourceServices, "Service", corev1.SchemeGroupVersion.WithResource("services"), true,
		converter(func(o *corev1.Service) collect.Payload { return ConvertService(o) })},
	{collect.SourcePods, "Pod", corev1.SchemeGroupVersion.WithResource("pods"), true,
		converter(func(o *corev1.Pod) collect.Payload { return ConvertPod(o) })},
	{collect.SourceEndpointSlices, "EndpointSlice", discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), true,
		converter(func(o *discoveryv1.EndpointSlice) collect.Payload {
			if s, ok := ConvertEndpointSlice(o); ok {
				return s
			}
			return nil
		})},
	{collect.SourceEndpoints, "Endpoints", corev1.SchemeGroupVersion.WithResource("endpoints"), true,
		converter(func(o *corev1.Endpoints) collect.Payload { return ConvertEndpoints(o) })}, //nolint:staticcheck // the deprecated kind is what is observed
	{collect.SourceDeployments, "Deployment", appsv1.SchemeGroupVersion.WithResource("deployments"), true,
		converter(func(o *appsv1.Deployment) collect.Payload { return ConvertDeployment(o) })},
	{collect.SourceReplicaSets, "ReplicaSet", appsv1.SchemeGroupVersion.WithResource("replicasets"), true,
		converter(func(o *appsv1.ReplicaSet) collect.Payload { return ConvertReplicaSet(o) })},
	{collect.SourceStatefulSets, "StatefulSet", appsv1.SchemeGroupVersion.WithResource("statefulsets"), true,
		converter(func(o *appsv1.StatefulSet) collect.Payload { return ConvertStatefulSet(o) })},
	{collect.SourceDaemonSets, "DaemonSet", appsv1.SchemeGroupVersion.WithResource("daemonsets"), true,
		converter(func(o *appsv1.DaemonSet) collect.Payload { return ConvertDaemonSet(o) })},
	{collect.SourceKubeEvents, "Event", corev1.SchemeGroupVersion.WithResource("events"), true,
		converter(func(o *corev1.Event) collect.Payload { return ConvertEvent(o) })},
}

// converter gives a typed converter the common form. An object of another type
// gives nil; newItem has checked the type before.
func converter[T runtime.Object](f func(T) collect.Payload) func(runtime.Object) collect.Payload {
	return func(o runtime.Object) collect.Payload {
		if t, ok := o.(T); ok {
			return f(t)
		}
		return nil
	}
}

func resourceByID(id collect.SourceID) *resource {
	for i := range resources {
		if resources[i].id == id {
			return &resources[i]
		}
	}
	return nil
}
