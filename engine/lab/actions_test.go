package lab_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestTheScreensActionsScaleAndRestartAStatefulSet(t *testing.T) {
	w := start(t, 2)
	replicas := int32(2)
	selector, template := gated()
	template.Spec.ReadinessGates = nil
	template.Annotations = map[string]string{"kconverge.dev/stop-after": "200ms"}
	_, err := w.client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.expose()
	w.settledOn("created", 2)
	if err := w.lab.Scale(t.Context(), "default", "StatefulSet", "web", 3); err != nil {
		t.Fatal(err)
	}
	w.settledOn("scaled", 3)
	before := w.uids()
	if err := w.lab.Restart(t.Context(), "default", "StatefulSet", "web"); err != nil {
		t.Fatal(err)
	}
	w.until("every pod is another one", func(s *timeline.Snapshot) bool {
		now := w.uids()
		for name, uid := range before {
			if now[name] == "" || now[name] == uid {
				return false
			}
		}
		return true
	})
	s := w.settledOn("restarted", 3)
	var marks []string
	for _, m := range w.service(s, "web").Marks {
		marks = append(marks, m.Text)
	}
	for _, want := range []string{"scale web 2→3", "rollout web"} {
		if !strings.Contains(strings.Join(marks, "\n"), want) {
			t.Errorf("no mark %q among %q", want, marks)
		}
	}

	for what, err := range map[string]error{
		"scale a DaemonSet":            w.lab.Scale(t.Context(), "default", "DaemonSet", "web", 3),
		"restart a ReplicaSet":         w.lab.Restart(t.Context(), "default", "ReplicaSet", "web"),
		"scale one that is not there":  w.lab.Scale(t.Context(), "default", "StatefulSet", "nobody", 3),
		"restart one that is not here": w.lab.Restart(t.Context(), "default", "DaemonSet", "nobody"),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// uids are the UIDs of the pods of the namespace default, by name.
func (w *world) uids() map[string]string {
	w.Helper()
	pods, err := w.client.CoreV1().Pods("default").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range pods.Items {
		out[p.Name] = string(p.UID)
	}
	return out
}
