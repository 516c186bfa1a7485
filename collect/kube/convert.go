package kube

import (
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/utils/net"

	"github.com/kconverge/kconverge/collect"
)

// labelServiceProxyName names the proxy that serves a Service instead of
// kube-proxy (k8s.io/kubernetes pkg/proxy/apis, LabelServiceProxyName).
const labelServiceProxyName = "service.kubernetes.io/service-proxy-name"

// overCapacityTruncated is the value of the over-capacity annotation on an
// Endpoints object that holds not all addresses (pkg/controller/endpoint).
const overCapacityTruncated = "truncated"

// leaderAnnotation marks Endpoints that are the lock of a leader election
// (client-go tools/leaderelection/resourcelock).
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// ConvertService returns the facts of a Service. Maps are copied, so the object
// may be written to afterwards; the same holds for every Convert function.
func ConvertService(s *corev1.Service) *collect.Service {
	out := &collect.Service{
		Labels:                   maps.Clone(s.Labels),
		Created:                  s.CreationTimestamp.Time,
		Written:                  written(s),
		Kind:                     string(s.Spec.Type),
		Selector:                 maps.Clone(s.Spec.Selector),
		Headless:                 s.Spec.ClusterIP == corev1.ClusterIPNone,
		PublishNotReadyAddresses: s.Spec.PublishNotReadyAddresses,
		InternalPolicy:           string(collect.PolicyCluster),
		ExternalPolicy:           string(collect.PolicyCluster),
		SessionAffinity:          string(s.Spec.SessionAffinity),
		ProxyName:                s.Labels[labelServiceProxyName],
		ExternalIPs:              parseAddrs(s.Spec.ExternalIPs),
		SourceRanges:             parsePrefixes(s.Spec.LoadBalancerSourceRanges),
		HealthCheckPort:          s.Spec.HealthCheckNodePort,
	}
	if out.Kind == "" {
		out.Kind = string(corev1.ServiceTypeClusterIP)
	}
	if p := s.Spec.InternalTrafficPolicy; p != nil && *p != "" {
		out.InternalPolicy = string(*p)
	}
	if p := s.Spec.ExternalTrafficPolicy; p != "" {
		out.ExternalPolicy = string(p)
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		out.AffinityTimeout = time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
	}
	if s.Spec.TrafficDistribution != nil {
		out.TrafficDistribution = *s.Spec.TrafficDistribution
	}
	for _, p := range s.Spec.Ports {
		sp := collect.ServicePort{
			Name: p.Name, Protocol: protocol(p.Protocol), Port: p.Port, NodePort: p.NodePort,
			Target: p.TargetPort.IntVal, TargetName: p.TargetPort.StrVal,
		}
		if sp.TargetName == "" && sp.Target == 0 {
			sp.Target = p.Port // the API's default for targetPort
		}
		out.Ports = append(out.Ports, sp)
	}
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 && s.Spec.ClusterIP != "" {
		ips = []string{s.Spec.ClusterIP}
	}
	out.ClusterIPs = parseAddrs(ips) // leaves out "None"
	for _, f := range s.Spec.IPFamilies {
		out.Families = append(out.Families, collect.Family(f))
	}
	for _, ing := range s.Status.LoadBalancer.Ingress {
		// With mode Proxy kube-proxy does not catch the address.
		if ing.IP == "" || ing.IPMode != nil && *ing.IPMode != corev1.LoadBalancerIPModeVIP {
			continue
		}
		out.LoadBalancerIPs = append(out.LoadBalancerIPs, parseAddrs([]string{ing.IP})...)
	}
	return out
}

