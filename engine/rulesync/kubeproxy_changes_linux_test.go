package rulesync_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// kubeProxyChange is a change and its name.
type kubeProxyChange struct {
	name string
	do   func(*proxyAPI)
}

// kubeProxyChanges are made one after the other; each builds on what the ones
// before left.
var kubeProxyChanges = []kubeProxyChange{
	{"nothing yet", func(*proxyAPI) {}},
	{"a Service without endpoints", func(a *proxyAPI) { a.put(webService()) }},
	{"an empty slice", func(a *proxyAPI) { a.put(webSlice("web-1", "")) }},
	{"the first endpoint", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.1.3")) }},
	{"a second endpoint", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")) }},
	{"ten endpoints", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2", "10.244.1.5", "10.244.1.6", "10.244.1.7",
			"10.244.1.8", "10.244.1.9", "10.244.1.10", "10.244.2.11@node-2", "10.244.2.12@node-2"))
	}},
	{"endpoints removed, one replaced", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2", "10.244.1.13"))
	}},
	{"one becomes unready", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3 unready", "10.244.2.4@node-2", "10.244.1.13"))
	}},
	{"one is terminating while others are ready", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2 terminating serving", "10.244.1.13"))
	}},
	{"all are terminating, two still serve", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3 terminating serving", "10.244.2.4@node-2 terminating serving", "10.244.1.13 terminating"))
	}},
	{"all are terminating, none serves", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3 terminating", "10.244.2.4@node-2 terminating"))
	}},
	{"an endpoint that is ready while terminating", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3 terminating ready serving", "10.244.2.4@node-2 terminating serving"))
	}},
	{"ready again", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")) }},
	{"a second slice", func(a *proxyAPI) { a.put(webSlice("web-2", "10.244.2.20@node-2", "10.244.2.21@node-2")) }},
	{"an endpoint in two slices at once", func(a *proxyAPI) {
		a.put(webSlice("web-2", "10.244.2.20@node-2", "10.244.2.4@node-2"))
	}},
	{"an address that is terminating in one slice and ready in the other", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2 terminating serving"))
	}},
	{"a second slice with another target port", func(a *proxyAPI) {
		s := webSlice("web-2", "10.244.2.20@node-2", "10.244.1.3")
		s.Ports[0].Port = new(int32(8081))
		a.put(s)
	}},
	{"the second slice deleted", func(a *proxyAPI) { a.deleteSlice("web-2") }},
	{"another target port", func(a *proxyAPI) {
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		s.Ports[0].Port = new(int32(9090))
		a.put(s)
	}},
	{"another Service port", func(a *proxyAPI) {
		s := webService()
		s.Spec.Ports[0].Port = 8000
		a.put(s)
	}},
	{"a slice labelled headless is ignored", func(a *proxyAPI) {
		s := webSlice("web-3", "10.244.1.30")
		s.Labels[corev1.IsHeadlessService] = ""
		a.put(s)
	}},
	{"a slice with a port of another name is ignored", func(a *proxyAPI) {
		a.deleteSlice("web-3")
		s := webSlice("web-4", "10.244.1.31")
		s.Ports[0].Name = new("other")
		a.put(s)
	}},
	{"several named ports of two protocols", func(a *proxyAPI) {
		a.deleteSlice("web-4")
		a.put(namedPorts())
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		s.Ports = []discoveryv1.EndpointPort{endpointPort("http", 8080, corev1.ProtocolTCP), endpointPort("metrics", 9100, corev1.ProtocolTCP), endpointPort("dns", 5353, corev1.ProtocolUDP)}
		a.put(s)
	}},
	{"one of the named ports has no endpoints", func(a *proxyAPI) {
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		s.Ports = []discoveryv1.EndpointPort{endpointPort("http", 8080, corev1.ProtocolTCP), endpointPort("dns", 5353, corev1.ProtocolUDP)}
		a.put(s)
	}},
	{"a named port taken away", func(a *proxyAPI) {
		s := namedPorts()
		s.Spec.Ports = s.Spec.Ports[:1]
		a.put(s)
	}},
	{"the Service deleted while its slices stay", func(a *proxyAPI) { a.deleteService("web") }},
	{"the Service created again with another ClusterIP", func(a *proxyAPI) {
		s := webService()
		s.Spec.ClusterIP = "10.96.0.77"
		a.put(s)
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
	}},
	{"a NodePort", func(a *proxyAPI) { a.put(nodePort()) }},
	{"external policy Local with an endpoint here", func(a *proxyAPI) { a.put(nodePort(externalLocal)) }},
	{"external policy Local, the one here is terminating", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3 terminating serving", "10.244.2.4@node-2"))
	}},
	{"external policy Local without an endpoint here", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.2.4@node-2"))
	}},
	{"external policy Local without any endpoint", func(a *proxyAPI) { a.put(webSlice("web-1", "")) }},
	{"both policies Local", func(a *proxyAPI) {
		a.put(nodePort(externalLocal, internalLocal))
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
	}},
	{"internal policy Local only", func(a *proxyAPI) { a.put(nodePort(internalLocal)) }},
	{"internal policy Local without an endpoint here", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.2.4@node-2"))
	}},
	{"a ClusterIP Service with internal policy Local without an endpoint here", func(a *proxyAPI) {
		a.put(webService(internalLocal, otherClusterIP))
	}},
	{"internal policy Local without any endpoint", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.2.4@node-2 unready")) }},
	{"external IPs under external policy Local", func(a *proxyAPI) {
		a.put(webService(otherClusterIP, externalIP, externalLocal))
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
	}},
	{"the policy back to Cluster", func(a *proxyAPI) { a.put(webService(otherClusterIP)) }},
	{"an external IP", func(a *proxyAPI) { a.put(webService(otherClusterIP, externalIP)) }},
	{"session affinity", func(a *proxyAPI) {
		a.put(webService(otherClusterIP, affinity))
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
	}},
	{"session affinity of ten minutes", func(a *proxyAPI) { a.put(webService(otherClusterIP, affinity, affinityTimeout)) }},
	{"an endpoint removed under session affinity", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.2.4@node-2")) }},
	{"session affinity off", func(a *proxyAPI) { a.put(webService(otherClusterIP)) }},
	{"hints for zones", func(a *proxyAPI) {
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-b"}}}
		s.Endpoints[1].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: proxyZone}}}
		a.put(s)
	}},
	{"hints for zones, of which none is ours", func(a *proxyAPI) {
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		for i := range s.Endpoints {
			s.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-b"}}}
		}
		a.put(s)
	}},
	{"hints for nodes", func(a *proxyAPI) {
		s := webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")
		s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: "node-2"}}}
		s.Endpoints[1].Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: proxyNode}}}
		a.put(s)
	}},
	{"a load balancer's address", func(a *proxyAPI) {
		a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2"))
		a.put(balanced())
		a.balance("web", "192.0.2.9")
	}},
	{"a load balancer under external policy Local", func(a *proxyAPI) { a.put(balanced(externalLocal)) }},
	{"a source range", func(a *proxyAPI) { a.put(balanced(sources("203.0.113.0/24"))) }},
	{"a source range of no whole bytes", func(a *proxyAPI) { a.put(balanced(sources("203.0.112.0/22"))) }},
	{"one source", func(a *proxyAPI) { a.put(balanced(sources("203.0.113.7/32"))) }},
	{"source ranges that overlap and touch", func(a *proxyAPI) {
		a.put(balanced(sources("203.0.113.0/25", "10.1.0.0/16", "203.0.113.128/25", "10.0.0.0/8", "203.0.113.7/32")))
	}},
	{"two source ranges that are one", func(a *proxyAPI) { a.put(balanced(sources("203.0.113.0/24", "203.0.113.0/25"))) }},
	{"source ranges up to the last address", func(a *proxyAPI) { a.put(balanced(sources("128.0.0.0/1", "203.0.113.0/24", "1.2.3.4/32"))) }},
	{"source ranges with the node", func(a *proxyAPI) {
		a.put(balanced(externalLocal, sources("203.0.113.0/24", "0.0.0.0/1", "192.0.0.0/8")))
	}},
	{"source ranges with every address", func(a *proxyAPI) { a.put(balanced(sources("203.0.113.0/24", "0.0.0.0/0"))) }},
	{"source ranges without an endpoint", func(a *proxyAPI) {
		a.put(webSlice("web-1", ""))
		a.put(balanced(sources("203.0.113.0/24")))
	}},
	{"source ranges of two addresses", func(a *proxyAPI) { a.balance("web", "192.0.2.9", "192.0.2.10") }},
	{"an endpoint behind source ranges", func(a *proxyAPI) { a.put(webSlice("web-1", "10.244.1.3", "10.244.2.4@node-2")) }},
	{"source ranges without an address", func(a *proxyAPI) { a.balance("web") }},
	{"left to another proxy", func(a *proxyAPI) {
		s := webService(otherClusterIP)
		s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "another"}
		a.put(s)
	}},
	{"back from the other proxy", func(a *proxyAPI) { a.put(webService(otherClusterIP)) }},
	{"a Service of the same name elsewhere", func(a *proxyAPI) {
		s := webService(func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.78" })
		s.Namespace = "default"
		a.put(s)
	}},
	{"names as long as they may be", func(a *proxyAPI) {
		long := strings.Repeat("n", 63)
		s := namedPorts()
		s.Name, s.Spec.ClusterIP = long, "10.96.0.79"
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		sl := webSlice("long", "10.244.1.103", "10.244.2.104@node-2")
		sl.Labels[discoveryv1.LabelServiceName] = long
		sl.Ports = nil
		for i := range s.Spec.Ports {
			p := &s.Spec.Ports[i]
			p.Name = strings.Repeat(p.Name[:1], 63)
			sl.Ports = append(sl.Ports, endpointPort(p.Name, 50000+int32(i), p.Protocol))
		}
		a.put(s)
		a.put(sl)
	}},
	{"long names gone", func(a *proxyAPI) {
		a.deleteService(strings.Repeat("n", 63))
		a.deleteSlice("long")
	}},
	{"everything deleted", func(a *proxyAPI) {
		a.deleteService("web")
		a.deleteSlice("web-1")
		a.ok(a.client.CoreV1().Services("default").Delete(a.t.Context(), "web", metav1.DeleteOptions{}))
	}},
}

