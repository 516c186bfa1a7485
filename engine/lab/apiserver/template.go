package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// What the resources that make pods from a template have in common.

// templateColumns are their last columns, shown by kubectl get -o wide.
func templateColumns[T object](template func(T) *corev1.PodTemplateSpec) []column[T] {
	return []column[T]{
		ageColumn[T](),
		wide("Containers", func(o T) any { return containerNames(template(o).Spec.Containers) }),
		wide("Images", func(o T) any { return containerImages(template(o).Spec.Containers) }),
	}
}

func selectorColumn[T object](selector func(T) *metav1.LabelSelector) column[T] {
	return wide("Selector", func(o T) any { return metav1.FormatLabelSelector(selector(o)) })
}

// templateWarnings tell what the lab will not do with the pods.
func templateWarnings[T object](template func(T) *corev1.PodTemplateSpec) func(T) []string {
	return func(o T) []string {
		return podSpecWarnings(&template(o).Spec, field.NewPath("spec", "template", "spec"))
	}
}

// fixedSelector refuses an update of the selector.
func fixedSelector[T object](selector func(T) *metav1.LabelSelector) func(obj, old T) field.ErrorList {
	return func(obj, old T) field.ErrorList {
		return apivalidation.ValidateImmutableField(selector(obj), selector(old), field.NewPath("spec", "selector"))
	}
}

// scaleSubresource serves the scale subresource and nothing else beside the status.
func scaleSubresource[T object](of func(T) scaled) func(main, status *genericregistry.Store) map[string]rest.Storage {
	return func(main, _ *genericregistry.Store) map[string]rest.Storage {
		return map[string]rest.Storage{"scale": newScaleREST(main, of)}
	}
}
