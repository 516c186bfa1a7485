package reconcile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxAddresses is how many addresses an Endpoints object may hold
// (pkg/controller/endpoint, maxCapacity).
const maxAddresses = 1000

// addressID tells addresses apart: pods of the host network share theirs.
type addressID struct {
	ip  string
	uid types.UID
}

func idOf(a *corev1.EndpointAddress) addressID { //nolint:staticcheck // the legacy controller
	id := addressID{ip: a.IP}
	if a.TargetRef != nil {
		id.uid = a.TargetRef.UID
	}
	return id
}

// portID is an EndpointPort that can be compared.
type portID struct {
	name, appProtocol string
	hasAppProtocol    bool
	protocol          corev1.Protocol
	port              int32
}

func portIDOf(p corev1.EndpointPort) portID { //nolint:staticcheck // the legacy controller
	id := portID{name: p.Name, protocol: p.Protocol, port: p.Port}
	if p.AppProtocol != nil {
		id.appProtocol, id.hasAppProtocol = *p.AppProtocol, true
	}
	return id
}

// noPort stands for the port of a subset without ports.
var noPort = portID{port: -1}

// repack gives subsets their one canonical form (pkg/api/v1/endpoints,
// RepackSubsets): ports that have the same addresses, equally ready, share a
// subset. An address that is both ready and not ready for a port is not ready.
func repack(in []corev1.EndpointSubset) []corev1.EndpointSubset { //nolint:staticcheck // the legacy controller
	addresses := map[addressID]corev1.EndpointAddress{}
	ports := map[portID]corev1.EndpointPort{}
	ready := map[portID]map[addressID]bool{}
	for i := range in {
		s := &in[i]
		ids := []portID{noPort}
		if len(s.Ports) > 0 {
			ids = ids[:0]
			for _, p := range s.Ports {
				id := portIDOf(p)
				ports[id] = p
				ids = append(ids, id)
			}
		}
		add := func(list []corev1.EndpointAddress, isReady bool) {
			for j := range list {
				a := idOf(&list[j])
				if _, ok := addresses[a]; !ok {
					addresses[a] = list[j]
				}
				for _, p := range ids {
					if ready[p] == nil {
						ready[p] = map[addressID]bool{}
					}
					if was, ok := ready[p][a]; !ok || was {
						ready[p][a] = isReady
					}
				}
			}
		}
		add(s.Addresses, true)
		add(s.NotReadyAddresses, false)
	}
	bySignature := map[string]*corev1.EndpointSubset{}
	for p, set := range ready {
		signature := signatureOf(set)
		s := bySignature[signature]
		if s == nil {
			s = &corev1.EndpointSubset{}
			for a, isReady := range set {
				if isReady {
					s.Addresses = append(s.Addresses, addresses[a])
				} else {
					s.NotReadyAddresses = append(s.NotReadyAddresses, addresses[a])
				}
			}
			bySignature[signature] = s
		}
		if p != noPort {
			s.Ports = append(s.Ports, ports[p])
		}
	}
	out := make([]corev1.EndpointSubset, 0, len(bySignature))
	for _, s := range bySignature {
		slices.SortFunc(s.Addresses, compareAddresses)
		slices.SortFunc(s.NotReadyAddresses, compareAddresses)
		slices.SortFunc(s.Ports, comparePorts)
		out = append(out, *s)
	}
	slices.SortFunc(out, compareSubsets)
	return out
}

// signatureOf is equal for equal sets only: neither an address nor a UID holds
// a space or a line break.
func signatureOf(set map[addressID]bool) string {
	lines := make([]string, 0, len(set))
	for a, ready := range set {
		lines = append(lines, fmt.Sprintf("%s %s %t", a.ip, a.uid, ready))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func compareAddresses(a, b corev1.EndpointAddress) int { //nolint:staticcheck // the legacy controller
	x, y := idOf(&a), idOf(&b)
	return cmp.Or(cmp.Compare(x.ip, y.ip), cmp.Compare(x.uid, y.uid))
}

func comparePorts(a, b corev1.EndpointPort) int { //nolint:staticcheck // the legacy controller
	x, y := portIDOf(a), portIDOf(b)
	return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.protocol, y.protocol), cmp.Compare(x.port, y.port), cmp.Compare(x.appProtocol, y.appProtocol))
}

func compareSubsets(a, b corev1.EndpointSubset) int { //nolint:staticcheck // the legacy controller
	return cmp.Or(
		slices.CompareFunc(a.Ports, b.Ports, comparePorts),
		slices.CompareFunc(a.Addresses, b.Addresses, compareAddresses),
		slices.CompareFunc(a.NotReadyAddresses, b.NotReadyAddresses, compareAddresses))
}

// truncate cuts subsets to maxAddresses and reports whether it had to. Ready
// addresses stay before others; what is cut is spread over the subsets in
// proportion, rounded up (pkg/controller/endpoint, truncateEndpoints).
func truncate(subsets []corev1.EndpointSubset) bool { //nolint:staticcheck // the legacy controller
	ready, notReady := 0, 0
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	if ready+notReady <= maxAddresses {
		return false
	}
	total, room := notReady, maxAddresses-ready
	if ready > maxAddresses {
		total, room = ready, maxAddresses
	}
	left := room
	for i := range subsets {
		list := &subsets[i].NotReadyAddresses
		if ready > maxAddresses {
			subsets[i].NotReadyAddresses = nil
			list = &subsets[i].Addresses
		}
		share := int(math.Ceil(float64(len(*list)) / float64(total) * float64(room)))
		keep := min(share, left, len(*list))
		*list = (*list)[:keep]
		left -= keep
	}
	return true
}
