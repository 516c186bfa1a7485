package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSourceRanges follows ValidateService in
// pkg/apis/core/validation/validation.go: spaces around a range are let pass.
func validateSourceRanges(svc *corev1.Service) (errs field.ErrorList) {
	path := field.NewPath("spec", "loadBalancerSourceRanges")
	ranges := svc.Spec.LoadBalancerSourceRanges
	if len(ranges) > 0 && svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return field.ErrorList{field.Forbidden(path, "may only be used when `type` is 'LoadBalancer'")}
	}
	for i, r := range ranges {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), strings.TrimSpace(r), true, nil)...)
	}
	return errs
}
