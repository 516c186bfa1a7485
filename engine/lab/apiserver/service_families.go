package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// The IP family fields of a Service (ipFamilyPolicy, ipFamilies, clusterIPs) fill
// each other in: what a client left out follows from what it wrote, from what
// the Service had, and from which families the cluster has.

var (
	familyPolicies = []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
	ipFamilies     = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
)

// syncClusterIPs makes clusterIP and clusterIPs agree where a client set one of
// the two only. old is nil on create (normalizeClusterIPs in
// pkg/registry/core/service/storage/storage.go).
func syncClusterIPs(svc, old *corev1.Service) {
	s := &svc.Spec
	if old == nil {
		if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
			s.ClusterIPs = []string{s.ClusterIP}
		}
		return
	}
	was := &old.Spec
	if len(was.ClusterIPs) > 0 && len(s.ClusterIPs) == 0 && was.ClusterIP == s.ClusterIP {
		s.ClusterIPs = slices.Clone(was.ClusterIPs)
	}
	// Only clusterIP was changed: clusterIPs follow.
	if was.ClusterIP != s.ClusterIP && slices.Equal(was.ClusterIPs, s.ClusterIPs) {
		s.ClusterIPs = nil
		if s.ClusterIP != "" {
			s.ClusterIPs = []string{s.ClusterIP}
		}
	}
}

// initFamilies fills in ipFamilyPolicy and ipFamilies and refuses what the
// cluster cannot give. old is nil on create (initIPFamilyFields in
// pkg/registry/core/service/storage/alloc.go).
func (n *serviceNumbers) initFamilies(svc, old *corev1.Service) (errs field.ErrorList) {
	s := &svc.Spec
	if s.Type == corev1.ServiceTypeExternalName || keepsPreferredFamilies(svc, old) {
		return nil
	}
	selectorless := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if s.IPFamilyPolicy == nil {
		switch {
		case old != nil && old.Spec.IPFamilyPolicy != nil:
			s.IPFamilyPolicy = new(*old.Spec.IPFamilyPolicy)
		case selectorless:
			s.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		default:
			s.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		}
	}
	if errs := validateServiceFamilies(svc, old); len(errs) > 0 {
		return errs
	}
	spec := field.NewPath("spec")
	policy := spec.Child("ipFamilyPolicy")
	single := *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if old != nil {
		errs = append(errs, releaseSecond(s, &old.Spec, policy)...)
	}
	if single && len(s.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if single && len(s.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	for i, ip := range s.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			break
		}
		if i < len(s.IPFamilies) {
			continue
		}
		family := familyOfIP(ip)
		if n.ips[family] == nil {
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(i), s.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster%s", family, n.why())))
			continue
		}
		s.IPFamilies = append(s.IPFamilies, family)
	}
	if len(errs) > 0 {
		return errs
	}
	if !selectorless {
		// Who needs addresses, or pods, gets those of the cluster's families
		// only; Endpoints made by hand may have any.
		if *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(n.ips) < 2 {
			errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "this cluster is not configured for dual-stack services"+n.why()))
		}
		for i, family := range s.IPFamilies {
			if n.ips[family] == nil {
				errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(i), family, "not configured on this cluster"+n.why()))
			}
		}
		if len(errs) > 0 {
			return errs
		}
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if !single && len(s.IPFamilies) == 1 && (selectorless || len(n.ips) == 2) {
		s.IPFamilies = append(s.IPFamilies, otherFamily(s.IPFamilies[0]))
	}
	return nil
}

