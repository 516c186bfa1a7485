package lab_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// deploy creates the Deployment "web" and its Service. stopAfter is how long its
// containers go on after they were told to stop.
func (w *world) deploy(replicas int32, stopAfter string) {
	w.Helper()
	labels := map[string]string{"app": "web"}
	_, err := w.client.AppsV1().Deployments("default").Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"kconverge.dev/stop-after": stopAfter}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](15),
					Containers:                    []corev1.Container{{Name: "c", Image: "nginx"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.expose()
}

func (w *world) expose() {
	w.Helper()
	w.exposeAs(func(*corev1.ServiceSpec) {})
}

// exposeAs creates the Service "web" with a spec that change has changed.
func (w *world) exposeAs(change func(*corev1.ServiceSpec)) {
	w.Helper()
	spec := corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}
	change(&spec)
	_, err := w.client.CoreV1().Services("default").Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) scale(replicas int32) {
	w.Helper()
	if err := w.lab.Scale(w.Context(), "default", "Deployment", "web", replicas); err != nil {
		w.Fatal(err)
	}
}

func (w *world) patchService(patch string) {
	w.Helper()
	if _, err := w.client.CoreV1().Services("default").Patch(w.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) deleteService() {
	w.Helper()
	if err := w.client.CoreV1().Services("default").Delete(w.Context(), "web", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}
