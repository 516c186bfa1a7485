package apiserver

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func daemonSets() *resource[*appsv1.DaemonSet] {
	type D = *appsv1.DaemonSet
	template := func(d D) *corev1.PodTemplateSpec { return &d.Spec.Template }
	selector := func(d D) *metav1.LabelSelector { return d.Spec.Selector }
	return &resource[D]{
		version: appsv1.SchemeGroupVersion, kind: "DaemonSet", plural: "daemonsets", singular: "daemonset",
		short: []string{"ds"}, inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() D { return &appsv1.DaemonSet{} },
		newList:   func() runtime.Object { return &appsv1.DaemonSetList{} },
		columns: append([]column[D]{
			nameColumn[D](),
			col("Desired", func(d D) any { return int64(d.Status.DesiredNumberScheduled) }),
			col("Current", func(d D) any { return int64(d.Status.CurrentNumberScheduled) }),
			col("Ready", func(d D) any { return int64(d.Status.NumberReady) }),
			col("Up-to-date", func(d D) any { return int64(d.Status.UpdatedNumberScheduled) }),
			col("Available", func(d D) any { return int64(d.Status.NumberAvailable) }),
			col("Node Selector", func(d D) any { return orNone(labels.FormatLabels(d.Spec.Template.Spec.NodeSelector)) }),
		}, append(templateColumns(template), selectorColumn(selector))...),
		rules: rules[D]{
			create: func(d D) {
				d.Status, d.Generation = appsv1.DaemonSetStatus{}, 1
				countTemplate(d, 1)
			},
			update: func(d, old D) {
				d.Status = old.Status
				if !equality.Semantic.DeepEqual(d.Spec, old.Spec) {
					d.Generation = old.Generation + 1
				}
				n, err := strconv.ParseInt(old.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
				if err != nil {
					n = 1
				}
				if !equality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
					n++
				}
				countTemplate(d, n)
			},
			statusUpdate:   func(d, old D) { d.Spec, d.Labels = old.Spec, old.Labels },
			validate:       validateDaemonSet,
			validateUpdate: fixedSelector(selector),
			warnings:       templateWarnings(template),
		},
	}
}

// countTemplate says how many templates the DaemonSet has had
// (pkg/registry/apps/daemonset/strategy.go, and the conversion to apps/v1).
func countTemplate(d *appsv1.DaemonSet, n int64) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

// defaultDaemonSet follows SetDefaults_DaemonSet in pkg/apis/apps/v1.
func defaultDaemonSet(d *appsv1.DaemonSet) {
	if len(d.Labels) == 0 {
		d.Labels = d.Spec.Template.Labels
	}
	u := &d.Spec.UpdateStrategy
	setDefault(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointer(&u.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointer(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&u.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setPointer(&d.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&d.Spec.Template.Spec)
	defaultHostPorts(&d.Spec.Template.Spec)
}

// defaultHostPorts gives containers of the host network the ports they use
// there.
func defaultHostPorts(s *corev1.PodSpec) {
	for i := range s.Containers {
		for j := range s.Containers[i].Ports {
			if p := &s.Containers[i].Ports[j]; s.HostNetwork && p.HostPort == 0 {
				p.HostPort = p.ContainerPort
			}
		}
	}
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	errs := validateWorkload(nil, d.Spec.Selector, &d.Spec.Template)
	u, at := d.Spec.UpdateStrategy, field.NewPath("spec", "updateStrategy")
	errs = append(errs, oneOf(at.Child("type"), u.Type, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)...)
	if r := u.RollingUpdate; r != nil && u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		surge, e1 := validateShare(r.MaxSurge, at.Child("rollingUpdate", "maxSurge"), true)
		unavailable, e2 := validateShare(r.MaxUnavailable, at.Child("rollingUpdate", "maxUnavailable"), true)
		errs = append(append(errs, e1...), e2...)
		switch {
		case surge > 0:
			errs = append(errs, field.Forbidden(at.Child("rollingUpdate", "maxSurge"), "the lab replaces a DaemonSet's pods after their end, use maxUnavailable"))
		case unavailable == 0:
			errs = append(errs, field.Required(at.Child("rollingUpdate", "maxUnavailable"), "cannot be 0 when maxSurge is 0"))
		}
	}
	return append(errs, validateMinReady(d.Spec.MinReadySeconds)...)
}