// releaseSecond drops the second address and family of a Service that becomes
// SingleStack; with any other policy they must stay.
func releaseSecond(s, was *corev1.ServiceSpec, policy *field.Path) (errs field.ErrorList) {
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		if slices.Equal(was.ClusterIPs, s.ClusterIPs) && len(s.ClusterIPs) > 1 {
			s.ClusterIPs = s.ClusterIPs[:1:1]
		}
		if slices.Equal(was.IPFamilies, s.IPFamilies) && len(s.IPFamilies) > 1 {
			s.IPFamilies = s.IPFamilies[:1:1]
		}
		return nil
	}
	if n := len(s.ClusterIPs); n > 0 && n < len(was.ClusterIPs) {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if n := len(s.IPFamilies); n > 0 && n < len(was.IPFamilies) {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

// keepsPreferredFamilies: a PreferDualStack Service is not moved to what the
// cluster has by now unless somebody touches its families
// (isMatchingPreferDualStackClusterIPFields).
func keepsPreferredFamilies(svc, old *corev1.Service) bool {
	prefers := func(s *corev1.Service) bool {
		return s.Spec.IPFamilyPolicy != nil && *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
	}
	return old != nil && old.Spec.Type == svc.Spec.Type && prefers(svc) && (old.Spec.IPFamilyPolicy == nil || prefers(old)) &&
		slices.Equal(old.Spec.ClusterIPs, svc.Spec.ClusterIPs) && slices.Equal(old.Spec.IPFamilies, svc.Spec.IPFamilies)
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv6Protocol {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func familyOfIP(ip string) corev1.IPFamily {
	if netutils.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func headless(svc *corev1.Service) bool {
	return len(svc.Spec.ClusterIPs) == 1 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// validateServiceFamilies checks how the family fields of a Service stand to
// each other. old is nil on create (ValidateServiceClusterIPsRelatedFields in
// pkg/apis/core/validation).
func validateServiceFamilies(svc, old *corev1.Service) (errs field.ErrorList) {
	s := &svc.Spec
	if s.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	spec := field.NewPath("spec")
	ips, families := spec.Child("clusterIPs"), spec.Child("ipFamilies")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(ips, s.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		errs = append(errs, field.Required(ips, ""))
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(ips, s.ClusterIPs, "first value must match `clusterIP`"))
	}
	for i, f := range s.IPFamilies {
		errs = append(errs, oneOf(families.Index(i), f, ipFamilies...)...)
		if slices.Contains(s.IPFamilies[:i], f) {
			errs = append(errs, field.Duplicate(families.Index(i), f))
		}
	}
	if s.IPFamilyPolicy != nil {
		errs = append(errs, oneOf(spec.Child("ipFamilyPolicy"), *s.IPFamilyPolicy, familyPolicies...)...)
	}
	var existing []string
	if old != nil {
		existing = old.Spec.ClusterIPs
	}
	bad := false
	for i, ip := range s.ClusterIPs {
		var found field.ErrorList
		switch {
		case i == 0 && ip == corev1.ClusterIPNone && len(s.ClusterIPs) > 1:
			found = field.ErrorList{field.Invalid(ips, s.ClusterIPs, "'None' must be the first and only value")}
		case i == 0 && ip == corev1.ClusterIPNone:
		default:
			found = validation.IsValidIPForLegacyField(ips.Index(i), ip, true, existing)
		}
		bad = bad || len(found) > 0
		errs = append(errs, found...)
	}
	if len(s.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(ips, s.ClusterIPs, "may only hold up to 2 values"))
	}
	if bad || headless(svc) {
		return errs
	}
	if len(s.ClusterIPs) > 1 {
		if dual, err := netutils.IsDualStackIPStrings(s.ClusterIPs); err != nil || !dual {
			errs = append(errs, field.Invalid(ips, s.ClusterIPs, "may specify no more than one IP for each IP family"))
		}
	}
	for i, ip := range s.ClusterIPs[:min(len(s.ClusterIPs), len(s.IPFamilies))] {
		if want := s.IPFamilies[i]; slices.Contains(ipFamilies, want) && netutils.IsIPv6String(ip) != (want == corev1.IPv6Protocol) {
			errs = append(errs, field.Invalid(ips.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", want, i)))
		}
	}
	return errs
}

// validateFamilyChange lets a Service gain or lose its second address and
// family, and keep the first (validateUpgradeDowngradeClusterIPs and
// validateUpgradeDowngradeIPFamilies in pkg/apis/core/validation).
func validateFamilyChange(svc, old *corev1.Service) (errs field.ErrorList) {
	is, was := &svc.Spec, &old.Spec
	if is.Type == corev1.ServiceTypeExternalName || was.Type == corev1.ServiceTypeExternalName || headless(svc) && headless(old) {
		return nil
	}
	spec := field.NewPath("spec")
	errs = append(errs, secondMayChange(spec, "clusterIPs", "clusterIP", was.ClusterIPs, is.ClusterIPs, is.IPFamilyPolicy)...)
	if headless(svc) == headless(old) {
		errs = append(errs, secondMayChange(spec, "ipFamilies", "ipFamily", was.IPFamilies, is.IPFamilies, is.IPFamilyPolicy)...)
	}
	return errs
}

func secondMayChange[T ~string](spec *field.Path, list, one string, was, is []T, policy *corev1.IPFamilyPolicy) (errs field.ErrorList) {
	path := spec.Child(list)
	if len(is) == 0 && len(was) > 0 {
		return field.ErrorList{field.Invalid(path.Index(0), is, "primary "+one+" can not be unset")}
	}
	for i := range min(len(is), len(was)) {
		// Of a pair that has become shorter or longer the first counts.
		if is[i] != was[i] && (i == 0 || len(is) == len(was)) {
			errs = append(errs, field.Invalid(path.Index(i), is, "may not change once set"))
		}
	}
	if len(is) == 1 && len(was) > 1 && (policy == nil || *policy != corev1.IPFamilyPolicySingleStack) {
		errs = append(errs, field.Invalid(spec.Child("ipFamilyPolicy"), policy, "must be set to 'SingleStack' when releasing the secondary "+one))
	}
	return errs
}
