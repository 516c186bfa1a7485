package rulesync_test

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// kubeProxyFamilyChanges are made after kubeProxyChanges, in the same way.
var kubeProxyFamilyChanges = []kubeProxyChange{
	{"an IPv6 Service without endpoints", func(a *proxyAPI) { a.put(sixService()) }},
	{"one endpoint of IPv6", func(a *proxyAPI) { a.put(sliceOf("six", "six-6", "fd00:10:244:1::3")) }},
	{"a slice of the family that the Service lacks", func(a *proxyAPI) { a.put(sliceOf("six", "six-4", "10.244.1.3")) }},
	{"several endpoints of IPv6", func(a *proxyAPI) {
		a.put(sliceOf("six", "six-6", "fd00:10:244:1::3", "fd00:10:244:2::4@node-2", "fd00:10:244:1::5"))
	}},
	{"IPv6 under session affinity", func(a *proxyAPI) { a.put(sixService(affinity)) }},
	{"an IPv6 endpoint removed under session affinity", func(a *proxyAPI) {
		a.put(sliceOf("six", "six-6", "fd00:10:244:1::3", "fd00:10:244:2::4@node-2"))
	}},
	{"an IPv6 NodePort, session affinity off", func(a *proxyAPI) { a.put(sixService(nodePortOf(30086))) }},
	{"IPv6 under both policies Local", func(a *proxyAPI) { a.put(sixService(nodePortOf(30086), externalLocal, internalLocal)) }},
	{"IPv6 under both policies Local, nothing here", func(a *proxyAPI) {
		a.put(sliceOf("six", "six-6", "fd00:10:244:2::4@node-2"))
	}},
	{"the IPv6 Service deleted", func(a *proxyAPI) { a.deleteService("six") }},

	{"a dual-stack Service without endpoints", func(a *proxyAPI) { a.put(bothService()) }},
	{"endpoints of IPv4 alone", func(a *proxyAPI) { a.put(sliceOf("both", "both-4", "10.244.1.3", "10.244.2.4@node-2")) }},
	{"endpoints of both families", func(a *proxyAPI) {
		a.put(sliceOf("both", "both-6", "fd00:10:244:1::3", "fd00:10:244:2::4@node-2"))
	}},
	{"another endpoint in IPv6 alone", func(a *proxyAPI) {
		a.put(sliceOf("both", "both-6", "fd00:10:244:1::3", "fd00:10:244:2::4@node-2", "fd00:10:244:2::5@node-2"))
	}},
	{"each family falls back to what serves for itself", func(a *proxyAPI) {
		a.put(sliceOf("both", "both-4", "10.244.1.3 terminating serving", "10.244.2.4@node-2"))
		a.put(sliceOf("both", "both-6", "fd00:10:244:1::3 terminating serving", "fd00:10:244:2::4@node-2 unready"))
	}},
	{"external addresses of both families", func(a *proxyAPI) {
		a.put(bothService(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.7", "2001:db8::7"} }))
	}},
	{"a dual-stack NodePort", func(a *proxyAPI) { a.put(bothService(nodePortOf(30087))) }},
	{"a dual-stack NodePort, Local in one family only", func(a *proxyAPI) {
		a.put(bothService(nodePortOf(30087), externalLocal))
		a.put(sliceOf("both", "both-4", "10.244.2.4@node-2"))
		a.put(sliceOf("both", "both-6", "fd00:10:244:1::3"))
	}},
	{"hints of one family", func(a *proxyAPI) {
		a.put(bothService())
		s := sliceOf("both", "both-4", "10.244.1.3", "10.244.2.4@node-2")
		s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: proxyZone}}}
		s.Endpoints[1].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-b"}}}
		a.put(s)
		a.put(sliceOf("both", "both-6", "fd00:10:244:1::3", "fd00:10:244:2::4@node-2"))
	}},
	{"back to one family", func(a *proxyAPI) {
		a.put(bothService(func(s *corev1.Service) {
			s.Spec.ClusterIPs, s.Spec.IPFamilyPolicy = s.Spec.ClusterIPs[:1], new(corev1.IPFamilyPolicySingleStack)
		}))
	}},
	{"two families again", func(a *proxyAPI) { a.put(bothService()) }},
	{"the dual-stack Service deleted", func(a *proxyAPI) { a.deleteService("both") }},
}

func sixService(opts ...func(*corev1.Service)) *corev1.Service {
	return webService(append([]func(*corev1.Service){func(s *corev1.Service) {
		s.Name, s.Spec.ClusterIP = "six", "fd00:10:96::80"
	}}, opts...)...)
}

func bothService(opts ...func(*corev1.Service)) *corev1.Service {
	return webService(append([]func(*corev1.Service){func(s *corev1.Service) {
		s.Name, s.Spec.ClusterIP, s.Spec.ClusterIPs = "both", "10.96.0.81", []string{"10.96.0.81", "fd00:10:96::81"}
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}}, opts...)...)
}

func nodePortOf(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }
}

func sliceOf(service, name string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := webSlice(name, endpoints...)
	s.Labels[discoveryv1.LabelServiceName] = service
	return s
}
