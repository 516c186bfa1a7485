package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHealthCheckPortsAreAllocatedKeptAndReleased(t *testing.T) {
	_, client := startClient(t)
	services, ctx := client.CoreV1().Services("default"), t.Context()
	local := func(port int32) corev1.ServiceSpec {
		return corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: port}
	}
	s := must(services.Create(ctx, service("s", local(0)), metav1.CreateOptions{}))(t)
	port := s.Spec.HealthCheckNodePort
	if port < 30000 || port > 32767 || port == s.Spec.Ports[0].NodePort {
		t.Fatalf("health check port %d, node port %d", port, s.Spec.Ports[0].NodePort)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want 422", what, err)
		}
	}
	_, err := services.Create(ctx, service("thief", local(port)), metav1.CreateOptions{})
	refused("a held port", err)
	_, err = services.Create(ctx, service("thief", local(80)), metav1.CreateOptions{})
	refused("a port out of range", err)
	_, err = services.Create(ctx, service("thief", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, HealthCheckNodePort: 31000}), metav1.CreateOptions{})
	refused("a port under policy Cluster", err)
	other := s.DeepCopy()
	other.Spec.HealthCheckNodePort = 31999
	_, err = services.Update(ctx, other, metav1.UpdateOptions{})
	refused("another port", err)
	// A manifest without the port keeps it.
	s.Spec.HealthCheckNodePort = 0
	if s = must(services.Update(ctx, s, metav1.UpdateOptions{}))(t); s.Spec.HealthCheckNodePort != port {
		t.Errorf("the port became %d, want %d", s.Spec.HealthCheckNodePort, port)
	}
	// Under policy Cluster it goes and is free.
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	if s = must(services.Update(ctx, s, metav1.UpdateOptions{}))(t); s.Spec.HealthCheckNodePort != 0 {
		t.Errorf("port %d is left under policy Cluster", s.Spec.HealthCheckNodePort)
	}
	must(services.Create(ctx, service("heir", local(port)), metav1.CreateOptions{}))(t)
}

func TestSourceRangesAreOfLoadBalancersAndPrefixes(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	for name, spec := range map[string]corev1.ServiceSpec{
		"cluster-ip": {LoadBalancerSourceRanges: []string{"10.0.0.0/8"}},
		"no-prefix":  {Type: corev1.ServiceTypeLoadBalancer, LoadBalancerSourceRanges: []string{"10.0.0.1"}},
	} {
		if _, err := services.Create(t.Context(), service(name, spec), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want 422", name, err)
		}
	}
	must(services.Create(t.Context(), service("good", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerSourceRanges: []string{" 10.0.0.0/8 "}}), metav1.CreateOptions{}))(t)
}