// ConvertEndpointSlice returns the content of a slice; ok is false for slices
// of names (address type FQDN), which lead nowhere. Of an endpoint's addresses
// only the first counts, and ports without a number do not count, as in
// kube-proxy (pkg/proxy/endpointslicecache.go).
func ConvertEndpointSlice(s *discoveryv1.EndpointSlice) (_ *collect.EndpointSlice, ok bool) {
	if s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6 {
		return nil, false
	}
	_, headless := s.Labels[corev1.IsHeadlessService]
	out := &collect.EndpointSlice{
		Service:     s.Labels[discoveryv1.LabelServiceName],
		ManagedBy:   s.Labels[discoveryv1.LabelManagedBy],
		Family:      collect.Family(s.AddressType),
		Headless:    headless,
		TriggerTime: annotationTime(s.Annotations, corev1.EndpointsLastChangeTriggerTime),
		Created:     s.CreationTimestamp.Time,
	}
	if len(s.Endpoints) > 0 { // else see written
		out.Written = written(s)
	}
	for _, p := range s.Ports {
		if p.Port == nil {
			continue
		}
		sp := collect.SlicePort{Protocol: collect.TCP, Port: *p.Port}
		if p.Name != nil {
			sp.Name = *p.Name
		}
		if p.Protocol != nil {
			sp.Protocol = protocol(*p.Protocol)
		}
		out.Ports = append(out.Ports, sp)
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if len(e.Addresses) == 0 {
			continue
		}
		addr, ok := parseAddr(e.Addresses[0])
		if !ok {
			continue
		}
		se := collect.SliceEndpoint{
			Address:     addr,
			Ready:       isTrue(e.Conditions.Ready, true),
			Serving:     isTrue(e.Conditions.Serving, true),
			Terminating: isTrue(e.Conditions.Terminating, false),
			Node:        deref(e.NodeName),
			Zone:        deref(e.Zone),
		}
		if t := e.TargetRef; t != nil && t.Kind == "Pod" {
			se.PodName, se.PodUID = t.Name, string(t.UID)
		}
		if h := e.Hints; h != nil {
			for _, z := range h.ForZones {
				se.HintZones = append(se.HintZones, z.Name)
			}
			for _, n := range h.ForNodes {
				se.HintNodes = append(se.HintNodes, n.Name)
			}
		}
		out.Endpoints = append(out.Endpoints, se)
	}
	return out, true
}

// ConvertEndpoints returns the content of a legacy Endpoints object. An address
// that stands in several subsets gives several entries.
func ConvertEndpoints(e *corev1.Endpoints) *collect.Endpoints { //nolint:staticcheck // the deprecated kind is what is observed
	_, lock := e.Annotations[leaderAnnotation]
	out := &collect.Endpoints{
		NotMirrored: lock || e.Labels[discoveryv1.LabelSkipMirror] == "true",
		Truncated:   e.Annotations[corev1.EndpointsOverCapacity] == overCapacityTruncated,
		TriggerTime: annotationTime(e.Annotations, corev1.EndpointsLastChangeTriggerTime),
		Created:     e.CreationTimestamp.Time,
	}
	if len(e.Subsets) > 0 { // else see written
		out.Written = written(e)
	}
	for i := range e.Subsets {
		s := &e.Subsets[i]
		var ports []collect.SlicePort
		for _, p := range s.Ports {
			ports = append(ports, collect.SlicePort{Name: p.Name, Protocol: protocol(p.Protocol), Port: p.Port})
		}
		add := func(addrs []corev1.EndpointAddress, ready bool) { //nolint:staticcheck // see above
			for _, a := range addrs {
				ip, ok := parseAddr(a.IP)
				if !ok {
					continue
				}
				ea := collect.EndpointsAddress{IP: ip, Ready: ready, Ports: ports}
				if t := a.TargetRef; t != nil && t.Kind == "Pod" {
					ea.PodName, ea.PodUID = t.Name, string(t.UID)
				}
				out.Addresses = append(out.Addresses, ea)
			}
		}
		add(s.Addresses, true)
		add(s.NotReadyAddresses, false)
	}
	return out
}

