package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var healthCheckPath = field.NewPath("spec", "healthCheckNodePort")

// needsHealthCheck follows NeedsHealthCheck in pkg/api/v1/service/util.go: nodes
// answer a load balancer that may use local endpoints only.
func needsHealthCheck(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// heldHealthPort is the health check port that a Service holds, 0 for none.
func heldHealthPort(svc *corev1.Service) uint32 {
	if !needsHealthCheck(svc) {
		return 0
	}
	return uint32(svc.Spec.HealthCheckNodePort)
}

// healthCheckPort takes and gives back the port, which comes from the node ports
// (allocHealthCheckNodePort in pkg/registry/core/service/storage/alloc.go).
func (n *serviceNumbers) healthCheckPort(t *transaction, svc, was *corev1.Service) field.ErrorList {
	held := heldHealthPort(was)
	if held != 0 && held == heldHealthPort(svc) {
		return nil
	}
	if held != 0 {
		t.commit = append(t.commit, func() { n.ports.free(held) })
	}
	if !needsHealthCheck(svc) {
		return nil
	}
	port := uint32(svc.Spec.HealthCheckNodePort)
	if port == 0 {
		port, ok := n.ports.any()
		if !ok {
			return field.ErrorList{field.Invalid(healthCheckPath, 0, "every node port is taken: delete Services")}
		}
		t.undo = append(t.undo, func() { n.ports.free(port) })
		svc.Spec.HealthCheckNodePort = int32(port)
		return nil
	}
	if !n.ports.contains(port) {
		return field.ErrorList{field.Invalid(healthCheckPath, svc.Spec.HealthCheckNodePort, "provided port is not in the valid range. The range of valid ports is 30000-32767")}
	}
	if !n.ports.take(port) {
		return field.ErrorList{field.Invalid(healthCheckPath, svc.Spec.HealthCheckNodePort, "provided port is already allocated")}
	}
	t.undo = append(t.undo, func() { n.ports.free(port) })
	return nil
}

// keepHealthCheckPort fills the port in when a client left it out, and clears it
// when the Service needs none any more.
func keepHealthCheckPort(svc, was *corev1.Service) {
	switch {
	case needsHealthCheck(svc) && needsHealthCheck(was) && svc.Spec.HealthCheckNodePort == 0:
		svc.Spec.HealthCheckNodePort = was.Spec.HealthCheckNodePort
	case !needsHealthCheck(svc) && svc.Spec.HealthCheckNodePort == was.Spec.HealthCheckNodePort:
		svc.Spec.HealthCheckNodePort = 0
	}
}

func validateHealthCheckPort(svc *corev1.Service) field.ErrorList {
	switch p := svc.Spec.HealthCheckNodePort; {
	case p < 0:
		return field.ErrorList{field.Invalid(healthCheckPath, p, "must be greater than or equal to 0")}
	case p != 0 && !needsHealthCheck(svc):
		return field.ErrorList{field.Invalid(healthCheckPath, p, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")}
	}
	return nil
}

func validateHealthCheckPortUpdate(svc, old *corev1.Service) field.ErrorList {
	if needsHealthCheck(svc) && needsHealthCheck(old) && svc.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		return field.ErrorList{field.Forbidden(healthCheckPath, "field is immutable")}
	}
	return nil
}