const proxyNamespace = "shop"

func webService(opts ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "web"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10", Ports: []corev1.ServicePort{{
			Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080),
		}}},
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

func otherClusterIP(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.77" }
func externalIP(s *corev1.Service)     { s.Spec.ExternalIPs = []string{"192.0.2.7"} }
func affinity(s *corev1.Service)       { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }
func affinityTimeout(s *corev1.Service) {
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(600))}}
}
func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}
func externalLocal(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func nodePort(opts ...func(*corev1.Service)) *corev1.Service {
	s := webService(otherClusterIP)
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.Ports[0].NodePort = 30080
	for _, o := range opts {
		o(s)
	}
	return s
}

// balanced is a Service with a load balancer.
func balanced(opts ...func(*corev1.Service)) *corev1.Service {
	s := nodePort(opts...)
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	return s
}

func sources(ranges ...string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = ranges }
}

func namedPorts() *corev1.Service {
	s := webService()
	s.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")},
		{Name: "metrics", Port: 9090, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("metrics")},
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
	}
	return s
}

// webSlice makes a slice of the Service web from "ADDRESS[@NODE] [CONDITION…]".
// Without conditions an endpoint is ready; the node is node-1 when not given.
func webSlice(name string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: proxyNamespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{endpointPort("", 8080, corev1.ProtocolTCP)},
	}
	for _, e := range endpoints {
		f := strings.Fields(e)
		if len(f) == 0 {
			continue
		}
		addr, node, ok := strings.Cut(f[0], "@")
		if !ok {
			node = proxyNode
		}
		has := func(c string) *bool {
			for _, x := range f[1:] {
				if x == c {
					return new(true)
				}
			}
			return new(false)
		}
		c := discoveryv1.EndpointConditions{Ready: has("ready"), Serving: has("serving"), Terminating: has("terminating")}
		if len(f) == 1 {
			c = discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}
		}
		if strings.Contains(addr, ":") {
			s.AddressType = discoveryv1.AddressTypeIPv6
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}, NodeName: &node, Conditions: c})
	}
	return s
}

