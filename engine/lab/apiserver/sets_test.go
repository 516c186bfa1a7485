package apiserver_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func setTemplate() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "x"}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "x"}}},
	}
}

func statefulSet(name string, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	s.Spec.Selector, s.Spec.Template = setTemplate()
	for _, f := range change {
		f(s)
	}
	return s
}

func daemonSet(name string, change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	d.Spec.Selector, d.Spec.Template = setTemplate()
	for _, f := range change {
		f(d)
	}
	return d
}

func job(name string, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	_, j.Spec.Template = setTemplate()
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, f := range change {
		f(j)
	}
	return j
}

func TestSetsAndJobsGetTheDefaultsOfKubernetes(t *testing.T) {
	_, client := startClient(t)
	s := must(client.AppsV1().StatefulSets("default").Create(t.Context(), statefulSet("db"), metav1.CreateOptions{}))(t)
	if *s.Spec.Replicas != 1 || s.Spec.PodManagementPolicy != appsv1.OrderedReadyPodManagement || *s.Spec.UpdateStrategy.RollingUpdate.Partition != 0 || *s.Spec.RevisionHistoryLimit != 10 || s.Generation != 1 {
		t.Errorf("StatefulSet %+v", s.Spec)
	}
	d := must(client.AppsV1().DaemonSets("default").Create(t.Context(), daemonSet("agent"), metav1.CreateOptions{}))(t)
	if d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue() != 1 || d.Annotations[appsv1.DeprecatedTemplateGeneration] != "1" {
		t.Errorf("DaemonSet %+v %v", d.Spec, d.Annotations)
	}
	d.Spec.Template.Spec.Containers[0].Image = "y"
	d = must(client.AppsV1().DaemonSets("default").Update(t.Context(), d, metav1.UpdateOptions{}))(t)
	if d.Annotations[appsv1.DeprecatedTemplateGeneration] != "2" || d.Generation != 2 {
		t.Errorf("after a change of its template: %v, generation %d", d.Annotations, d.Generation)
	}
	j := must(client.BatchV1().Jobs("default").Create(t.Context(), job("once"), metav1.CreateOptions{}))(t)
	if *j.Spec.Completions != 1 || *j.Spec.Parallelism != 1 || *j.Spec.BackoffLimit != 6 || j.UID == "" ||
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] != string(j.UID) || j.Spec.Template.Labels[batchv1.JobNameLabel] != "once" {
		t.Errorf("Job %+v", j.Spec)
	}
}

func TestWhatSetsAndJobsCannotDoInTheLabIsRefusedAndNamed(t *testing.T) {
	_, client := startClient(t)
	two := int32(2)
	many := intstr.FromInt32(2)
	indexed := batchv1.IndexedCompletion
	stateful := func(f func(*appsv1.StatefulSet)) func() error {
		return func() error {
			_, err := client.AppsV1().StatefulSets("default").Create(t.Context(), statefulSet("db", f), metav1.CreateOptions{})
			return err
		}
	}
	daemon := func(f func(*appsv1.DaemonSet)) func() error {
		return func() error {
			_, err := client.AppsV1().DaemonSets("default").Create(t.Context(), daemonSet("agent", f), metav1.CreateOptions{})
			return err
		}
	}
	aJob := func(f func(*batchv1.Job)) func() error {
		return func() error {
			_, err := client.BatchV1().Jobs("default").Create(t.Context(), job("once", f), metav1.CreateOptions{})
			return err
		}
	}
	for _, tc := range []struct {
		field  string
		create func() error
	}{
		{"spec.updateStrategy.rollingUpdate.maxUnavailable", stateful(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &many}
		})},
		{"spec.podManagementPolicy", stateful(func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "Random" })},
		{"spec.updateStrategy.type", stateful(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = "Recreate" })},
		{"spec.template.metadata.labels", stateful(func(s *appsv1.StatefulSet) { s.Spec.Template.Labels = map[string]string{"app": "other"} })},
		{"spec.updateStrategy.rollingUpdate.maxSurge", daemon(func(d *appsv1.DaemonSet) {
			zero := intstr.FromInt32(0)
			d.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &many, MaxUnavailable: &zero}
		})},
		{"spec.template.spec.restartPolicy", daemon(func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever })},
		{"spec.completionMode", aJob(func(j *batchv1.Job) { j.Spec.CompletionMode, j.Spec.Completions = &indexed, &two })},
		{"spec.template.spec.restartPolicy", aJob(func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways })},
	} {
		if err := tc.create(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("%s: %v", tc.field, err)
		}
	}
	s := must(client.AppsV1().StatefulSets("default").Create(t.Context(), statefulSet("db"), metav1.CreateOptions{}))(t)
	s.Spec.ServiceName = "other"
	if _, err := client.AppsV1().StatefulSets("default").Update(t.Context(), s, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("changing serviceName: %v", err)
	}
	s.Spec.ServiceName, *s.Spec.Replicas = "", 3
	must(client.AppsV1().StatefulSets("default").Update(t.Context(), s, metav1.UpdateOptions{}))(t)
}

func TestAPodToleratesASilentNodeForFiveMinutesAlsoAfterAReplace(t *testing.T) {
	_, client := startClient(t)
	made := must(client.CoreV1().Pods("default").Create(t.Context(), pod("a"), metav1.CreateOptions{}))(t)
	tolerated := func(p *corev1.Pod) (out []string) {
		for _, x := range p.Spec.Tolerations {
			if x.Effect == corev1.TaintEffectNoExecute && x.TolerationSeconds != nil && *x.TolerationSeconds == 300 {
				out = append(out, x.Key)
			}
		}
		return out
	}
	want := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}
	if got := tolerated(made); !slices.Equal(got, want) {
		t.Errorf("tolerates %v", got)
	}
	replaced := made.DeepCopy()
	replaced.Spec.Tolerations = nil
	replaced = must(client.CoreV1().Pods("default").Update(t.Context(), replaced, metav1.UpdateOptions{}))(t)
	if got := tolerated(replaced); !slices.Equal(got, want) || replaced.Generation != made.Generation {
		t.Errorf("after a replace it tolerates %v, generation %d", got, replaced.Generation)
	}
}
