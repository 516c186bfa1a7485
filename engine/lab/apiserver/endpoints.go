package apiserver

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func endpoints() *resource[*corev1.Endpoints] {
	return &resource[*corev1.Endpoints]{
		version: corev1.SchemeGroupVersion, kind: "Endpoints", plural: "endpoints", singular: "endpoints",
		short: []string{"ep"}, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() *corev1.Endpoints { return &corev1.Endpoints{} },
		newList:   func() runtime.Object { return &corev1.EndpointsList{} },
		columns: []column[*corev1.Endpoints]{
			nameColumn[*corev1.Endpoints](),
			col("Endpoints", func(e *corev1.Endpoints) any { return firstOf(endpointAddresses(e), "<none>") }),
			ageColumn[*corev1.Endpoints](),
		},
		rules: rules[*corev1.Endpoints]{validate: validateEndpoints},
	}
}

// validateEndpoints follows ValidateEndpoints in pkg/apis/core/validation.
func validateEndpoints(e *corev1.Endpoints) (errs field.ErrorList) {
	for i := range e.Subsets {
		s, at := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		addresses := func(path *field.Path, list []corev1.EndpointAddress) {
			for j := range list {
				a, at := &list[j], path.Index(j)
				errs = append(errs, validateEndpointIP(at.Child("ip"), a.IP)...)
				errs = append(errs, validateNodeName(at.Child("nodeName"), a.NodeName)...)
				errs = append(errs, validateHostname(at.Child("hostname"), a.Hostname)...)
			}
		}
		addresses(at.Child("addresses"), s.Addresses)
		addresses(at.Child("notReadyAddresses"), s.NotReadyAddresses)
		for j := range s.Ports {
			errs = append(errs, validateEndpointPort(at.Child("ports").Index(j), &s.Ports[j], len(s.Ports) > 1)...)
		}
	}
	return errs
}

func endpointAddresses(e *corev1.Endpoints) (out []string) {
	for _, s := range e.Subsets {
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				out = append(out, a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				out = append(out, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	return out
}
