package reconcile

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"
)

// mirrorKey is what one mirrored slice is about: a subset gives one slice for
// each family it has addresses in.
type mirrorKey struct {
	family discoveryv1.AddressType
	ports  endpointsliceutil.PortMapKey
}

// mirrorSlice is the wanted content of one slice.
type mirrorSlice struct {
	ports     []discoveryv1.EndpointPort
	endpoints endpointsliceutil.EndpointSet
}

// mirrorSkipped counts the addresses that are not mirrored.
type mirrorSkipped struct{ invalid, all int }

// tell records what was left out as events about the Endpoints, in the real
// controller's words.
func (s mirrorSkipped) tell(to record.EventRecorder, e *corev1.Endpoints, limit int32) { //nolint:staticcheck // what is mirrored
	if s.invalid > 0 {
		to.Eventf(e, corev1.EventTypeWarning, "InvalidIPAddress",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", s.invalid)
	}
	if s.all > s.invalid {
		to.Eventf(e, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", limit, s.all)
	}
}

// mirrorOf says what the slices of Endpoints should hold: of each subset, once
// subsets with equal addresses are joined, at most limit addresses, the ready
// ones first.
func mirrorOf(e *corev1.Endpoints, limit int) (map[mirrorKey]*mirrorSlice, mirrorSkipped) { //nolint:staticcheck // what is mirrored
	out := map[mirrorKey]*mirrorSlice{}
	var skipped mirrorSkipped
	for _, subset := range repack(e.Subsets) {
		ports := slicePortsOf(subset.Ports)
		portKey := endpointsliceutil.NewPortMapKey(ports)
		taken := 0
		take := func(list []corev1.EndpointAddress, ready bool) { //nolint:staticcheck // what is mirrored
			for i := range list {
				if taken >= limit {
					skipped.all += len(list) - i
					return
				}
				family, endpoint, ok := mirrorAddress(&list[i], ready)
				if !ok {
					skipped.invalid++
					skipped.all++
					continue
				}
				taken++
				k := mirrorKey{family, portKey}
				if out[k] == nil {
					out[k] = &mirrorSlice{ports: ports, endpoints: endpointsliceutil.EndpointSet{}}
				}
				out[k].endpoints.Insert(endpoint)
			}
		}
		take(subset.Addresses, true)
		take(subset.NotReadyAddresses, false)
	}
	return out, skipped
}

// mirrorAddress converts an address. Only readiness is told of it: what has no
// pod neither serves nor terminates.
func mirrorAddress(a *corev1.EndpointAddress, ready bool) (discoveryv1.AddressType, *discoveryv1.Endpoint, bool) { //nolint:staticcheck // what is mirrored
	ip := utilnet.ParseIPSloppy(a.IP)
	if ip == nil {
		return "", nil, false
	}
	out := &discoveryv1.Endpoint{
		Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: a.TargetRef, NodeName: a.NodeName,
	}
	if a.Hostname != "" {
		out.Hostname = &a.Hostname
	}
	if utilnet.IsIPv6(ip) {
		return discoveryv1.AddressTypeIPv6, out, true
	}
	return discoveryv1.AddressTypeIPv4, out, true
}

func slicePortsOf(in []corev1.EndpointPort) []discoveryv1.EndpointPort { //nolint:staticcheck // what is mirrored
	out := make([]discoveryv1.EndpointPort, 0, len(in))
	for _, p := range in {
		out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
	}
	return out
}

// mirrorPlan is what has to be written, and which slices are right already.
type mirrorPlan struct {
	keep, create, update, remove []*discoveryv1.EndpointSlice
}

// planMirror compares what should be with what there is. One slice stays for
// each key; a slice that no key needs is used again for a key that has none,
// in the same family, before one is created.
func planMirror(e *corev1.Endpoints, wanted map[mirrorKey]*mirrorSlice, existing []*discoveryv1.EndpointSlice) mirrorPlan { //nolint:staticcheck // what is mirrored
	var plan mirrorPlan
	free := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	at := map[mirrorKey]*discoveryv1.EndpointSlice{}
	existing = slices.SortedFunc(slices.Values(existing), func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range existing {
		k := mirrorKey{s.AddressType, endpointsliceutil.NewPortMapKey(s.Ports)}
		if wanted[k] == nil || at[k] != nil {
			free[s.AddressType] = append(free[s.AddressType], s)
			continue
		}
		at[k] = s
	}
	keys := slices.SortedFunc(maps.Keys(wanted), func(a, b mirrorKey) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.ports, b.ports))
	})
	for _, k := range keys {
		is, want := at[k], wanted[k]
		if is != nil && upToDate(e, is, want.endpoints) {
			plan.keep = append(plan.keep, is)
			continue
		}
		next := newMirrorSlice(e, k.family, want)
		if f := free[k.family]; is == nil && len(f) > 0 {
			is, free[k.family] = f[0], f[1:]
		}
		if is == nil {
			plan.create = append(plan.create, next)
			continue
		}
		next.Name, next.GenerateName = is.Name, ""
		plan.update = append(plan.update, next)
	}
	for _, family := range slices.Sorted(maps.Keys(free)) {
		plan.remove = append(plan.remove, free[family]...)
	}
	return plan
}

// upToDate reports that a slice mirrors these Endpoints and no earlier ones of
// the same name.
func upToDate(e *corev1.Endpoints, s *discoveryv1.EndpointSlice, want endpointsliceutil.EndpointSet) bool { //nolint:staticcheck // what is mirrored
	if len(s.Endpoints) != want.Len() {
		return false
	}
	for i := range s.Endpoints {
		got := want.Get(&s.Endpoints[i])
		if got == nil || !endpointsliceutil.EndpointsEqualBeyondHash(got, &s.Endpoints[i]) {
			return false
		}
	}
	for _, ref := range s.OwnerReferences {
		if ref.Kind == "Endpoints" && ref.Name == e.Name && ref.UID != e.UID {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(s.Labels, mirrorLabels(e)) && apiequality.Semantic.DeepEqual(s.Annotations, mirrorAnnotations(e))
}

// newMirrorSlice makes a slice. The Endpoints own it, and its labels and
// annotations are theirs.
func newMirrorSlice(e *corev1.Endpoints, family discoveryv1.AddressType, want *mirrorSlice) *discoveryv1.EndpointSlice { //nolint:staticcheck // what is mirrored
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, GenerateName: e.Name + "-",
			Labels: mirrorLabels(e), Annotations: mirrorAnnotations(e),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, corev1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: family, Ports: want.ports,
	}
	for _, endpoint := range want.endpoints.UnsortedList() {
		out.Endpoints = append(out.Endpoints, *endpoint)
	}
	slices.SortFunc(out.Endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
	return out
}

func mirrorLabels(e *corev1.Endpoints) map[string]string { //nolint:staticcheck // what is mirrored
	out := map[string]string{}
	maps.Copy(out, e.Labels)
	out[discoveryv1.LabelServiceName], out[discoveryv1.LabelManagedBy] = e.Name, mirrorManagedBy
	return out
}

// mirrorAnnotations leaves out what would be wrong of the slice: when it was
// triggered, and what kubectl applied last.
func mirrorAnnotations(e *corev1.Endpoints) map[string]string { //nolint:staticcheck // what is mirrored
	out := map[string]string{}
	maps.Copy(out, e.Annotations)
	delete(out, corev1.EndpointsLastChangeTriggerTime)
	delete(out, corev1.LastAppliedConfigAnnotation)
	return out
}
