package apiserver_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

const (
	single  = corev1.IPFamilyPolicySingleStack
	prefer  = corev1.IPFamilyPolicyPreferDualStack
	require = corev1.IPFamilyPolicyRequireDualStack
	v4      = corev1.IPv4Protocol
	v6      = corev1.IPv6Protocol
)

func clientWith(t *testing.T, o apiserver.Options) (*apiserver.Server, kubernetes.Interface) {
	t.Helper()
	s := start(t, o)
	return s, clientOf(t, s)
}

func families(f ...corev1.IPFamily) []corev1.IPFamily { return f }

// shown is what a Service got: "SingleStack IPv4 4", the last being the
// families of its addresses.
func shown(s *corev1.Service) string {
	policy, ips := "-", ""
	if s.Spec.IPFamilyPolicy != nil {
		policy = string(*s.Spec.IPFamilyPolicy)
	}
	for _, ip := range s.Spec.ClusterIPs {
		switch a, err := netip.ParseAddr(ip); {
		case err != nil:
			ips += ip
		case netip.MustParsePrefix(apiserver.ServiceCIDR).Contains(a):
			ips += "4"
		case netip.MustParsePrefix(apiserver.ServiceCIDRv6).Contains(a):
			ips += "6"
		}
	}
	if len(s.Spec.ClusterIPs) > 0 && s.Spec.ClusterIP != s.Spec.ClusterIPs[0] || len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		ips += " but clusterIP " + s.Spec.ClusterIP
	}
	var names []string
	for _, f := range s.Spec.IPFamilies {
		names = append(names, string(f))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", policy, strings.Join(names, ","), ips))
}

