package apiserver

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// apiScheme is the scheme with what is made from it.
type apiScheme struct {
	*runtime.Scheme
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
}

// versions are the group versions served, in the order discovery lists them.
var versions = []schema.GroupVersion{
	corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion,
	autoscalingv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion,
	coordinationv1.SchemeGroupVersion, eventsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion,
}

// hub lists every type the server stores or takes, by group. The generic
// server converts through an internal ("hub") version, and k8s.io/api has no
// internal types, so the v1 Go types are registered a second time as
// internal: a conversion then only changes the name of the version.
var hub = map[string][]runtime.Object{
	corev1.GroupName: {
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Service{}, &corev1.ServiceList{},
		&corev1.Node{}, &corev1.NodeList{}, &corev1.Namespace{}, &corev1.NamespaceList{},
		&corev1.Endpoints{}, &corev1.EndpointsList{}, &corev1.Event{}, &corev1.EventList{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Secret{}, &corev1.SecretList{},
		&corev1.Binding{},
	},
	appsv1.GroupName: {
		&appsv1.Deployment{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{},
		&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSet{}, &appsv1.DaemonSetList{},
		&appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{},
	},
	batchv1.GroupName:         {&batchv1.Job{}, &batchv1.JobList{}},
	discoveryv1.GroupName:     {&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}},
	coordinationv1.GroupName:  {&coordinationv1.Lease{}, &coordinationv1.LeaseList{}},
	autoscalingv1.GroupName:   {&autoscalingv1.Scale{}},
	policyv1.GroupName:        {&policyv1.Eviction{}},
	authorizationv1.GroupName: {&authorizationv1.SelfSubjectAccessReview{}},
	// Stored and handled as core events.
	eventsv1.GroupName: {&corev1.Event{}, &corev1.EventList{}},
}

func newScheme(resources []resourceDefinition) (*apiScheme, error) {
	s := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, discoveryv1.AddToScheme, autoscalingv1.AddToScheme,
		authorizationv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme, addEventsV1,
	} {
		errs = append(errs, add(s))
	}
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	for group, types := range hub {
		s.AddKnownTypes(schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}, types...)
	}
	for _, v := range versions {
		errs = append(errs, s.SetVersionPriority(v))
	}
	for _, r := range resources {
		errs = append(errs, r.addToScheme(s))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering the lab's API types: %w", err)
	}
	addDefaults(s)
	return &apiScheme{
		Scheme:     s,
		codecs:     serializer.NewCodecFactory(s),
		parameters: runtime.NewParameterCodec(s),
	}, nil
}
