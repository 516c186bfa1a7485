package apiserver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The validation of k8s.io/kubernetes cannot be imported. What is checked here
// is what the lab acts on and what a typing mistake is likely to break; the
// messages follow pkg/apis/core/validation.

func oneOf[T ~string](path *field.Path, got T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, got) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, got, allowed)}
}

func validateLabels(l map[string]string, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabels(l, path)
}

// validatePortReference checks a port given by number or by name.
func validatePortReference(p intstr.IntOrString, path *field.Path) (errs field.ErrorList) {
	msgs := validation.IsValidPortName(p.StrVal)
	if p.Type == intstr.Int {
		msgs = validation.IsValidPortNum(p.IntValue())
	}
	for _, msg := range msgs {
		errs = append(errs, field.Invalid(path, p.String(), msg))
	}
	return errs
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	names := sets.New[string]()
	for i := range s.InitContainers {
		errs = append(errs, validateContainer(&s.InitContainers[i], names, path.Child("initContainers").Index(i))...)
	}
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], names, path.Child("containers").Index(i))...)
	}
	errs = append(errs, oneOf(path.Child("restartPolicy"), s.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, validateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than or equal to 0"))
	}
	return errs
}

func validateContainer(c *corev1.Container, names sets.Set[string], path *field.Path) (errs field.ErrorList) {
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		for _, msg := range validation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), c.Name, msg))
		}
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		}
		names.Insert(c.Name)
	}
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	ports := sets.New[string]()
	for i, p := range c.Ports {
		at := path.Child("ports").Index(i)
		for _, msg := range validation.IsValidPortNum(int(p.ContainerPort)) {
			errs = append(errs, field.Invalid(at.Child("containerPort"), p.ContainerPort, msg))
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if p.Name == "" {
			continue
		}
		for _, msg := range validation.IsValidPortName(p.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, msg))
		}
		if ports.Has(p.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		ports.Insert(p.Name)
	}
	probes := map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe}
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		if p := probes[name]; p != nil {
			errs = append(errs, validateProbe(p, path.Child(name))...)
		}
	}
	return errs
}

func validateProbe(p *corev1.Probe, path *field.Path) (errs field.ErrorList) {
	handlers := 0
	if p.HTTPGet != nil {
		handlers++
		errs = append(errs, validatePortReference(p.HTTPGet.Port, path.Child("httpGet", "port"))...)
	}
	if p.TCPSocket != nil {
		handlers++
		errs = append(errs, validatePortReference(p.TCPSocket.Port, path.Child("tcpSocket", "port"))...)
	}
	if p.Exec != nil {
		handlers++
	}
	if p.GRPC != nil {
		handlers++
	}
	switch {
	case handlers == 0:
		errs = append(errs, field.Required(path, "must specify a handler type"))
	case handlers > 1:
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 handler type"))
	}
	numbers := map[string]int32{
		"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold,
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[name]; n < 0 {
			errs = append(errs, field.Invalid(path.Child(name), n, "must be greater than or equal to 0"))
		}
	}
	return errs
}

// validateWorkload checks what Deployments and ReplicaSets share.
func validateWorkload(replicas *int32, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if replicas != nil && *replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *replicas, "must be greater than or equal to 0"))
	}
	at := spec.Child("template")
	if selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(spec.Child("selector"), selector, err.Error()))
		case parsed.Empty():
			errs = append(errs, field.Invalid(spec.Child("selector"), selector, "empty selector is invalid for a workload"))
		case !parsed.Matches(labels.Set(template.Labels)):
			errs = append(errs, field.Invalid(at.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
		}
	}
	errs = append(errs, validateLabels(template.Labels, at.Child("metadata", "labels"))...)
	errs = append(errs, validatePodSpec(&template.Spec, at.Child("spec"))...)
	if p := template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	return errs
}

// immutable refuses a change of any pair when the object was marked immutable.
func immutable(marked *bool, pairs ...any) field.ErrorList {
	if marked == nil || !*marked {
		return nil
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if !equality.Semantic.DeepEqual(pairs[i], pairs[i+1]) {
			return field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}
		}
	}
	return nil
}
