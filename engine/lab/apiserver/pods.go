package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

func pods() *resource[*corev1.Pod] {
	return &resource[*corev1.Pod]{
		version: corev1.SchemeGroupVersion, kind: "Pod", plural: "pods", singular: "pod",
		short: []string{"po"}, inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() *corev1.Pod { return &corev1.Pod{} },
		newList:   func() runtime.Object { return &corev1.PodList{} },
		fields: map[string]func(*corev1.Pod) string{
			"spec.nodeName":            func(p *corev1.Pod) string { return p.Spec.NodeName },
			"spec.restartPolicy":       func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) },
			"spec.schedulerName":       func(p *corev1.Pod) string { return p.Spec.SchedulerName },
			"spec.serviceAccountName":  func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
			"spec.hostNetwork":         func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) },
			"status.phase":             func(p *corev1.Pod) string { return string(p.Status.Phase) },
			"status.podIP":             func(p *corev1.Pod) string { return p.Status.PodIP },
			"status.nominatedNodeName": func(p *corev1.Pod) string { return p.Status.NominatedNodeName },
		},
		columns: []column[*corev1.Pod]{
			nameColumn[*corev1.Pod](),
			col("Ready", func(p *corev1.Pod) any {
				return fmt.Sprintf("%d/%d", summarize(p).ready, len(p.Spec.Containers))
			}),
			col("Status", func(p *corev1.Pod) any { return summarize(p).status }),
			{name: "Restarts", cell: func(p *corev1.Pod, now time.Time) any { return summarize(p).restartsCell(now) }},
			ageColumn[*corev1.Pod](),
			wide("IP", func(p *corev1.Pod) any { return orNone(p.Status.PodIP) }),
			wide("Node", func(p *corev1.Pod) any { return orNone(p.Spec.NodeName) }),
			wide("Nominated Node", func(p *corev1.Pod) any { return orNone(p.Status.NominatedNodeName) }),
			wide("Readiness Gates", func(p *corev1.Pod) any { return readinessGates(p) }),
		},
		rules: rules[*corev1.Pod]{
			create: func(p *corev1.Pod) {
				p.Generation = 1
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(p)}
				tolerateForAWhile(&p.Spec)
			},
			update: func(p, old *corev1.Pod) {
				p.Status = old.Status
				tolerateForAWhile(&p.Spec)
				bumpGeneration(p, old, p.Spec, old.Spec)
			},
			statusUpdate: func(p, old *corev1.Pod) {
				p.Spec = old.Spec
				p.DeletionTimestamp = nil
				p.OwnerReferences = old.OwnerReferences
				if p.Status.QOSClass == "" {
					p.Status.QOSClass = old.Status.QOSClass
				}
			},
			validate:       func(p *corev1.Pod) field.ErrorList { return validatePodSpec(&p.Spec, field.NewPath("spec")) },
			validateUpdate: validatePodUpdate,
			warnings:       func(p *corev1.Pod) []string { return podSpecWarnings(&p.Spec, field.NewPath("spec")) },
			gracePeriod:    podGracePeriod,
		},
		subresources: func(main, status *genericregistry.Store) map[string]rest.Storage {
			out := podStreams(main)
			out["binding"] = &bindingREST{pods: main}
			out["eviction"] = &evictionREST{pods: main, status: status}
			out["log"] = &logREST{pods: main}
			return out
		},
	}
}

// tolerateForAWhile lets pods stay five minutes on a node that is not ready, as
// the admission plugin DefaultTolerationSeconds does
// (plugin/pkg/admission/defaulttolerationseconds).
func tolerateForAWhile(s *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		own := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !own {
			seconds := int64(300)
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
		}
	}
}

// bumpGeneration counts changes of the wanted state.
func bumpGeneration(o, old object, spec, oldSpec any) {
	if !equality.Semantic.DeepEqual(spec, oldSpec) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
}

// podGracePeriod follows CheckGracefulDelete in pkg/registry/core/pod/strategy.go:
// what the client asked for, else what the pod says; nothing to wait for when
// no kubelet has the pod or its containers have ended.
func podGracePeriod(p *corev1.Pod, asked *int64) int64 {
	var seconds int64
	switch {
	case asked != nil:
		seconds = *asked
	case p.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	if p.Spec.NodeName == "" || terminal(p) {
		return 0
	}
	if seconds < 0 {
		return 1
	}
	return seconds
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// validatePodUpdate allows the changes that ValidatePodUpdate in
// pkg/apis/core/validation allows.
func validatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	was := old.Spec.DeepCopy()
	is := p.Spec.DeepCopy()
	for _, lists := range [][2][]corev1.Container{{was.Containers, is.Containers}, {was.InitContainers, is.InitContainers}} {
		if len(lists[0]) != len(lists[1]) {
			continue
		}
		for i := range lists[0] {
			lists[1][i].Image = lists[0][i].Image
		}
	}
	is.ActiveDeadlineSeconds = was.ActiveDeadlineSeconds
	if len(is.Tolerations) >= len(was.Tolerations) && equality.Semantic.DeepEqual(is.Tolerations[:len(was.Tolerations)], was.Tolerations) {
		is.Tolerations = was.Tolerations
	}
	if equality.Semantic.DeepEqual(is, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)")}
}

// podQOS follows pkg/apis/core/helper/qos for processor and memory.
func podQOS(p *corev1.Pod) corev1.PodQOSClass {
	any, guaranteed := false, true
	for _, c := range p.Spec.Containers {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			any = any || !request.IsZero() || !limit.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return "<none>"
	}
	met := 0
	for _, g := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == g.ConditionType && c.Status == corev1.ConditionTrue {
				met++
			}
		}
	}
	return fmt.Sprintf("%d/%d", met, len(p.Spec.ReadinessGates))
}
