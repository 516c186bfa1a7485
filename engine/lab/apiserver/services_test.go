package apiserver_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

func TestServicesGetAddressesThatNobodyElseHas(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	cidr := netip.MustParsePrefix(apiserver.ServiceCIDR)
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		s := must(services.Create(t.Context(), service(name, corev1.ServiceSpec{}), metav1.CreateOptions{}))(t)
		ip := must(netip.ParseAddr(s.Spec.ClusterIP))(t)
		if !cidr.Contains(ip) || seen[s.Spec.ClusterIP] {
			t.Errorf("%s got %s", name, ip)
		}
		seen[s.Spec.ClusterIP] = true
		if len(s.Spec.ClusterIPs) != 1 || s.Spec.ClusterIPs[0] != s.Spec.ClusterIP || s.Spec.IPFamilies[0] != corev1.IPv4Protocol {
			t.Errorf("%s: clusterIPs %v families %v", name, s.Spec.ClusterIPs, s.Spec.IPFamilies)
		}
	}
}

func TestAnExplicitAddressIsHonouredRefusedWhenTakenAndFreeAgainAfterDelete(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	const ip = "10.96.0.10"
	first := must(services.Create(t.Context(), service("dns", corev1.ServiceSpec{ClusterIP: ip}), metav1.CreateOptions{}))(t)
	if first.Spec.ClusterIP != ip {
		t.Fatalf("got %s, want %s", first.Spec.ClusterIP, ip)
	}
	_, err := services.Create(t.Context(), service("thief", corev1.ServiceSpec{ClusterIP: ip}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "already allocated") {
		t.Errorf("taking a held address: %v", err)
	}
	if err := services.Delete(t.Context(), "dns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must(services.Create(t.Context(), service("heir", corev1.ServiceSpec{ClusterIP: ip}), metav1.CreateOptions{}))(t)
	for _, bad := range []string{"192.0.2.1", "10.96.0.0", "fd00::1", "web"} {
		_, err := services.Create(t.Context(), service("bad", corev1.ServiceSpec{ClusterIP: bad}), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("address %s: %v, want 422", bad, err)
		}
	}
}

func TestAFailedOrDryCreateHoldsNoAddress(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	const ip = "10.96.0.20"
	wrong := service("s", corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 0}}})
	if _, err := services.Create(t.Context(), wrong, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("port 0: %v, want 422", err)
	}
	right := service("s", corev1.ServiceSpec{ClusterIP: ip})
	must(services.Create(t.Context(), right, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))(t)
	must(services.Create(t.Context(), right, metav1.CreateOptions{}))(t)
	// A second one with the same name fails and must not free the first's.
	if _, err := services.Create(t.Context(), service("s", corev1.ServiceSpec{}), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("same name: %v", err)
	}
	if _, err := services.Create(t.Context(), service("thief", corev1.ServiceSpec{ClusterIP: ip}), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("the address was given away: %v", err)
	}
}

func TestAnUpdateWithoutAddressKeepsItAndAnotherIsRefused(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	s := must(services.Create(t.Context(), service("s", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}), metav1.CreateOptions{}))(t)
	again := service("s", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "x"}})
	updated := must(services.Update(t.Context(), again, metav1.UpdateOptions{}))(t)
	if updated.Spec.ClusterIP != s.Spec.ClusterIP || updated.Spec.Ports[0].NodePort != s.Spec.Ports[0].NodePort {
		t.Errorf("got %s:%d, want %s:%d", updated.Spec.ClusterIP, updated.Spec.Ports[0].NodePort, s.Spec.ClusterIP, s.Spec.Ports[0].NodePort)
	}
	patch := []byte(`{"spec":{"clusterIP":"10.96.0.99","clusterIPs":["10.96.0.99"]}}`)
	if _, err := services.Patch(t.Context(), "s", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("changing the address: %v, want 422", err)
	}
	// The refused change took nothing.
	must(services.Create(t.Context(), service("other", corev1.ServiceSpec{ClusterIP: "10.96.0.99"}), metav1.CreateOptions{}))(t)
}

func TestHeadlessAndExternalNameServicesGetNoAddress(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	headless := must(services.Create(t.Context(), service("headless", corev1.ServiceSpec{ClusterIP: "None"}), metav1.CreateOptions{}))(t)
	if headless.Spec.ClusterIP != "None" || len(headless.Spec.ClusterIPs) != 1 {
		t.Errorf("headless: %s %v", headless.Spec.ClusterIP, headless.Spec.ClusterIPs)
	}
	alias := must(services.Create(t.Context(), service("alias", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}), metav1.CreateOptions{}))(t)
	if alias.Spec.ClusterIP != "" || len(alias.Spec.ClusterIPs) != 0 {
		t.Errorf("external name: %q %v", alias.Spec.ClusterIP, alias.Spec.ClusterIPs)
	}
}

func TestNodePortsAreAllocatedKeptAndReleased(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	two := []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81}}
	s := must(services.Create(t.Context(), service("s", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: two}), metav1.CreateOptions{}))(t)
	a, b := s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort
	for _, p := range []int32{a, b} {
		if p < 30000 || p > 32767 || a == b {
			t.Errorf("node ports %d, %d", a, b)
		}
	}
	taken := []corev1.ServicePort{{Port: 80, NodePort: a}}
	if _, err := services.Create(t.Context(), service("thief", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: taken}), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a held node port: %v, want 422", err)
	}
	outside := []corev1.ServicePort{{Port: 80, NodePort: 80}}
	if _, err := services.Create(t.Context(), service("thief", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: outside}), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a node port out of range: %v, want 422", err)
	}
	// Back to ClusterIP: the node ports go and are free.
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s = must(services.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	if s.Spec.Ports[0].NodePort != 0 || s.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("after the change: node port %d, external policy %q", s.Spec.Ports[0].NodePort, s.Spec.ExternalTrafficPolicy)
	}
	must(services.Create(t.Context(), service("heir", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: taken}), metav1.CreateOptions{}))(t)
}

func TestServiceDefaultsAreKubernetes(t *testing.T) {
	_, client := startClient(t)
	s := must(client.CoreV1().Services("default").Create(t.Context(), service("s", corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, SessionAffinity: corev1.ServiceAffinityClientIP,
	}), metav1.CreateOptions{}))(t)
	p := s.Spec.Ports[0]
	if p.Protocol != corev1.ProtocolTCP || p.TargetPort != intstr.FromInt32(80) || p.NodePort == 0 {
		t.Errorf("port %+v", p)
	}
	if *s.Spec.InternalTrafficPolicy != "Cluster" || s.Spec.ExternalTrafficPolicy != "Cluster" ||
		*s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds != 10800 || !*s.Spec.AllocateLoadBalancerNodePorts {
		raw := must(json.Marshal(s.Spec))(t)
		t.Errorf("spec %s", raw)
	}
}

func TestBadServicesAreRefused(t *testing.T) {
	_, client := startClient(t)
	for name, spec := range map[string]corev1.ServiceSpec{
		"no-ports":       {Ports: []corev1.ServicePort{}},
		"unnamed-ports":  {Ports: []corev1.ServicePort{{Port: 80}, {Port: 81}}},
		"same-port":      {Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 80}}},
		"bad-protocol":   {Ports: []corev1.ServicePort{{Port: 80, Protocol: "tcp"}}},
		"bad-type":       {Type: "Cluster"},
		"local-external": {ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal},
		"no-target":      {Type: corev1.ServiceTypeExternalName},
		"Upper":          {},
		"1st":            {},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.CoreV1().Services("default").Create(t.Context(), service(name, spec), metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("%v, want 422", err)
			}
		})
	}
}