// ConvertNode returns the facts of a Node.
func ConvertNode(n *corev1.Node) *collect.Node {
	out := &collect.Node{
		Labels:        maps.Clone(n.Labels),
		Zone:          n.Labels[corev1.LabelTopologyZone],
		Unschedulable: n.Spec.Unschedulable,
		Deletion:      timeOf(n.DeletionTimestamp),
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, parseAddrs([]string{a.Address})...)
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			// "Unknown" (the kubelet is silent) counts as not ready.
			out.Ready = &collect.Condition{Status: c.Status == corev1.ConditionTrue, Since: c.LastTransitionTime.Time, Reason: c.Reason}
			if c.Status == corev1.ConditionUnknown { // of others it changes for nothing
				out.Heard = c.LastHeartbeatTime.Time
			}
		}
	}
	return out
}

// ConvertEvent returns a Kubernetes Event. Counts and times come from the
// series where there is one, else from the older fields.
func ConvertEvent(e *corev1.Event) *collect.KubeEvent {
	out := &collect.KubeEvent{
		Regarding: collect.ObjectKey{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name},
		UID:       string(e.InvolvedObject.UID),
		Reason:    e.Reason,
		Message:   e.Message,
		EventType: e.Type,
		Component: e.Source.Component,
		Init:      strings.HasPrefix(e.InvolvedObject.FieldPath, "spec.initContainers{"),
		Count:     e.Count,
		First:     e.FirstTimestamp.Time,
		Last:      e.LastTimestamp.Time,
	}
	if out.Component == "" {
		out.Component = e.ReportingController
	}
	if out.First.IsZero() {
		out.First = e.EventTime.Time
	}
	if e.Series != nil {
		out.Count = e.Series.Count
		out.Last = e.Series.LastObservedTime.Time
	}
	if out.Last.IsZero() {
		out.Last = out.First
	}
	if out.Count == 0 {
		out.Count = 1
	}
	return out
}

// written returns the newest time in the object's managedFields, zero without one.
//
// An update that only takes fields away moves no time there
// (sigs.k8s.io/structured-merge-diff merge.Updater.Update counts what was added
// or modified; k8s.io/apimachinery util/managedfields/internal,
// managedFieldsUpdater.Update). Lists of endpoints are atomic, so that any change
// moves the time but one: the last endpoint leaves, and the list becomes null. Of
// an object without endpoints it is not known when that was.
func written(o metav1.Object) time.Time {
	var t time.Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(t) {
			t = f.Time.Time
		}
	}
	return t
}

// ownerOf returns the controlling owner, nil without one.
func ownerOf(o metav1.Object) *collect.Owner {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return nil
	}
	return &collect.Owner{Kind: ref.Kind, Name: ref.Name, UID: string(ref.UID)}
}

// protocol applies the API's default.
func protocol(p corev1.Protocol) collect.Protocol {
	if p == "" {
		return collect.TCP
	}
	return collect.Protocol(p)
}

// parseAddr reads an address the way Kubernetes does: leading zeros, which old
// objects may have, are decimal, and IPv4-mapped IPv6 is IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap(), true
	}
	a, ok := netip.AddrFromSlice(utilnet.ParseIPSloppy(s))
	return a.Unmap(), ok
}

// parseAddrs leaves out what is no address.
func parseAddrs(in []string) []netip.Addr {
	var out []netip.Addr
	for _, s := range in {
		if a, ok := parseAddr(s); ok {
			out = append(out, a)
		}
	}
	return out
}

// parsePrefixes leaves out what is no prefix, and the spaces around one, which
// the API lets pass (pkg/proxy/serviceport.go trims them too).
func parsePrefixes(in []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range in {
		_, n, err := utilnet.ParseCIDRSloppy(strings.TrimSpace(s))
		if err != nil {
			continue
		}
		bits, _ := n.Mask.Size()
		if a, ok := netip.AddrFromSlice(n.IP); ok {
			out = append(out, netip.PrefixFrom(a, bits))
		}
	}
	return out
}

// parseResourceVersion returns 0 for a version that is no number: then objects
// cannot be ordered by it.
func parseResourceVersion(s string) uint64 {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

func annotationTime(annotations map[string]string, key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, annotations[key])
	if err != nil {
		return time.Time{}
	}
	return t
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func isTrue(b *bool, missing bool) bool {
	if b == nil {
		return missing
	}
	return *b
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
