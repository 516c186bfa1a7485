package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

func services(numbers *serviceNumbers) *resource[*corev1.Service] {
	return &resource[*corev1.Service]{
		version: corev1.SchemeGroupVersion, kind: "Service", plural: "services", singular: "service",
		short: []string{"svc"}, inAll: true, namespaced: true,
		name:      apivalidation.NameIsDNS1035Label,
		newObject: func() *corev1.Service { return &corev1.Service{} },
		newList:   func() runtime.Object { return &corev1.ServiceList{} },
		fields: map[string]func(*corev1.Service) string{
			"spec.clusterIP": func(s *corev1.Service) string { return s.Spec.ClusterIP },
			"spec.type":      func(s *corev1.Service) string { return string(s.Spec.Type) },
		},
		columns: []column[*corev1.Service]{
			nameColumn[*corev1.Service](),
			col("Type", func(s *corev1.Service) any { return string(s.Spec.Type) }),
			col("Cluster-IP", func(s *corev1.Service) any { return orNone(s.Spec.ClusterIP) }),
			col("External-IP", func(s *corev1.Service) any { return externalIPs(s) }),
			col("Port(s)", func(s *corev1.Service) any { return orNone(servicePorts(s)) }),
			ageColumn[*corev1.Service](),
			wide("Selector", func(s *corev1.Service) any { return labels.FormatLabels(s.Spec.Selector) }),
		},
		rules: rules[*corev1.Service]{
			create:       func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
			update:       func(s, old *corev1.Service) { s.Status = old.Status },
			statusUpdate: func(s, old *corev1.Service) { s.Spec = old.Spec },
			validate:     validateService,
			validateUpdate: func(s, old *corev1.Service) field.ErrorList {
				return slices.Concat(validateServiceFamilies(s, old), validateFamilyChange(s, old), validateHealthCheckPortUpdate(s, old))
			},
			warnings: func(s *corev1.Service) []string { return serviceWarnings(s, numbers.noIPv6) },
		},
		adjust: func(s *genericregistry.Store) {
			s.BeginCreate, s.BeginUpdate, s.AfterDelete = numbers.beginCreate, numbers.beginUpdate, numbers.afterDelete
		},
		subresources: func(main, _ *genericregistry.Store) map[string]rest.Storage {
			return map[string]rest.Storage{
				"proxy": refusedProxy(main, func() runtime.Object { return &corev1.ServiceProxyOptions{} }, "service"),
			}
		},
	}
}

// defaultService follows SetDefaults_Service in pkg/apis/core/v1/defaults.go.
func defaultService(svc *corev1.Service) {
	s := &svc.Spec
	setDefault(&s.Type, corev1.ServiceTypeClusterIP)
	setDefault(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := s.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			s.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)},
			}
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if externallyAccessible(svc) {
		setDefault(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if s.Type != corev1.ServiceTypeExternalName {
		setPointer(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setPointer(&s.AllocateLoadBalancerNodePorts, true)
	}
}

func validateService(svc *corev1.Service) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	s := &svc.Spec
	errs = append(errs, oneOf(spec.Child("type"), s.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)...)
	errs = append(errs, oneOf(spec.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)...)
	errs = append(errs, validateLabels(s.Selector, spec.Child("selector"))...)
	if s.ExternalTrafficPolicy != "" {
		errs = append(errs, oneOf(spec.Child("externalTrafficPolicy"), s.ExternalTrafficPolicy,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
		if !externallyAccessible(svc) {
			errs = append(errs, field.Invalid(spec.Child("externalTrafficPolicy"), s.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
		}
	}
	if s.InternalTrafficPolicy != nil {
		errs = append(errs, oneOf(spec.Child("internalTrafficPolicy"), *s.InternalTrafficPolicy,
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	if d := s.TrafficDistribution; d != nil {
		errs = append(errs, oneOf(spec.Child("trafficDistribution"), *d, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	switch {
	case s.Type == corev1.ServiceTypeExternalName:
		if s.ExternalName == "" {
			errs = append(errs, field.Required(spec.Child("externalName"), "for type ExternalName"))
		}
		if s.ClusterIP != "" || len(s.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if len(s.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("ipFamilies"), "may not be set for ExternalName services"))
		}
		if s.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(spec.Child("ipFamilyPolicy"), "may not be set for ExternalName services"))
		}
	case s.ClusterIP == corev1.ClusterIPNone:
		if s.Type != corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Invalid(spec.Child("clusterIP"), s.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", s.Type)))
		}
	case len(s.Ports) == 0:
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	errs = append(errs, validateHealthCheckPort(svc)...)
	errs = append(errs, validateSourceRanges(svc)...)
	errs = append(errs, validateAffinity(svc)...)
	errs = append(errs, validateExternalIPs(svc)...)
	return append(errs, validateServicePorts(s.Ports, spec.Child("ports"))...)
}

func validateServicePorts(ports []corev1.ServicePort, path *field.Path) (errs field.ErrorList) {
	type frontend struct {
		protocol corev1.Protocol
		port     int32
	}
	names, frontends := sets.New[string](), sets.New[frontend]()
	for i, p := range ports {
		at := path.Index(i)
		switch {
		case p.Name == "" && len(ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), "with more than one port each needs a name"))
		case p.Name != "":
			for _, msg := range validation.IsDNS1123Label(p.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), p.Name, msg))
			}
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		for _, msg := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, msg))
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		errs = append(errs, validatePortReference(p.TargetPort, at.Child("targetPort"))...)
		f := frontend{p.Protocol, p.Port}
		if frontends.Has(f) {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("%d/%s", p.Port, p.Protocol)))
		}
		frontends.Insert(f)
	}
	return errs
}

func servicePorts(svc *corev1.Service) string {
	out := make([]string, 0, len(svc.Spec.Ports))
	for _, p := range svc.Spec.Ports {
		if p.NodePort > 0 {
			out = append(out, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
		} else {
			out = append(out, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
	}
	return strings.Join(out, ",")
}

func externalIPs(svc *corev1.Service) string {
	switch svc.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return svc.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		ips := sets.New(svc.Spec.ExternalIPs...)
		for _, in := range svc.Status.LoadBalancer.Ingress {
			ips.Insert(in.IP + in.Hostname)
		}
		if ips.Len() == 0 {
			return "<pending>"
		}
		return strings.Join(sets.List(ips), ",")
	}
	return orNone(strings.Join(svc.Spec.ExternalIPs, ","))
}
