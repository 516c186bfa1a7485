package apiserver

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	netutils "k8s.io/utils/net"
)

func nodes() *resource[*corev1.Node] {
	return &resource[*corev1.Node]{
		version: corev1.SchemeGroupVersion, kind: "Node", plural: "nodes", singular: "node",
		short:     []string{"no"},
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() *corev1.Node { return &corev1.Node{} },
		newList:   func() runtime.Object { return &corev1.NodeList{} },
		fields: map[string]func(*corev1.Node) string{
			"spec.unschedulable": func(n *corev1.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) },
		},
		columns: []column[*corev1.Node]{
			nameColumn[*corev1.Node](),
			col("Status", func(n *corev1.Node) any { return nodeStatus(n) }),
			col("Roles", func(n *corev1.Node) any { return orNone(strings.Join(nodeRoles(n), ",")) }),
			ageColumn[*corev1.Node](),
			col("Version", func(n *corev1.Node) any { return n.Status.NodeInfo.KubeletVersion }),
			wide("Internal-IP", func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeInternalIP) }),
			wide("External-IP", func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeExternalIP) }),
			wide("OS-Image", func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.OSImage) }),
			wide("Kernel-Version", func(n *corev1.Node) any {
				k := orUnknown(n.Status.NodeInfo.KernelVersion)
				if a := n.Status.NodeInfo.Architecture; a != "" {
					k += " (" + a + ")"
				}
				return k
			}),
			wide("Container-Runtime", func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.ContainerRuntimeVersion) }),
		},
		rules: rules[*corev1.Node]{
			// Kubelets register with their status, so create keeps it.
			create: syncPodCIDRs,
			update: func(n, old *corev1.Node) {
				n.Status = old.Status
				syncPodCIDRs(n)
			},
			statusUpdate: func(n, old *corev1.Node) { n.Spec = old.Spec },
			validate:     validatePodCIDRs,
		},
		subresources: func(main, _ *genericregistry.Store) map[string]rest.Storage {
			return map[string]rest.Storage{
				"proxy": refusedProxy(main, func() runtime.Object { return &corev1.NodeProxyOptions{} }, "node"),
			}
		},
	}
}

// syncPodCIDRs makes podCIDR and podCIDRs agree; where both are given and
// differ, podCIDR counts (pkg/apis/core/v1/conversion.go).
func syncPodCIDRs(n *corev1.Node) {
	s := &n.Spec
	switch {
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	case s.PodCIDR == "" && len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	}
}

// validatePodCIDRs follows ValidateNode in pkg/apis/core/validation.
func validatePodCIDRs(n *corev1.Node) (errs field.ErrorList) {
	path, cidrs := field.NewPath("spec", "podCIDRs"), n.Spec.PodCIDRs
	for i, c := range cidrs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), c, true, nil)...)
	}
	if len(errs) == 0 && len(cidrs) > 1 {
		if dual, err := netutils.IsDualStackCIDRStrings(cidrs); err != nil || !dual || len(cidrs) > 2 {
			errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
		}
	}
	return errs
}

func orUnknown(s string) string {
	if s == "" {
		return "<unknown>"
	}
	return s
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(n *corev1.Node) []string {
	const prefix = "node-role.kubernetes.io/"
	roles := sets.New[string]()
	for k, v := range n.Labels {
		if role, ok := strings.CutPrefix(k, prefix); ok && role != "" {
			roles.Insert(role)
		}
		if k == "kubernetes.io/role" && v != "" {
			roles.Insert(v)
		}
	}
	return sets.List(roles)
}

func nodeAddress(n *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return "<none>"
}
