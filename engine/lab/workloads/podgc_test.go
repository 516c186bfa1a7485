package workloads

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

// withControllers runs f beside the controllers, in a bubble of its own time.
func withControllers(t *testing.T, client kubernetes.Interface, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- New(Options{Client: client, NodeGrace: time.Hour}).Run(ctx) }() // no kubelet runs
		<-time.After(time.Second)
		f(t)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func orphanedCluster() *fake.Clientset {
	return fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-n", Namespace: "default", UID: "1"}, Spec: corev1.PodSpec{NodeName: "n"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-other", Namespace: "default", UID: "2"}, Spec: corev1.PodSpec{NodeName: "other"}},
	)
}

func exists(t *testing.T, client kubernetes.Interface, pod string) bool {
	t.Helper()
	_, err := client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestThePodsOfADeletedNodeFailAndGoAfterTheQuarantine(t *testing.T) {
	client := orphanedCluster()
	withControllers(t, client, func(t *testing.T) {
		if err := client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(quarantine - time.Second)
		if !exists(t, client, "on-n") {
			t.Error("the pod went before the quarantine was over")
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if exists(t, client, "on-n") {
			t.Error("the pod of the deleted node is still there")
		}
		if !exists(t, client, "on-other") {
			t.Error("the pod of the other node is gone, too")
		}
	})
	failed := false
	for _, a := range client.Actions() {
		if p, ok := a.(ktesting.PatchAction); ok && p.GetSubresource() == "status" && p.GetName() == "on-n" {
			failed = true
		}
		if a.GetVerb() == "delete" && a.GetResource().Resource == "pods" && !failed {
			t.Error("the pod was deleted before it was marked as failed")
		}
	}
	if !failed {
		t.Error("the pod was never marked as failed")
	}
}

func TestThePodsOfANodeThatComesBackWithinTheQuarantineStay(t *testing.T) {
	client := orphanedCluster()
	withControllers(t, client, func(t *testing.T) {
		if err := client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(quarantine / 2)
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * quarantine)
		synctest.Wait()
		if !exists(t, client, "on-n") {
			t.Error("the pod is gone although its node is back")
		}
	})
}

func TestAPodPutOnANodeThatNobodyKnowsGoes(t *testing.T) {
	client := orphanedCluster()
	withControllers(t, client, func(t *testing.T) {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "lost", Namespace: "default", UID: "3"}, Spec: corev1.PodSpec{NodeName: "nobody"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(quarantine + time.Second)
		synctest.Wait()
		if exists(t, client, "lost") {
			t.Error("the pod is still there")
		}
	})
}
