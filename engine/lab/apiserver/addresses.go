package apiserver

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxHints is how many zones, and how many nodes, an endpoint may be meant for
// (pkg/apis/discovery/validation).
const maxHints = 8

// validateEndpointIP refuses addresses that lead nowhere or back to the node:
// traffic sent to them by a node's rules could reach what must not be reached
// (pkg/apis/core/validation, ValidateEndpointIP).
func validateEndpointIP(path *field.Path, address string) field.ErrorList {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, "must be a valid IP address, for example 192.0.2.1 or 2001:db8::1")}
	}
	ip = ip.Unmap()
	switch {
	case ip.IsUnspecified():
		return field.ErrorList{field.Invalid(path, address, "may not be unspecified ("+address+")")}
	case ip.IsLoopback():
		return field.ErrorList{field.Invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")}
	case ip.IsLinkLocalUnicast():
		return field.ErrorList{field.Invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")}
	case ip.IsLinkLocalMulticast():
		return field.ErrorList{field.Invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")}
	}
	return nil
}

// validateNodeName accepts nil: the address is not on a node of the cluster.
func validateNodeName(path *field.Path, name *string) (errs field.ErrorList) {
	if name != nil {
		for _, msg := range apivalidation.NameIsDNSSubdomain(*name, false) {
			errs = append(errs, field.Invalid(path, *name, msg))
		}
	}
	return errs
}

// validateHostname accepts "".
func validateHostname(path *field.Path, name string) (errs field.ErrorList) {
	if name != "" {
		for _, msg := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(path, name, msg))
		}
	}
	return errs
}

// validateHints checks which zones and nodes an endpoint is meant for.
func validateHints(path *field.Path, h *discoveryv1.EndpointHints) (errs field.ErrorList) {
	if h == nil {
		return nil
	}
	zones := make([]string, len(h.ForZones))
	for i, z := range h.ForZones {
		zones[i] = z.Name
	}
	nodes := make([]string, len(h.ForNodes))
	for i, n := range h.ForNodes {
		nodes[i] = n.Name
	}
	check := func(path *field.Path, names []string, valid func(string) []string) {
		if len(names) > maxHints {
			errs = append(errs, field.TooMany(path, len(names), maxHints))
			return
		}
		seen := sets.New[string]()
		for i, name := range names {
			at := path.Index(i).Child("name")
			if seen.Has(name) {
				errs = append(errs, field.Duplicate(at, name))
			}
			seen.Insert(name)
			for _, msg := range valid(name) {
				errs = append(errs, field.Invalid(at, name, msg))
			}
		}
	}
	check(path.Child("forZones"), zones, validation.IsValidLabelValue)
	check(path.Child("forNodes"), nodes, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) })
	return errs
}

// validateEndpointPort checks one port of Endpoints; with more than one each
// needs a name.
func validateEndpointPort(path *field.Path, p *corev1.EndpointPort, needsName bool) (errs field.ErrorList) {
	if p.Name == "" && needsName {
		errs = append(errs, field.Required(path.Child("name"), "with more than one port each needs a name"))
	}
	errs = append(errs, validateHostname(path.Child("name"), p.Name)...)
	for _, msg := range validation.IsValidPortNum(int(p.Port)) {
		errs = append(errs, field.Invalid(path.Child("port"), p.Port, msg))
	}
	return append(errs, oneOf(path.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
}
