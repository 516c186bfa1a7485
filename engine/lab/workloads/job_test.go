package workloads_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *cluster) runJob(name string, completions, parallelism, backoffLimit int32, command ...string) {
	c.t.Helper()
	_, err := c.client.BatchV1().Jobs("default").Create(c.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: &parallelism, BackoffLimit: &backoffLimit,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "v1", Command: command}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

// jobEnds waits for a condition of the Job.
func (c *cluster) jobEnds(name string, as batchv1.JobConditionType) *batchv1.Job {
	c.t.Helper()
	var j *batchv1.Job
	c.until(fmt.Sprintf("%s is %s", name, as), func() (done bool, err error) {
		j, err = c.client.BatchV1().Jobs("default").Get(c.ctx, name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(j.Status.Conditions, func(x batchv1.JobCondition) bool {
			return x.Type == as && x.Status == corev1.ConditionTrue
		}), err
	})
	return j
}

func TestAJobRunsAsManyPodsAtATimeAsItSaysUntilEnoughHaveSucceeded(t *testing.T) {
	c := newCluster(t, 2)
	stop := c.followPods("work", func(pods []*corev1.Pod) error {
		active := 0
		for _, p := range pods {
			if p.Status.Phase != corev1.PodSucceeded {
				active++
			}
		}
		if active > 2 || len(pods) > 5 {
			return fmt.Errorf("%d pods at a time, %d in all", active, len(pods))
		}
		return nil
	})
	c.runJob("work", 5, 2, 6, "true")
	j := c.jobEnds("work", batchv1.JobComplete)
	if j.Status.Succeeded != 5 || j.Status.Active != 0 || j.Status.Failed != 0 || j.Status.CompletionTime == nil {
		t.Errorf("status %+v", j.Status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAJobThatFailsTooOftenIsFailed(t *testing.T) {
	c := newCluster(t, 1)
	c.runJob("bad", 1, 1, 0, "false")
	j := c.jobEnds("bad", batchv1.JobFailed)
	if j.Status.Failed != 1 || j.Status.Succeeded != 0 || len(c.pods("bad")) != 1 {
		t.Errorf("status %+v with %d pods", j.Status, len(c.pods("bad")))
	}
}
