package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAStaleObjectDoesNotDecideThePodsGracePeriod(t *testing.T) {
	s := gracefulStrategy[*corev1.Pod]{strategy[*corev1.Pod]{resource: pods()}}
	stale := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))}}
	fresh := stale.DeepCopy()
	fresh.Spec.NodeName = "node-1"
	for name, c := range map[string]struct {
		asked *int64
		want  int64
	}{
		"nothing asked":  {nil, 30},
		"five asked":     {new(int64(5)), 5},
		"at once":        {new(int64(0)), 0},
		"a negative one": {new(int64(-1)), 1},
	} {
		o := &metav1.DeleteOptions{GracePeriodSeconds: c.asked}
		ctx := withAsked(t.Context(), o)
		for _, p := range []*corev1.Pod{stale, fresh} {
			if !s.CheckGracefulDelete(ctx, p, o) {
				t.Fatal("not graceful")
			}
		}
		if *o.GracePeriodSeconds != c.want {
			t.Errorf("%s: %d s, want %d", name, *o.GracePeriodSeconds, c.want)
		}
	}
}
