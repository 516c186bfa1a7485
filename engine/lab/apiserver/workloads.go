package apiserver

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func deployments() *resource[*appsv1.Deployment] {
	type D = *appsv1.Deployment
	template := func(d D) *corev1.PodTemplateSpec { return &d.Spec.Template }
	selector := func(d D) *metav1.LabelSelector { return d.Spec.Selector }
	return &resource[D]{
		version: appsv1.SchemeGroupVersion, kind: "Deployment", plural: "deployments", singular: "deployment",
		short: []string{"deploy"}, inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() D { return &appsv1.Deployment{} },
		newList:   func() runtime.Object { return &appsv1.DeploymentList{} },
		columns: append([]column[D]{
			nameColumn[D](),
			col("Ready", func(d D) any { return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, value(d.Spec.Replicas)) }),
			col("Up-to-date", func(d D) any { return int64(d.Status.UpdatedReplicas) }),
			col("Available", func(d D) any { return int64(d.Status.AvailableReplicas) }),
		}, append(templateColumns(template), selectorColumn(selector))...),
		rules: rules[D]{
			create: func(d D) { d.Status, d.Generation = appsv1.DeploymentStatus{}, 1 },
			update: func(d, old D) {
				d.Status = old.Status
				// Annotations count too: rollbacks go through them
				// (pkg/registry/apps/deployment/strategy.go).
				if !equality.Semantic.DeepEqual(d.Spec, old.Spec) || !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
					d.Generation = old.Generation + 1
				}
			},
			statusUpdate: func(d, old D) { d.Spec, d.Labels = old.Spec, old.Labels },
			validate: func(d D) field.ErrorList {
				errs := validateWorkload(d.Spec.Replicas, d.Spec.Selector, &d.Spec.Template)
				return append(errs, validateRollout(&d.Spec)...)
			},
			validateUpdate: fixedSelector(selector),
			warnings:       templateWarnings(template),
		},
		subresources: scaleSubresource(func(d D) scaled {
			return scaled{&d.ObjectMeta, &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector}
		}),
	}
}

func replicaSets() *resource[*appsv1.ReplicaSet] {
	type R = *appsv1.ReplicaSet
	template := func(r R) *corev1.PodTemplateSpec { return &r.Spec.Template }
	selector := func(r R) *metav1.LabelSelector { return r.Spec.Selector }
	return &resource[R]{
		version: appsv1.SchemeGroupVersion, kind: "ReplicaSet", plural: "replicasets", singular: "replicaset",
		short: []string{"rs"}, inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() R { return &appsv1.ReplicaSet{} },
		newList:   func() runtime.Object { return &appsv1.ReplicaSetList{} },
		fields: map[string]func(R) string{
			"status.replicas": func(r R) string { return fmt.Sprint(r.Status.Replicas) },
		},
		columns: append([]column[R]{
			nameColumn[R](),
			col("Desired", func(r R) any { return int64(value(r.Spec.Replicas)) }),
			col("Current", func(r R) any { return int64(r.Status.Replicas) }),
			col("Ready", func(r R) any { return int64(r.Status.ReadyReplicas) }),
		}, append(templateColumns(template), selectorColumn(selector))...),
		rules: rules[R]{
			create: func(r R) { r.Status, r.Generation = appsv1.ReplicaSetStatus{}, 1 },
			update: func(r, old R) {
				r.Status = old.Status
				bumpGeneration(r, old, r.Spec, old.Spec)
			},
			statusUpdate: func(r, old R) { r.Spec, r.Labels = old.Spec, old.Labels },
			validate: func(r R) field.ErrorList {
				return validateWorkload(r.Spec.Replicas, r.Spec.Selector, &r.Spec.Template)
			},
			validateUpdate: fixedSelector(selector),
			warnings:       templateWarnings(template),
		},
		subresources: scaleSubresource(func(r R) scaled {
			return scaled{&r.ObjectMeta, &r.Spec.Replicas, r.Status.Replicas, r.Spec.Selector}
		}),
	}
}

// validateRollout follows ValidateDeploymentStrategy in
// pkg/apis/apps/validation.
func validateRollout(s *appsv1.DeploymentSpec) (errs field.ErrorList) {
	at := field.NewPath("spec", "strategy")
	errs = append(errs, oneOf(at.Child("type"), s.Strategy.Type,
		appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType)...)
	ru := s.Strategy.RollingUpdate
	if s.Strategy.Type == appsv1.RecreateDeploymentStrategyType && ru != nil {
		errs = append(errs, field.Forbidden(at.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType && ru != nil {
		surge, e1 := validateShare(ru.MaxSurge, at.Child("rollingUpdate", "maxSurge"), false)
		unavailable, e2 := validateShare(ru.MaxUnavailable, at.Child("rollingUpdate", "maxUnavailable"), true)
		errs = append(append(errs, e1...), e2...)
		if surge == 0 && unavailable == 0 {
			errs = append(errs, field.Invalid(at.Child("rollingUpdate", "maxUnavailable"), ru.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
	}
	if s.MinReadySeconds < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "minReadySeconds"), s.MinReadySeconds, "must be greater than or equal to 0"))
	}
	if p := s.ProgressDeadlineSeconds; p != nil && *p <= s.MinReadySeconds {
		errs = append(errs, field.Invalid(field.NewPath("spec", "progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
	}
	return errs
}

// validateShare checks a number or percentage and returns its value of 100.
func validateShare(v *intstr.IntOrString, path *field.Path, bounded bool) (int, field.ErrorList) {
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true)
	switch {
	case err != nil:
		return 0, field.ErrorList{field.Invalid(path, v, "must be an integer or percentage (e.g '5%')")}
	case n < 0:
		return n, field.ErrorList{field.Invalid(path, v, "must be greater than or equal to 0")}
	case bounded && v.Type == intstr.String && n > 100:
		return n, field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return n, nil
}

func value(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}

func containerNames(list []corev1.Container) string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		out = append(out, c.Name)
	}
	return strings.Join(out, ",")
}

func containerImages(list []corev1.Container) string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		out = append(out, c.Image)
	}
	return strings.Join(out, ",")
}
