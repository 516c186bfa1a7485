package lab_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/timeline"
)

// TestFaultsOfProbesAndHooks plays those of the kubelet that make one moment of a pod's
// life later: when its program listens, when it is probed, how long its hook takes.
func TestFaultsOfProbesAndHooks(t *testing.T) {
	w := start(t, 1)
	w.deploy(1, "1s")
	w.settled()
	ctx := t.Context()
	const patch = `{"spec":{"template":{"spec":{"containers":[{"name":"c","readinessProbe":{"httpGet":{"port":8080},"periodSeconds":1,"failureThreshold":1}}]}}}}`
	if _, err := w.client.AppsV1().Deployments("default").Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settled()
	// only is the Service's one pod; nil while there is another number of them.
	only := func() *corev1.Pod {
		list, err := w.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return nil
		}
		return &list.Items[0]
	}
	// ready is since when the pod is ready, or is not.
	ready := func(p *corev1.Pod, is corev1.ConditionStatus) (since time.Time, ok bool) {
		if p == nil {
			return since, false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == is {
				return c.LastTransitionTime.Time, true
			}
		}
		return since, false
	}
	await := func(what string, is corev1.ConditionStatus) time.Time {
		t.Helper()
		var since time.Time
		w.until(what, func(*timeline.Snapshot) (ok bool) { since, ok = ready(only(), is); return ok })
		return since
	}
	replaced := func() (took time.Duration) {
		t.Helper()
		old := only()
		began := time.Now()
		if err := w.client.CoreV1().Pods("default").Delete(ctx, old.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.until("the pod is gone", func(*timeline.Snapshot) bool {
			_, err := w.client.CoreV1().Pods("default").Get(ctx, old.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		took = time.Since(began)
		w.settled()
		return took
	}
	t.Run("listen-delay", func(t *testing.T) {
		w.fault("listen-delay=5s@web")
		replaced()
		p := only()
		since, _ := ready(p, corev1.ConditionTrue)
		run := p.Status.ContainerStatuses[0].State.Running
		// Both are cut to whole seconds, and so is a multiple of a second between them.
		if run == nil || since.Sub(run.StartedAt.Time) < 5*time.Second {
			t.Errorf("a program that listens after 5s runs since %+v and is ready since %s", run, since)
		}
		w.fault("listen-delay=off")
	})
	t.Run("probe-period", func(t *testing.T) {
		w.fault("probe-period=9s@web", "probe-fail=on@web")
		from := await("the probe fails", corev1.ConditionFalse)
		// It was probed once more as it became unready, and again only a period later.
		w.fault("probe-fail=off")
		to := await("the probe succeeds", corev1.ConditionTrue)
		if d := to.Sub(from); d < 6*time.Second {
			t.Errorf("a pod that is probed every 9s was ready again after %v", d)
		}
		w.fault("probe-period=off")
		w.settled()
	})
	t.Run("prestop", func(t *testing.T) {
		w.fault("prestop=6s@web")
		if d := replaced(); d < 7*time.Second {
			t.Errorf("a pod that serves for 1s after a hook of 6s was gone after %v", d)
		}
		w.fault("prestop=off")
	})
}