func endpointPort(name string, port int32, protocol corev1.Protocol) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: &protocol}
}

// proxyAPI makes changes; a refused one fails the test.
type proxyAPI struct {
	t      *testing.T
	client kubernetes.Interface
}

func (a *proxyAPI) ok(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// createNode makes the Node object without which kube-proxy does not start, and
// the namespace of the changes.
func (a *proxyAPI) createNode(name string, addrs ...netip.Addr) {
	a.t.Helper()
	ctx := a.t.Context()
	_, err := a.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: proxyNamespace}}, metav1.CreateOptions{})
	a.ok(err)
	n, err := a.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: proxyZone}}}, metav1.CreateOptions{})
	a.ok(err)
	n.Status = corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	for _, addr := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
	}
	_, err = a.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	a.ok(err)
}

// placeNode takes the node to another zone and back: a kube-proxy that runs hears of
// that, while now and then one that starts misses in which zone its node is.
func (a *proxyAPI) placeNode(name string) {
	a.t.Helper()
	for _, zone := range []string{"zone-x", proxyZone} {
		_, err := a.client.CoreV1().Nodes().Patch(a.t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, zone), metav1.PatchOptions{})
		a.ok(err)
	}
}

// put creates the object or replaces the one there is.
func (a *proxyAPI) put(obj any) {
	a.t.Helper()
	ctx := a.t.Context()
	switch o := obj.(type) {
	case *corev1.Service:
		c := a.client.CoreV1().Services(o.Namespace)
		old, err := c.Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = c.Create(ctx, o, metav1.CreateOptions{})
		} else if err == nil {
			o.ResourceVersion = old.ResourceVersion
			_, err = c.Update(ctx, o, metav1.UpdateOptions{})
		}
		a.ok(err)
	case *discoveryv1.EndpointSlice:
		c := a.client.DiscoveryV1().EndpointSlices(o.Namespace)
		old, err := c.Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = c.Create(ctx, o, metav1.CreateOptions{})
		} else if err == nil {
			o.ResourceVersion = old.ResourceVersion
			_, err = c.Update(ctx, o, metav1.UpdateOptions{})
		}
		a.ok(err)
	default:
		a.t.Fatalf("cannot put a %T", obj)
	}
}

// balance is what a load balancer's controller would write about a Service.
func (a *proxyAPI) balance(service string, ips ...string) {
	a.t.Helper()
	c := a.client.CoreV1().Services(proxyNamespace)
	s, err := c.Get(a.t.Context(), service, metav1.GetOptions{})
	a.ok(err)
	s.Status.LoadBalancer.Ingress = nil
	for _, ip := range ips {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	_, err = c.UpdateStatus(a.t.Context(), s, metav1.UpdateOptions{})
	a.ok(err)
}

func (a *proxyAPI) deleteService(name string) {
	a.t.Helper()
	a.ok(a.client.CoreV1().Services(proxyNamespace).Delete(a.t.Context(), name, metav1.DeleteOptions{}))
}

func (a *proxyAPI) deleteSlice(name string) {
	a.t.Helper()
	a.ok(a.client.DiscoveryV1().EndpointSlices(proxyNamespace).Delete(a.t.Context(), name, metav1.DeleteOptions{}))
}
