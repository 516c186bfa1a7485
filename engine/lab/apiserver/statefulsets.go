package apiserver

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func statefulSets() *resource[*appsv1.StatefulSet] {
	type S = *appsv1.StatefulSet
	template := func(s S) *corev1.PodTemplateSpec { return &s.Spec.Template }
	return &resource[S]{
		version: appsv1.SchemeGroupVersion, kind: "StatefulSet", plural: "statefulsets", singular: "statefulset",
		short: []string{"sts"}, inAll: true, namespaced: true,
		// The names of the pods are labels of DNS: NAME-ORDINAL.
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() S { return &appsv1.StatefulSet{} },
		newList:   func() runtime.Object { return &appsv1.StatefulSetList{} },
		columns: append([]column[S]{
			nameColumn[S](),
			col("Ready", func(s S) any { return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, value(s.Spec.Replicas)) }),
		}, templateColumns(template)...),
		rules: rules[S]{
			create: func(s S) { s.Status, s.Generation = appsv1.StatefulSetStatus{}, 1 },
			update: func(s, old S) {
				s.Status = old.Status
				bumpGeneration(s, old, s.Spec, old.Spec)
			},
			statusUpdate:   func(s, old S) { s.Spec, s.Labels = old.Spec, old.Labels },
			validate:       validateStatefulSet,
			validateUpdate: validateStatefulSetUpdate,
			warnings: func(s S) (w []string) {
				list := podSpecWarnings(&s.Spec.Template.Spec, field.NewPath("spec", "template", "spec"))
				if len(s.Spec.VolumeClaimTemplates) > 0 {
					list.add(field.NewPath("spec", "volumeClaimTemplates"), "the lab has no storage: no claims are made")
				}
				return list
			},
		},
		subresources: scaleSubresource(func(s S) scaled {
			return scaled{&s.ObjectMeta, &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector}
		}),
	}
}

// defaultStatefulSet follows SetDefaults_StatefulSet in pkg/apis/apps/v1.
func defaultStatefulSet(s *appsv1.StatefulSet) {
	setDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setDefault(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if u := &s.Spec.UpdateStrategy; u.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setPointer(&u.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setPointer(&u.RollingUpdate.Partition, 0)
	}
	setPointer(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setPointer(&s.Spec.Replicas, 1)
	setPointer(&s.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Spec.Template.Spec)
}

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateWorkload(s.Spec.Replicas, s.Spec.Selector, &s.Spec.Template)
	errs = append(errs, oneOf(spec.Child("podManagementPolicy"), s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	u, at := s.Spec.UpdateStrategy, spec.Child("updateStrategy")
	errs = append(errs, oneOf(at.Child("type"), u.Type, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)...)
	if r := u.RollingUpdate; r != nil {
		if u.Type == appsv1.OnDeleteStatefulSetStrategyType {
			errs = append(errs, field.Invalid(at.Child("rollingUpdate"), r, "only allowed for updateStrategy 'RollingUpdate'"))
		}
		if r.Partition != nil && *r.Partition < 0 {
			errs = append(errs, field.Invalid(at.Child("rollingUpdate", "partition"), *r.Partition, "must be greater than or equal to 0"))
		}
		if r.MaxUnavailable != nil && *r.MaxUnavailable != intstr.FromInt32(1) {
			errs = append(errs, field.Forbidden(at.Child("rollingUpdate", "maxUnavailable"), "the lab updates one pod of a StatefulSet at a time"))
		}
	}
	if o := s.Spec.Ordinals; o != nil && o.Start < 0 {
		errs = append(errs, field.Invalid(spec.Child("ordinals", "start"), o.Start, "must be greater than or equal to 0"))
	}
	if s.Spec.ServiceName != "" {
		for _, msg := range validation.IsDNS1123Subdomain(s.Spec.ServiceName) {
			errs = append(errs, field.Invalid(spec.Child("serviceName"), s.Spec.ServiceName, msg))
		}
	}
	return append(errs, validateMinReady(s.Spec.MinReadySeconds)...)
}

func validateMinReady(seconds int32) field.ErrorList {
	if seconds >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "minReadySeconds"), seconds, "must be greater than or equal to 0")}
}

func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	was, is := old.Spec.DeepCopy(), s.Spec.DeepCopy()
	was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds = is.Replicas, corev1.PodTemplateSpec{}, is.UpdateStrategy, is.MinReadySeconds
	was.Ordinals, was.RevisionHistoryLimit, was.PersistentVolumeClaimRetentionPolicy = is.Ordinals, is.RevisionHistoryLimit, is.PersistentVolumeClaimRetentionPolicy
	is.Template = corev1.PodTemplateSpec{}
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}

func controllerRevisions() *resource[*appsv1.ControllerRevision] {
	type R = *appsv1.ControllerRevision
	return &resource[R]{
		version: appsv1.SchemeGroupVersion, kind: "ControllerRevision", plural: "controllerrevisions", singular: "controllerrevision",
		namespaced: true,
		name:       apivalidation.NameIsDNSSubdomain,
		newObject:  func() R { return &appsv1.ControllerRevision{} },
		newList:    func() runtime.Object { return &appsv1.ControllerRevisionList{} },
		columns: []column[R]{
			nameColumn[R](),
			col("Controller", func(r R) any {
				if o := metav1.GetControllerOfNoCopy(r); o != nil {
					return o.Kind + "/" + o.Name
				}
				return "<none>"
			}),
			col("Revision", func(r R) any { return r.Revision }),
			ageColumn[R](),
		},
		rules: rules[R]{
			validate: func(r R) field.ErrorList {
				if r.Revision >= 0 {
					return nil
				}
				return field.ErrorList{field.Invalid(field.NewPath("revision"), r.Revision, "must be greater than or equal to 0")}
			},
			validateUpdate: func(r, old R) field.ErrorList {
				return apivalidation.ValidateImmutableField(string(r.Data.Raw), string(old.Data.Raw), field.NewPath("data"))
			},
		},
	}
}