func TestFamiliesAreFilledInAsByTheRealServer(t *testing.T) {
	_, client := startClient(t)
	_, alone := clientWith(t, apiserver.Options{NoIPv6: "the kernel has no IPv6"})
	spec := func(policy corev1.IPFamilyPolicy, f []corev1.IPFamily, ips ...string) corev1.ServiceSpec {
		s := corev1.ServiceSpec{IPFamilies: f, ClusterIPs: ips, Selector: map[string]string{"app": "web"}}
		if policy != "" {
			s.IPFamilyPolicy = &policy
		}
		if len(ips) > 0 {
			s.ClusterIP = ips[0]
		}
		return s
	}
	selectorless := func(s corev1.ServiceSpec) corev1.ServiceSpec { s.Selector = nil; return s }
	// dual and alone are what clusters of both families and of IPv4 alone
	// answer; what begins with a small letter is part of an error.
	for i, tt := range []struct {
		spec        corev1.ServiceSpec
		dual, alone string
	}{
		{spec("", nil), "SingleStack IPv4 4", "SingleStack IPv4 4"},
		{spec("", families(v6)), "SingleStack IPv6 6", "not configured on this cluster: the kernel has no IPv6"},
		{spec("", families(v4, v6)), "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families", "must be 'RequireDualStack'"},
		{spec(single, families(v4, v6)), "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families", "must be 'RequireDualStack'"},
		{spec(prefer, nil), "PreferDualStack IPv4,IPv6 46", "PreferDualStack IPv4 4"},
		{spec(prefer, families(v6)), "PreferDualStack IPv6,IPv4 64", "not configured on this cluster"},
		{spec(prefer, families(v4)), "PreferDualStack IPv4,IPv6 46", "PreferDualStack IPv4 4"},
		{spec(require, nil), "RequireDualStack IPv4,IPv6 46", "this cluster is not configured for dual-stack services: the kernel has no IPv6"},
		{spec(require, families(v6, v4)), "RequireDualStack IPv6,IPv4 64", "this cluster is not configured"},
		{spec(require, families(v4, v4)), "ipFamilies[1]: Duplicate value", "ipFamilies[1]: Duplicate value"},
		{spec(require, families("IPv5")), "ipFamilies[0]: Unsupported value", "ipFamilies[0]: Unsupported value"},
		{spec("Both", nil), "ipFamilyPolicy: Unsupported value", "ipFamilyPolicy: Unsupported value"},
		{spec("", nil, "fd00:10:96::99"), "SingleStack IPv6 6", "IPv6 is not configured on this cluster"},
		{spec(prefer, nil, "fd00:10:96::98"), "PreferDualStack IPv6,IPv4 64", "IPv6 is not configured on this cluster"},
		{spec(require, nil, "10.96.0.98", "fd00:10:96::97"), "RequireDualStack IPv4,IPv6 46", "IPv6 is not configured on this cluster"},
		{spec("", nil, "10.96.0.97", "fd00:10:96::96"), "when multiple cluster IPs are specified", "when multiple cluster IPs are specified"},
		{spec(require, nil, "10.96.0.97", "10.96.0.96"), "no more than one IP for each IP family", "no more than one IP for each IP family"},
		{spec(require, families(v6), "10.96.0.97"), "expected an IPv6 value as indicated by `ipFamilies[0]`", "expected an IPv6 value"},
		{spec(prefer, nil, "None"), "PreferDualStack IPv4,IPv6 None", "PreferDualStack IPv4 None"},
		{spec("", nil, "None"), "SingleStack IPv4 None", "SingleStack IPv4 None"},
		{spec(require, nil, "None"), "RequireDualStack IPv4,IPv6 None", "this cluster is not configured"},
		// Endpoints made by hand may have any family, on any cluster.
		{selectorless(spec("", nil, "None")), "RequireDualStack IPv4,IPv6 None", "RequireDualStack IPv4,IPv6 None"},
		{selectorless(spec(single, nil, "None")), "SingleStack IPv4 None", "SingleStack IPv4 None"},
		{selectorless(spec("", families(v6), "None")), "RequireDualStack IPv6,IPv4 None", "RequireDualStack IPv6,IPv4 None"},
		{spec(require, nil, "None", "10.96.0.97"), "'None' must be the first and only value", "'None' must be the first and only value"},
		{spec("", nil, "fd00:10:97::1"), "not in the valid range. The range of valid IPs is fd00:10:96::/112", "IPv6 is not configured on this cluster"},
		{spec("", nil, "fd00:10:96::"), "not in the valid range", "IPv6 is not configured"},
		{spec("", nil, "::ffff:10.96.0.1"), "clusterIPs[0]: Invalid value", "clusterIPs[0]: Invalid value"},
		{corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.97"}}, "must be empty when `clusterIP` is not specified", "must be empty when `clusterIP`"},
		{corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.example", IPFamilies: families(v4)}, "ipFamilies: Forbidden", "ipFamilies: Forbidden"},
	} {
		for _, side := range []struct {
			name string
			c    typedcore.ServiceInterface
			want string
		}{{"dual", client.CoreV1().Services("default"), tt.dual}, {"alone", alone.CoreV1().Services("default"), tt.alone}} {
			s, err := side.c.Create(t.Context(), service(fmt.Sprintf("s%d", i), tt.spec), metav1.CreateOptions{})
			switch {
			case apierrors.IsInvalid(err):
				if !strings.Contains(err.Error(), side.want) {
					t.Errorf("%d on %s: %v\nwant %s", i, side.name, err, side.want)
				}
			case err != nil:
				t.Errorf("%d on %s: %v", i, side.name, err)
			case shown(s) != side.want:
				t.Errorf("%d on %s: got %s, want %s", i, side.name, shown(s), side.want)
			}
		}
	}
}

func TestAServiceGainsAndLosesItsSecondFamily(t *testing.T) {
	_, client := startClient(t)
	services := client.CoreV1().Services("default")
	must(services.Create(t.Context(), service("s", corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}), metav1.CreateOptions{}))(t)
	var second, first string
	for i, step := range []struct{ patch, want string }{
		{`{"ipFamilyPolicy":"PreferDualStack"}`, "PreferDualStack IPv4,IPv6 46"},
		{`{"ipFamilyPolicy":"RequireDualStack"}`, "RequireDualStack IPv4,IPv6 46"},
		{`{"ipFamilies":["IPv6","IPv4"]}`, "expected an IPv6 value as indicated by `ipFamilies[0]`"},
		{`{"ipFamilies":["IPv4"]}`, "must be 'SingleStack' to release the secondary IP family"},
		{`{"selector":{"app":"other"}}`, "RequireDualStack IPv4,IPv6 46"},
		{`{"ipFamilyPolicy":"SingleStack"}`, "SingleStack IPv4 4"},
		{`{"ipFamilies":["IPv4","IPv6"]}`, "when multiple IP families are specified"},
		{`{"ipFamilies":["IPv6"]}`, "expected an IPv6 value"},
		{`{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}`, "RequireDualStack IPv4,IPv6 46"},
		{`{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}`, "SingleStack IPv4 4"},
		{`{"ipFamilyPolicy":"PreferDualStack","clusterIPs":["10.96.0.1"]}`, "first value must match `clusterIP`"},
		{`{"type":"ExternalName","externalName":"a.example"}`, "-"},
		{`{"type":"NodePort","ipFamilyPolicy":"RequireDualStack"}`, "RequireDualStack IPv4,IPv6 46"},
		{`{"type":"ClusterIP"}`, "RequireDualStack IPv4,IPv6 46"},
	} {
		s, err := services.Patch(t.Context(), "s", types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, step.patch), metav1.PatchOptions{})
		switch {
		case err != nil && !strings.Contains(err.Error(), step.want):
			t.Errorf("%d %s: %v\nwant %s", i, step.patch, err, step.want)
		case err == nil && shown(s) != step.want:
			t.Errorf("%d %s: got %s, want %s", i, step.patch, shown(s), step.want)
		case i == 0:
			first, second = s.Spec.ClusterIPs[0], s.Spec.ClusterIPs[1]
		case i == 4 && !slices.Equal(s.Spec.ClusterIPs, []string{first, second}):
			t.Errorf("the addresses moved to %v", s.Spec.ClusterIPs)
		case i == 5:
			// What was given back is free for who asks.
			heir := corev1.IPFamilyPolicySingleStack
			must(services.Create(t.Context(), service("heir", corev1.ServiceSpec{ClusterIP: second, IPFamilyPolicy: &heir}), metav1.CreateOptions{}))(t)
		}
	}
	// A manifest without addresses changes nothing, a dry run takes nothing.
	was := must(services.Get(t.Context(), "s", metav1.GetOptions{}))(t)
	again := service("s", corev1.ServiceSpec{Selector: map[string]string{"app": "web"}})
	now := must(services.Update(t.Context(), again, metav1.UpdateOptions{}))(t)
	if !slices.Equal(now.Spec.ClusterIPs, was.Spec.ClusterIPs) || shown(now) != shown(was) {
		t.Errorf("a manifest without addresses made %s %v of %s %v", shown(now), now.Spec.ClusterIPs, shown(was), was.Spec.ClusterIPs)
	}
	for range 2 {
		s := must(services.Create(t.Context(), service("dry", corev1.ServiceSpec{ClusterIP: "fd00:10:96::55"}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))(t)
		if shown(s) != "SingleStack IPv6 6" {
			t.Errorf("a dry run shows %s", shown(s))
		}
	}
}

func TestStoredAddressesOfBothFamiliesAreHeldAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, apiserver.Options{Dir: dir})
	policy := require
	made := must(clientOf(t, s).CoreV1().Services("default").Create(t.Context(), service("s", corev1.ServiceSpec{IPFamilyPolicy: &policy}), metav1.CreateOptions{}))(t)
	stop(t, s)
	_, client := clientWith(t, apiserver.Options{Dir: dir})
	for _, ip := range made.Spec.ClusterIPs {
		_, err := client.CoreV1().Services("default").Create(t.Context(), service("thief", corev1.ServiceSpec{ClusterIP: ip}), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "already allocated") {
			t.Errorf("%s was given away: %v", ip, err)
		}
	}
}

func TestNodesHaveOneRangeOfPodsForEachFamily(t *testing.T) {
	_, client := startClient(t)
	for i, tt := range []struct {
		spec corev1.NodeSpec
		want string // of the ranges, or part of an error
	}{
		{corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/24", "fd00:1::/64"}}, "10.1.0.0/24 [10.1.0.0/24 fd00:1::/64]"},
		{corev1.NodeSpec{PodCIDR: "fd00:1::/64"}, "fd00:1::/64 [fd00:1::/64]"},
		{corev1.NodeSpec{PodCIDR: "10.2.0.0/24", PodCIDRs: []string{"10.1.0.0/24", "fd00:1::/64"}}, "10.2.0.0/24 [10.2.0.0/24]"},
		{corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/24", "10.2.0.0/24"}}, "no more than one CIDR for each IP family"},
		{corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/240"}}, "podCIDRs[0]: Invalid value"},
	} {
		n, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Spec: tt.spec}, metav1.CreateOptions{})
		if err != nil {
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v: %v", tt.spec, err)
			}
		} else if got := fmt.Sprint(n.Spec.PodCIDR, " ", n.Spec.PodCIDRs); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.spec, got, tt.want)
		}
	}
}
