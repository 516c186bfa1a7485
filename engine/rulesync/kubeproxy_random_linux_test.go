package rulesync_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dice is a Service that roll makes anything. Its first address may not change,
// so there is one for each first family.
type dice struct {
	name     string
	ips      []string
	families []corev1.IPFamily
	// Two Services that share an external address share its rules too, and
	// which of them has it is not defined.
	external, balanced []string
	// Its first node port. Below 30086 the API server gives none away itself.
	ports int32
}

var theDice = []dice{
	{"dice", []string{"10.96.0.90", "fd00:10:96::90"}, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, []string{"192.0.2.20", "2001:db8::20", "192.0.2.21"}, []string{"192.0.2.40", "2001:db8::40", "192.0.2.41"}, 30010},
	{"dice6", []string{"fd00:10:96::91", "10.96.0.91"}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, []string{"2001:db8::30", "192.0.2.30", "2001:db8::31"}, []string{"2001:db8::50", "192.0.2.50", "2001:db8::51"}, 30020},
}

// roll makes Services and their slices anything that they may be, the same for
// the same seed.
func (a *proxyAPI) roll(seed uint64) {
	a.t.Helper()
	r := rand.New(rand.NewPCG(1372, seed))
	for _, d := range theDice {
		if r.IntN(8) == 0 {
			a.gone(a.client.CoreV1().Services(proxyNamespace).Delete(a.t.Context(), d.name, metav1.DeleteOptions{}))
		} else {
			s := rollService(r, d)
			a.put(s)
			var ips []string
			if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
				ips = d.balanced[:r.IntN(4)]
			}
			a.balance(d.name, ips...)
		}
		for _, prefix := range []string{"10.244.%d.%d", "fd00:10:244:%d::%d"} {
			pool := rollEndpoints(r, prefix)
			for i := range 3 {
				name := fmt.Sprintf("%s-%c-%d", d.name, prefix[0], i)
				if r.IntN(3) == 0 {
					a.gone(a.client.DiscoveryV1().EndpointSlices(proxyNamespace).Delete(a.t.Context(), name, metav1.DeleteOptions{}))
				} else {
					a.put(rollSlice(r, d, name, prefix, pool))
				}
			}
		}
	}
}

// gone accepts that there was nothing to delete.
func (a *proxyAPI) gone(err error) {
	a.t.Helper()
	if !apierrors.IsNotFound(err) {
		a.ok(err)
	}
}

func rollService(r *rand.Rand, d dice) *corev1.Service {
	s := webService()
	stacks, policy := 1, corev1.IPFamilyPolicySingleStack
	if r.IntN(2) == 0 {
		stacks, policy = 2, corev1.IPFamilyPolicyRequireDualStack
	}
	s.Name, s.Spec.ClusterIP, s.Spec.Ports = d.name, d.ips[0], nil
	s.Spec.ClusterIPs, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = d.ips[:stacks], d.families[:stacks], &policy
	for i := range 1 + r.IntN(3) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: rollPorts[i], Port: 80 + int32(r.IntN(2)*10+i), Protocol: rollProtocols[r.IntN(len(rollProtocols))],
			TargetPort: intstr.FromInt32(8080),
		})
	}
	if r.IntN(3) == 0 {
		s.Spec.Type = corev1.ServiceTypeNodePort
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = d.ports + int32(i)
		}
	}
	if r.IntN(4) == 0 {
		s.Spec.ExternalIPs = d.external[:1+r.IntN(3)]
	}
	if s.Spec.Type == corev1.ServiceTypeNodePort && r.IntN(2) == 0 {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		for range r.IntN(4) {
			s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, rollRanges[r.IntN(len(rollRanges))])
		}
	}
	if (s.Spec.Type != "" || len(s.Spec.ExternalIPs) > 0) && r.IntN(2) == 0 {
		externalLocal(s)
	}
	if r.IntN(3) == 0 {
		internalLocal(s)
	}
	if r.IntN(4) == 0 {
		affinity(s)
		if r.IntN(2) == 0 {
			affinityTimeout(s)
		}
	}
	return s
}

var (
	rollPorts = []string{"http", "metrics", "other"}
	// rollRanges overlap, touch, are of one address, of every address, of the
	// node, of the other family.
	rollRanges = []string{
		"203.0.113.0/25", "203.0.113.128/25", "203.0.113.0/24", "203.0.113.7/32", "203.0.112.0/22", "192.0.2.0/24",
		"128.0.0.0/1", "255.255.255.255/32", "0.0.0.0/0", "198.18.0.0/15", "10.0.0.0/8", "fd00::/8", "2001:db8:1::/64", "2001:db8:1::7/128", "::/0", "203.0.113.64/26",
	}
	rollProtocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
)

// rollEndpoints makes endpoints, one for each address: when the conditions of
// one address differ between slices, kube-proxy's choice is not defined.
func rollEndpoints(r *rand.Rand, prefix string) []discoveryv1.Endpoint {
	hinted := r.IntN(3) == 0
	calm := r.IntN(3) // 0: none of them is ready
	var out []discoveryv1.Endpoint
	for i := range 12 {
		node := []string{proxyNode, "node-2", "node-3"}[r.IntN(3)]
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf(prefix, 1+i%3, 40+i)}, NodeName: &node}
		switch ready := r.IntN(2) == 0 && calm > 0; {
		case ready:
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}
		default:
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(r.IntN(2) == 0), Terminating: new(r.IntN(2) == 0)}
		}
		if hinted {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: []string{proxyZone, "zone-b"}[r.IntN(2)]}}}
			if r.IntN(3) > 0 {
				e.Hints.ForNodes = []discoveryv1.ForNode{{Name: []string{proxyNode, "node-2"}[r.IntN(2)]}}
			}
		}
		out = append(out, e)
	}
	return out
}

func rollSlice(r *rand.Rand, d dice, name, prefix string, pool []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := webSlice(name)
	s.Labels[discoveryv1.LabelServiceName] = d.name
	if strings.Contains(prefix, ":") {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	s.Ports = nil
	for _, p := range rollPorts {
		if r.IntN(4) > 0 {
			s.Ports = append(s.Ports, endpointPort(p, 8080+int32(r.IntN(3)), rollProtocols[r.IntN(2)*r.IntN(len(rollProtocols))]))
		}
	}
	for _, i := range r.Perm(len(pool))[:r.IntN(6)] {
		s.Endpoints = append(s.Endpoints, pool[i])
	}
	return s
}
