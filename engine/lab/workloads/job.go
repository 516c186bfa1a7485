package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

const (
	// firstJobBackOff is the wait after a failed pod, which doubles with each
	// failure since the last success (pkg/controller/job: DefaultJobPodFailureBackOff).
	firstJobBackOff = 10 * time.Second
	maxJobBackOff   = 10 * time.Minute
)

// jobController runs pods until enough of them have succeeded, by the rules of
// k8s.io/kubernetes pkg/controller/job for completions, parallelism and
// backoffLimit. Pods are counted while their objects are there: they carry no
// tracking finalizer.
type jobController struct {
	controller
}

func newJobController(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *jobController {
	c := &jobController{}
	c.controller = newController("job", client, clk, caches, events, c.sync)
	follow[*batchv1.Job](&c.controller, caches.jobs)
	c.followPods(jobKind.Kind, func(p *corev1.Pod) {
		if key := controllerKey(p, jobKind.Kind); key != "" {
			c.queue.Add(key)
		}
	})
	return c
}

func (c *jobController) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	j, err := c.caches.jobLister.Jobs(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if j.DeletionTimestamp != nil || jobOver(j) {
		return nil
	}
	mayManage := c.expectations.satisfied(key)
	pods, err := controlledBy[*corev1.Pod](c.caches.pods, j.UID, j.Namespace, false)
	if err != nil {
		return err
	}
	look := &jobLook{c: c, key: key, j: j}
	for _, p := range pods {
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			look.succeeded++
			look.lastSuccess = latest(look.lastSuccess, podEnd(p))
		case p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil:
			look.failed = append(look.failed, p)
		default:
			look.active = append(look.active, p)
			if podReady(p) {
				look.ready++
			}
		}
		for _, s := range p.Status.ContainerStatuses {
			look.restarts += s.RestartCount
		}
	}
	status := look.status()
	var manageErr error
	switch over := look.over(); {
	case over != nil:
		manageErr = look.c.deletePods(ctx, look.key, look.j, look.active)
		status.Active, status.Ready = 0, new(int32)
		status.Conditions = append(status.Conditions, over...)
		if over[len(over)-1].Type == batchv1.JobComplete {
			status.CompletionTime = &over[0].LastTransitionTime
		} else {
			status.Failed += int32(len(look.active))
		}
	case mayManage:
		manageErr = look.manage(ctx)
	}
	if !equality.Semantic.DeepEqual(j.Status, status) {
		cp := j.DeepCopy()
		cp.Status = status
		_, err := c.client.BatchV1().Jobs(namespace).UpdateStatus(ctx, cp, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			return errors.Join(manageErr, ignoreNotFound(err))
		}
		if n := len(status.Conditions); err == nil && n > len(j.Status.Conditions) {
			last := status.Conditions[n-1]
			kind, reason, msg := corev1.EventTypeNormal, "Completed", "Job completed"
			if last.Type == batchv1.JobFailed {
				kind, reason, msg = corev1.EventTypeWarning, last.Reason, last.Message
			}
			c.events.Event(j, kind, reason, msg)
		}
	}
	return manageErr
}

func jobOver(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// podEnd is when the last container of a pod ended.
func podEnd(p *corev1.Pod) time.Time {
	var at time.Time
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			at = latest(at, t.FinishedAt.Time)
		}
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jobLook is one look at a Job and its pods.
type jobLook struct {
	c              *jobController
	key            string
	j              *batchv1.Job
	active, failed []*corev1.Pod
	succeeded      int32
	ready          int32
	restarts       int32
	lastSuccess    time.Time
}

func (l *jobLook) status() batchv1.JobStatus {
	s := *l.j.Status.DeepCopy()
	if s.StartTime == nil {
		now := metav1.NewTime(l.c.clock.Now())
		s.StartTime = &now
	}
	s.Active, s.Succeeded, s.Failed, s.Ready = int32(len(l.active)), l.succeeded, int32(len(l.failed)), &l.ready
	return s
}

// over returns the conditions that end the Job, or nil.
func (l *jobLook) over() []batchv1.JobCondition {
	now := metav1.NewTime(l.c.clock.Now())
	cond := func(types []batchv1.JobConditionType, reason, msg string) (out []batchv1.JobCondition) {
		for _, t := range types {
			out = append(out, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: reason, Message: msg})
		}
		return out
	}
	failures := int32(len(l.failed))
	if l.j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		failures += l.restarts
	}
	limit := *l.j.Spec.BackoffLimit
	if failures > limit {
		return cond([]batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	done := false
	if want := l.j.Spec.Completions; want != nil {
		done = l.succeeded >= *want
	} else {
		done = l.succeeded > 0 && len(l.active) == 0
	}
	if done {
		return cond([]batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
	return nil
}

// manage keeps as many pods running as the Job still wants at a time, later
// after failures.
func (l *jobLook) manage(ctx context.Context) error {
	want := int(*l.j.Spec.Parallelism)
	if n := l.j.Spec.Completions; n != nil {
		want = min(want, int(*n-l.succeeded))
	} else if l.succeeded > 0 {
		want = min(want, len(l.active))
	}
	diff := want - len(l.active)
	if diff < 0 {
		return l.c.deletePods(ctx, l.key, l.j, podsToDelete(l.active, l.active, -diff, l.c.clock.Now()))
	}
	if diff == 0 {
		return nil
	}
	if wait := l.backOff(); wait > 0 {
		l.c.queue.AddAfter(l.key, wait)
		return nil
	}
	l.c.expectations.expectCreates(l.key, diff)
	return errors.Join(inParallel(diff, func(int) error {
		p := podOf(&l.j.Spec.Template, l.j, jobKind)
		p.GenerateName = namePrefix(l.j)
		made, err := l.c.client.CoreV1().Pods(l.j.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			l.c.expectations.created(l.key)
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil
			}
			l.c.events.Eventf(l.j, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return fmt.Errorf("create a pod of Job %s: %w", l.key, err)
		}
		l.c.events.Eventf(l.j, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", made.Name)
		return nil
	})...)
}

// backOff is how long to wait after the failures since the last success.
func (l *jobLook) backOff() time.Duration {
	n, last := 0, time.Time{}
	for _, p := range l.failed {
		end := podEnd(p)
		if end.IsZero() {
			end = p.CreationTimestamp.Time
		}
		if end.After(l.lastSuccess) {
			n++
			last = latest(last, end)
		}
	}
	if n == 0 {
		return 0
	}
	d := firstJobBackOff
	for range n - 1 {
		d = min(2*d, maxJobBackOff)
	}
	return last.Add(d).Sub(l.c.clock.Now())
}
