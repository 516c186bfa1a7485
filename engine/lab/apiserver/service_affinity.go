package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxAffinitySeconds is MaxClientIPServiceAffinitySeconds of pkg/apis/core/types.go.
const maxAffinitySeconds = 86400

// validateAffinity follows validateClientIPAffinityConfig in
// pkg/apis/core/validation/validation.go.
func validateAffinity(svc *corev1.Service) field.ErrorList {
	c := svc.Spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return nil // defaulted
	}
	if s := *c.ClientIP.TimeoutSeconds; s <= 0 || s > maxAffinitySeconds {
		path := field.NewPath("spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds")
		return field.ErrorList{field.Invalid(path, s, fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds))}
	}
	return nil
}

// validateExternalIPs follows ValidateService there.
func validateExternalIPs(svc *corev1.Service) (errs field.ErrorList) {
	for i, ip := range svc.Spec.ExternalIPs {
		path := field.NewPath("spec", "externalIPs").Index(i)
		if bad := validation.IsValidIPForLegacyField(path, ip, true, nil); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		errs = append(errs, validateEndpointIP(path, ip)...)
	}
	return errs
}
