package apiserver_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// bound creates a pod and gives it a node, as a scheduler does.
func bound(t *testing.T, pods typedv1.PodInterface, p *corev1.Pod, node string) *corev1.Pod {
	t.Helper()
	must(pods.Create(t.Context(), p, metav1.CreateOptions{}))(t)
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := pods.Bind(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return must(pods.Get(t.Context(), p.Name, metav1.GetOptions{}))(t)
}

func TestBindingGivesAPodItsNodeOnce(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	p := bound(t, pods, pod("p"), "node-1")
	if p.Spec.NodeName != "node-1" || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != corev1.PodScheduled ||
		p.Status.Conditions[0].Status != corev1.ConditionTrue || p.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("node %q, conditions %+v", p.Spec.NodeName, p.Status.Conditions)
	}
	again := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Name: "node-2"}}
	if err := pods.Bind(t.Context(), again, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("binding again: %v, want 409", err)
	}
	again.Name = "none"
	if err := pods.Bind(t.Context(), again, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("binding nothing: %v, want 404", err)
	}
}

func TestADeletedPodStaysForItsGracePeriodUntilTheKubeletIsDone(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	p := pod("p")
	p.Spec.TerminationGracePeriodSeconds = new(int64(17))
	p = bound(t, pods, p, "node-1")
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p = must(pods.Get(t.Context(), "p", metav1.GetOptions{}))(t)
	if p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != 17 {
		t.Fatalf("deletion %v, grace %v", p.DeletionTimestamp, p.DeletionGracePeriodSeconds)
	}
	// deletionTimestamp is the request plus the grace.
	if request := p.DeletionTimestamp.Add(-17 * time.Second); request.Before(p.CreationTimestamp.Add(-time.Second)) || request.After(time.Now().Add(time.Second)) {
		t.Errorf("deletionTimestamp - grace = %v, created %v", request, p.CreationTimestamp)
	}
	// A shorter grace is honoured, a longer one is not.
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(5))}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(50))}); err != nil {
		t.Fatal(err)
	}
	if p = must(pods.Get(t.Context(), "p", metav1.GetOptions{}))(t); *p.DeletionGracePeriodSeconds != 5 {
		t.Errorf("grace %d, want 5", *p.DeletionGracePeriodSeconds)
	}
	// The kubelet's last word removes it; another pod's UID does not.
	wrong := types.UID("someone-else")
	force := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &wrong}}
	if err := pods.Delete(t.Context(), "p", force); !apierrors.IsConflict(err) {
		t.Errorf("deleting another UID: %v, want 409", err)
	}
	force.Preconditions.UID = &p.UID
	if err := pods.Delete(t.Context(), "p", force); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want NotFound", err)
	}
}

func TestAPodWithoutNodeOrWithEndedContainersGoesAtOnce(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	must(pods.Create(t.Context(), pod("pending"), metav1.CreateOptions{}))(t)
	ended := bound(t, pods, pod("ended"), "node-1")
	ended.Status.Phase = corev1.PodSucceeded
	must(pods.UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}))(t)
	for _, name := range []string{"pending", "ended"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
	}
}

func TestEvictionDeletesAndSaysWhy(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	bound(t, pods, pod("p"), "node-1")
	evict := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	dry := evict.DeepCopy()
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := pods.EvictV1(t.Context(), dry); err != nil {
		t.Fatal(err)
	}
	if p := must(pods.Get(t.Context(), "p", metav1.GetOptions{}))(t); p.DeletionTimestamp != nil || len(p.Status.Conditions) != 1 {
		t.Errorf("a dry eviction did something: %v %v", p.DeletionTimestamp, p.Status.Conditions)
	}
	if err := pods.EvictV1(t.Context(), evict); err != nil {
		t.Fatal(err)
	}
	p := must(pods.Get(t.Context(), "p", metav1.GetOptions{}))(t)
	if p.DeletionTimestamp == nil {
		t.Error("the pod is not terminating")
	}
	var why *corev1.PodCondition
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.DisruptionTarget {
			why = &p.Status.Conditions[i]
		}
	}
	if why == nil || why.Reason != "EvictionByEvictionAPI" || why.Status != corev1.ConditionTrue {
		t.Errorf("condition %+v", why)
	}
}

func TestAPodsSpecIsFixedButForItsImages(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	must(pods.Create(t.Context(), pod("p"), metav1.CreateOptions{}))(t)
	p := must(pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}`), metav1.PatchOptions{}))(t)
	if p.Spec.Containers[0].Image != "nginx:2" || p.Generation != 2 {
		t.Errorf("image %s, generation %d", p.Spec.Containers[0].Image, p.Generation)
	}
	for _, patch := range []string{`{"spec":{"nodeName":"node-1"}}`, `{"spec":{"terminationGracePeriodSeconds":1}}`, `{"spec":{"containers":[{"name":"c","command":["x"]}]}}`} {
		if _, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want 422", patch, err)
		}
	}
}

func TestPodStatusKeepsAddressesInStep(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	p := bound(t, pods, pod("p"), "node-1")
	p.Status.PodIP = "10.244.0.7"
	p.Spec.NodeName = "node-9" // ignored: status only
	p = must(pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}))(t)
	if len(p.Status.PodIPs) != 1 || p.Status.PodIPs[0].IP != "10.244.0.7" || p.Spec.NodeName != "node-1" || p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("addresses %v, node %s, qos %s", p.Status.PodIPs, p.Spec.NodeName, p.Status.QOSClass)
	}
}
