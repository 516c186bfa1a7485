package apiserver

import (
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of pkg/apis/discovery/validation.
const (
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
	maxSlicePorts        = 20000
)

func endpointSlices() *resource[*discoveryv1.EndpointSlice] {
	return &resource[*discoveryv1.EndpointSlice]{
		version: discoveryv1.SchemeGroupVersion, kind: "EndpointSlice", plural: "endpointslices", singular: "endpointslice",
		namespaced: true,
		name:       apivalidation.NameIsDNSSubdomain,
		newObject:  func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		newList:    func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		columns: []column[*discoveryv1.EndpointSlice]{
			nameColumn[*discoveryv1.EndpointSlice](),
			col("AddressType", func(e *discoveryv1.EndpointSlice) any { return string(e.AddressType) }),
			col("Ports", func(e *discoveryv1.EndpointSlice) any { return firstOf(slicePorts(e), "<unset>") }),
			col("Endpoints", func(e *discoveryv1.EndpointSlice) any { return firstOf(sliceAddresses(e), "<unset>") }),
			ageColumn[*discoveryv1.EndpointSlice](),
		},
		rules: rules[*discoveryv1.EndpointSlice]{
			create: func(e *discoveryv1.EndpointSlice) { e.Generation = 1 },
			update: func(e, old *discoveryv1.EndpointSlice) {
				// Everything but the bookkeeping counts as a change
				// (pkg/registry/discovery/endpointslice/strategy.go).
				is, was := *e, *old
				is.ManagedFields, was.ManagedFields = nil, nil
				is.ResourceVersion, was.ResourceVersion = "", ""
				is.Generation, was.Generation = 0, 0
				e.Generation = old.Generation
				if !equality.Semantic.DeepEqual(is, was) {
					e.Generation++
				}
			},
			validate: validateSlice,
			validateUpdate: func(e, old *discoveryv1.EndpointSlice) field.ErrorList {
				return apivalidation.ValidateImmutableField(e.AddressType, old.AddressType, field.NewPath("addressType"))
			},
		},
	}
}

func validateSlice(e *discoveryv1.EndpointSlice) (errs field.ErrorList) {
	errs = append(errs, oneOf(field.NewPath("addressType"), e.AddressType,
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)...)
	at := field.NewPath("endpoints")
	if n := len(e.Endpoints); n > maxSliceEndpoints {
		return append(errs, field.TooMany(at, n, maxSliceEndpoints))
	}
	for i, ep := range e.Endpoints {
		addresses := at.Index(i).Child("addresses")
		switch n := len(ep.Addresses); {
		case n == 0:
			errs = append(errs, field.Required(addresses, "must contain at least 1 address"))
		case n > maxEndpointAddresses:
			errs = append(errs, field.TooMany(addresses, n, maxEndpointAddresses))
		}
		for j, a := range ep.Addresses {
			if e.AddressType == discoveryv1.AddressTypeFQDN {
				continue
			}
			ip, err := netip.ParseAddr(a)
			if err != nil || ip.Is4() != (e.AddressType == discoveryv1.AddressTypeIPv4) {
				errs = append(errs, field.Invalid(addresses.Index(j), a, "must be a valid "+string(e.AddressType)+" address"))
				continue
			}
			errs = append(errs, validateEndpointIP(addresses.Index(j), a)...)
		}
		errs = append(errs, validateNodeName(at.Index(i).Child("nodeName"), ep.NodeName)...)
		if ep.Hostname != nil {
			errs = append(errs, validateHostname(at.Index(i).Child("hostname"), *ep.Hostname)...)
		}
		errs = append(errs, validateHints(at.Index(i).Child("hints"), ep.Hints)...)
	}
	ports := field.NewPath("ports")
	if n := len(e.Ports); n > maxSlicePorts {
		return append(errs, field.TooMany(ports, n, maxSlicePorts))
	}
	names := sets.New[string]()
	for i, p := range e.Ports {
		if p.Name != nil {
			errs = append(errs, validateHostname(ports.Index(i).Child("name"), *p.Name)...)
			if names.Has(*p.Name) {
				errs = append(errs, field.Duplicate(ports.Index(i).Child("name"), *p.Name))
			}
			names.Insert(*p.Name)
		}
		if p.Port != nil {
			for _, msg := range validation.IsValidPortNum(int(*p.Port)) {
				errs = append(errs, field.Invalid(ports.Index(i).Child("port"), *p.Port, msg))
			}
		}
		if p.Protocol != nil {
			errs = append(errs, oneOf(ports.Index(i).Child("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		}
	}
	return errs
}

func slicePorts(e *discoveryv1.EndpointSlice) (out []string) {
	for _, p := range e.Ports {
		switch {
		case p.Port != nil:
			out = append(out, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			out = append(out, *p.Name)
		default:
			out = append(out, "*")
		}
	}
	return out
}

func sliceAddresses(e *discoveryv1.EndpointSlice) (out []string) {
	for _, p := range e.Endpoints {
		out = append(out, p.Addresses...)
	}
	return out
}
