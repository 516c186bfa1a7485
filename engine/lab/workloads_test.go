package lab_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/timeline"
)

// gated is a pod template of the Service "web" with a readiness gate.
func gated() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "web"}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}},
			Containers:     []corev1.Container{{Name: "c", Image: "nginx"}},
		},
	}
}

// gate sets the condition that the pod's readiness gate asks for.
func (w *world) gate(pod string, status corev1.ConditionStatus) {
	w.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"example.com/gate","status":%q}]}}`, status)
	if _, err := w.client.CoreV1().Pods("default").Patch(w.Context(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
}

// rules waits until every node routes n endpoints.
func (w *world) rules(what string, n int) {
	w.Helper()
	w.until(what, func(s *timeline.Snapshot) bool {
		for _, node := range w.lab.Nodes() {
			if len(model(s, node.Name())) != n {
				return false
			}
		}
		return true
	})
}

func TestAReadinessGateOfAStatefulSetsPodDecidesWhatTheKernelRoutes(t *testing.T) {
	w := start(t, 2)
	replicas := int32(2)
	selector, template := gated()
	_, err := w.client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template, PodManagementPolicy: appsv1.ParallelPodManagement},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.expose()
	w.until("both pods are there and unready", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return svc != nil && svc.Slices != nil && len(svc.Slices.Members) == 2
	})
	w.rules("no node routes anything yet", 0)
	w.gate("web-0", corev1.ConditionTrue)
	w.rules("the first pod is routed", 1)
	w.gate("web-1", corev1.ConditionTrue)
	s := w.settledOn("both gates open", 2)
	if loads := w.service(s, "web").Workloads; len(loads) != 1 || loads[0].Kind != "StatefulSet" || !loads[0].Settled {
		t.Errorf("workloads %+v", loads)
	}
	w.gate("web-0", corev1.ConditionFalse)
	w.rules("a gate that closes takes its pod out", 1)
}

func TestADaemonSetIsRoutedOnEveryNode(t *testing.T) {
	w := start(t, 3)
	selector, template := gated()
	template.Spec.ReadinessGates = nil
	_, err := w.client.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.expose()
	s := w.settledOn("created", 3)
	if loads := w.service(s, "web").Workloads; len(loads) != 1 || loads[0].Kind != "DaemonSet" || loads[0].Replicas != 3 {
		t.Errorf("workloads %+v", loads)
	}
}

func TestAPodOfTheHostNetworkIsRoutedAtItsNodesAddress(t *testing.T) {
	w := start(t, 2)
	_, template := gated()
	template.Spec.ReadinessGates = nil
	template.Spec.HostNetwork, template.Spec.NodeName = true, "node-2"
	template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	if _, err := w.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: template.Labels}, Spec: template.Spec,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expose()
	w.rules("the pod is routed", 1)
	for _, n := range w.lab.Nodes() {
		if have, _ := w.kernel(n); len(have) != 1 || have[0] != w.lab.Nodes()[1].Addresses()[0] {
			t.Errorf("%s routes %v, want the address of node-2", n.Name(), have)
		}
	}
}
