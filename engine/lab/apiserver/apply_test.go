package apiserver_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func manifest(replicas string) []byte {
	return []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{` + replicas +
		`"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}`)
}

func TestServerSideApplyConflictsWithWhoeverScaledInBetween(t *testing.T) {
	_, client := startClient(t)
	deployments := client.AppsV1().Deployments("default")
	apply := metav1.PatchOptions{FieldManager: "kubectl"}
	must(deployments.Patch(t.Context(), "web", types.ApplyPatchType, manifest(`"replicas":2,`), apply))(t)
	// The same again changes nothing.
	before := must(deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t)
	again := must(deployments.Patch(t.Context(), "web", types.ApplyPatchType, manifest(`"replicas":2,`), apply))(t)
	if again.ResourceVersion != before.ResourceVersion {
		t.Errorf("applying the same manifest wrote: %s, then %s", before.ResourceVersion, again.ResourceVersion)
	}
	// kubectl scale reads and updates the scale subresource.
	scale := must(deployments.GetScale(t.Context(), "web", metav1.GetOptions{}))(t)
	if scale.Spec.Replicas != 2 || scale.Status.Selector != "app=web" {
		t.Errorf("scale %+v", scale)
	}
	scale.Spec.Replicas = 5
	scale = must(deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{FieldManager: "somebody"}))(t)
	if scale.Spec.Replicas != 5 {
		t.Errorf("scaled to %d, want 5", scale.Spec.Replicas)
	}
	_, err := deployments.Patch(t.Context(), "web", types.ApplyPatchType, manifest(`"replicas":2,`), apply)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.replicas") || !strings.Contains(err.Error(), "somebody") {
		t.Errorf("apply after scale: %v, want a conflict over .spec.replicas with somebody", err)
	}
	forced := apply
	forced.Force = new(true)
	d := must(deployments.Patch(t.Context(), "web", types.ApplyPatchType, manifest(`"replicas":2,`), forced))(t)
	if *d.Spec.Replicas != 2 {
		t.Errorf("forced apply left %d replicas", *d.Spec.Replicas)
	}
	// Leaving the field out gives it up.
	must(deployments.Patch(t.Context(), "web", types.ApplyPatchType, manifest(""), apply))(t)
}

func TestScaleHonoursVersionsAndRefusesNegatives(t *testing.T) {
	_, client := startClient(t)
	deployments := client.AppsV1().Deployments("default")
	must(deployments.Create(t.Context(), deployment("web", 1), metav1.CreateOptions{}))(t)
	stale := must(deployments.GetScale(t.Context(), "web", metav1.GetOptions{}))(t)
	fresh := stale.DeepCopy()
	fresh.Spec.Replicas = 2
	must(deployments.UpdateScale(t.Context(), "web", fresh, metav1.UpdateOptions{}))(t)
	stale.Spec.Replicas = 3
	if _, err := deployments.UpdateScale(t.Context(), "web", stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old scale: %v, want 409", err)
	}
	negative := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: -1}}
	if _, err := deployments.UpdateScale(t.Context(), "web", negative, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("-1 replicas: %v, want 422", err)
	}
	d := must(deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t)
	if *d.Spec.Replicas != 2 || d.Generation != 2 {
		t.Errorf("%d replicas, generation %d, want 2 and 2", *d.Spec.Replicas, d.Generation)
	}
	must(deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}, "scale"))(t)
	if d := must(deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t); *d.Spec.Replicas != 4 {
		t.Errorf("patching the scale left %d replicas", *d.Spec.Replicas)
	}
}

func TestStrategicPatchMergesContainersByName(t *testing.T) {
	_, client := startClient(t)
	deployments := client.AppsV1().Deployments("default")
	must(deployments.Create(t.Context(), deployment("web", 1), metav1.CreateOptions{}))(t)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}}}}`)
	d := must(deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	if c := d.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Image != "nginx" || len(c[0].Env) != 1 {
		t.Errorf("containers %+v", c)
	}
	_, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicaz":2}}`), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestApplyingAServiceByServerSideApplyKeepsItsAddress(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	apply := func(target string) *corev1.Service {
		m := []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":` + target + `}]}}`)
		return must(services.Patch(t.Context(), "web", types.ApplyPatchType, m, metav1.PatchOptions{FieldManager: "kubectl"}))(t)
	}
	first, second := apply("8080"), apply("9090")
	if first.Spec.ClusterIP == "" || first.Spec.ClusterIP != second.Spec.ClusterIP || second.Spec.Ports[0].TargetPort != intPort(9090) {
		t.Errorf("%s, then %s with target %v", first.Spec.ClusterIP, second.Spec.ClusterIP, second.Spec.Ports[0].TargetPort)
	}
}
