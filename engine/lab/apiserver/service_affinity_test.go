package apiserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatAServiceSaysOfClientsAndAddressesIsChecked(t *testing.T) {
	seconds := func(n int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &n}}
		}
	}
	external := func(ip string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.ExternalIPs = []string{ip} }
	}
	sources := func(cidr string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{cidr}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Service)
		wrong  string // the field that is refused
	}{
		{"a second", seconds(1), ""},
		{"a day", seconds(86400), ""},
		{"no second", seconds(0), "timeoutSeconds"},
		{"less than none", seconds(-5), "timeoutSeconds"},
		{"more than a day", seconds(86401), "timeoutSeconds"},
		{"an address", external("192.0.2.1"), ""},
		{"no address", external("nonsense"), "externalIPs[0]"},
		{"leading zeros", external("192.0.2.010"), "externalIPs[0]"},
		{"the node itself", external("127.0.0.1"), "externalIPs[0]"},
		{"a range", sources("10.0.0.0/8"), ""},
		{"a range between spaces", sources(" 10.0.0.0/8 "), ""},
		{"an address in a range", sources("10.0.0.1/8"), "loadBalancerSourceRanges[0]"},
		{"a range with leading zeros", sources("010.0.0.0/8"), "loadBalancerSourceRanges[0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			svc := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			tc.change(svc)
			defaultService(svc)
			errs := validateService(svc).ToAggregate()
			switch {
			case tc.wrong == "" && errs != nil:
				t.Errorf("refused: %v", errs)
			case tc.wrong != "" && (errs == nil || !strings.Contains(errs.Error(), tc.wrong)):
				t.Errorf("%v, want %s refused", errs, tc.wrong)
			}
		})
	}
}
