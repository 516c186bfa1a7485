package apiserver

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func jobs() *resource[*batchv1.Job] {
	type J = *batchv1.Job
	template := func(j J) *corev1.PodTemplateSpec { return &j.Spec.Template }
	selector := func(j J) *metav1.LabelSelector { return j.Spec.Selector }
	return &resource[J]{
		version: batchv1.SchemeGroupVersion, kind: "Job", plural: "jobs", singular: "job",
		inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() J { return &batchv1.Job{} },
		newList:   func() runtime.Object { return &batchv1.JobList{} },
		fields: map[string]func(J) string{
			"status.successful": func(j J) string { return fmt.Sprint(j.Status.Succeeded) },
		},
		columns: append([]column[J]{
			nameColumn[J](),
			col("Status", func(j J) any { return jobStatus(j) }),
			col("Completions", func(j J) any { return jobCompletions(j) }),
			{name: "Duration", cell: func(j J, now time.Time) any { return jobDuration(j, now) }},
		}, append(templateColumns(template), selectorColumn(selector))...),
		rules: rules[J]{
			create: func(j J) {
				j.Status, j.Generation = batchv1.JobStatus{}, 1
				generateSelector(j)
			},
			update: func(j, old J) {
				j.Status = old.Status
				bumpGeneration(j, old, j.Spec, old.Spec)
			},
			statusUpdate:   func(j, old J) { j.Spec = old.Spec },
			validate:       validateJob,
			validateUpdate: validateJobUpdate,
			warnings:       templateWarnings(template),
		},
	}
}

// defaultJob follows SetDefaults_Job in pkg/apis/batch/v1.
func defaultJob(j *batchv1.Job) {
	s := &j.Spec
	if s.Completions == nil && s.Parallelism == nil {
		setPointer(&s.Completions, 1)
	}
	setPointer(&s.Parallelism, 1)
	setPointer(&s.BackoffLimit, 6)
	setPointer(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&s.Suspend, false)
	setPointer(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setPointer(&s.ManualSelector, false)
	if len(j.Labels) == 0 {
		j.Labels = s.Template.Labels
	}
	defaultPodSpec(&s.Template.Spec)
}

// generateSelector gives the Job the labels that its pods are known by
// (pkg/registry/batch/job/strategy.go).
func generateSelector(j *batchv1.Job) {
	if j.Spec.ManualSelector != nil && *j.Spec.ManualSelector {
		return
	}
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	for k, v := range map[string]string{
		batchv1.JobNameLabel: j.Name, "job-name": j.Name,
		batchv1.ControllerUidLabel: string(j.UID), "controller-uid": string(j.UID),
	} {
		j.Spec.Template.Labels[k] = v
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
}

func validateJob(j *batchv1.Job) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	for _, n := range []struct {
		name string
		of   *int32
	}{{"parallelism", j.Spec.Parallelism}, {"completions", j.Spec.Completions}, {"backoffLimit", j.Spec.BackoffLimit}} {
		if n.of != nil && *n.of < 0 {
			errs = append(errs, field.Invalid(spec.Child(n.name), *n.of, "must be greater than or equal to 0"))
		}
	}
	at := spec.Child("template", "spec")
	errs = append(errs, validatePodSpec(&j.Spec.Template.Spec, at)...)
	if p := j.Spec.Template.Spec.RestartPolicy; p != corev1.RestartPolicyOnFailure && p != corev1.RestartPolicyNever {
		errs = append(errs, field.Required(at.Child("restartPolicy"), "valid values: \"OnFailure\", \"Never\""))
	}
	no := func(name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(spec.Child(name), "the lab's Jobs do not have it"))
		}
	}
	no("completionMode", j.Spec.CompletionMode != nil && *j.Spec.CompletionMode != batchv1.NonIndexedCompletion)
	no("suspend", j.Spec.Suspend != nil && *j.Spec.Suspend)
	no("activeDeadlineSeconds", j.Spec.ActiveDeadlineSeconds != nil)
	no("podFailurePolicy", j.Spec.PodFailurePolicy != nil)
	no("successPolicy", j.Spec.SuccessPolicy != nil)
	no("ttlSecondsAfterFinished", j.Spec.TTLSecondsAfterFinished != nil)
	no("managedBy", j.Spec.ManagedBy != nil)
	no("podReplacementPolicy", j.Spec.PodReplacementPolicy != nil && *j.Spec.PodReplacementPolicy != batchv1.TerminatingOrFailed)
	return errs
}

func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	is, was := j.Spec.DeepCopy(), old.Spec.DeepCopy()
	was.Parallelism, was.BackoffLimit = is.Parallelism, is.BackoffLimit
	if equality.Semantic.DeepEqual(is, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "field is immutable but for parallelism and backoffLimit")}
}

func jobStatus(j *batchv1.Job) string {
	has := func(t batchv1.JobConditionType) bool {
		for _, c := range j.Status.Conditions {
			if c.Type == t && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	switch {
	case has(batchv1.JobComplete):
		return "Complete"
	case has(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) string {
	switch {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case value(j.Spec.Parallelism) > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, value(j.Spec.Parallelism))
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

func jobDuration(j *batchv1.Job, now time.Time) string {
	switch {
	case j.Status.StartTime == nil:
		return ""
	case j.Status.CompletionTime != nil:
		return duration.HumanDuration(j.Status.CompletionTime.Sub(j.Status.StartTime.Time))
	}
	return duration.HumanDuration(now.Sub(j.Status.StartTime.Time))
}
