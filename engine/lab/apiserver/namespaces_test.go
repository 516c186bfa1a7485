package apiserver_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObjectsNeedALiveNamespace(t *testing.T) {
	_, client := startClient(t)
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	if _, err := client.CoreV1().ConfigMaps("nowhere").Create(t.Context(), c, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in no namespace: %v, want NotFound", err)
	}
	for _, name := range []string{"default", "kube-system"} {
		if err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deleting %s: %v, want Forbidden", name, err)
		}
	}
}

func TestDeletingANamespaceEmptiesItAndRefusesNewObjectsMeanwhile(t *testing.T) {
	_, client := startClient(t)
	ns := must(client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}))(t)
	if ns.Labels[corev1.LabelMetadataName] != "n" || len(ns.Spec.Finalizers) != 1 || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("labels %v, finalizers %v, phase %s", ns.Labels, ns.Spec.Finalizers, ns.Status.Phase)
	}
	d := deployment("web", 1)
	d.Namespace = "n"
	must(client.AppsV1().Deployments("n").Create(t.Context(), d, metav1.CreateOptions{}))(t)
	s := service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.30"})
	s.Namespace = "n"
	must(client.CoreV1().Services("n").Create(t.Context(), s, metav1.CreateOptions{}))(t)
	p := pod("p")
	p.Namespace = "n"
	p = bound(t, client.CoreV1().Pods("n"), p, "node-1")

	if err := client.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The pod has a node and a grace period, so the namespace waits for it.
	eventually(t, func(ctx context.Context) error {
		p, err := client.CoreV1().Pods("n").Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.DeletionTimestamp == nil {
			return fmt.Errorf("the pod is not terminating")
		}
		return nil
	})
	if ns = must(client.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{}))(t); ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("phase %s, want Terminating", ns.Status.Phase)
	}
	_, err := client.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a late create: %v, want Forbidden because the namespace terminates", err)
	}
	if err := client.CoreV1().Pods("n").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if _, err := client.CoreV1().Namespaces().Get(ctx, "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there: %v", err)
		}
		return nil
	})
	for kind, list := range map[string]func() (int, error){
		"deployments": func() (int, error) {
			l, err := client.AppsV1().Deployments("n").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
		"services": func() (int, error) {
			l, err := client.CoreV1().Services("n").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
	} {
		if n := must(list())(t); n != 0 {
			t.Errorf("%d %s are left", n, kind)
		}
	}
	// The Service's address is free again.
	must(client.CoreV1().Services("default").Create(t.Context(), service("heir", corev1.ServiceSpec{ClusterIP: "10.96.0.30"}), metav1.CreateOptions{}))(t)
}
