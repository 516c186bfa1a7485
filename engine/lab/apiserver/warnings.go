package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// warningList collects what the lab stores and does not act on. The client
// shows it to whoever wrote the manifest (Warning headers).
type warningList []string

func (w *warningList) add(path *field.Path, text string) {
	*w = append(*w, fmt.Sprintf("%s: %s", path, text))
}

// podSpecWarnings names the fields without effect in the lab, where no image is
// run: a container is a listener, or a command that the kubelet can follow.
func podSpecWarnings(s *corev1.PodSpec, path *field.Path) (w warningList) {
	if len(s.InitContainers) > 0 {
		w.add(path.Child("initContainers"), "of init containers the lab follows sleep, exit, true, false and echo, any other command succeeds at once")
	}
	for i := range s.InitContainers {
		c, at := &s.InitContainers[i], path.Child("initContainers").Index(i)
		if c.RestartPolicy != nil {
			w.add(at.Child("restartPolicy"), "the lab has no sidecars: the container runs before the others, as any init container")
		}
	}
	if s.ActiveDeadlineSeconds != nil {
		w.add(path.Child("activeDeadlineSeconds"), "the lab ends no pod at a deadline")
	}
	if len(s.Volumes) > 0 {
		w.add(path.Child("volumes"), "the lab mounts no volumes")
	}
	if a := s.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil || a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0) {
		w.add(path.Child("affinity"), "the lab's scheduler knows nodeSelector, required node affinity and taints only")
	}
	if len(s.TopologySpreadConstraints) > 0 {
		w.add(path.Child("topologySpreadConstraints"), "the lab's scheduler always prefers the node with the fewest pods")
	}
	for i := range s.Containers {
		w = append(w, containerWarnings(&s.Containers[i], path.Child("containers").Index(i))...)
	}
	return w
}

func containerWarnings(c *corev1.Container, path *field.Path) (w warningList) {
	probes := []struct {
		name string
		of   *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}}
	for _, p := range probes {
		if p.of != nil && p.of.Exec != nil {
			w.add(path.Child(p.name), "of exec probes the lab follows sleep, exit, true, false and echo, any other command never makes a container ready and never restarts it")
		}
		if p.of != nil && p.of.GRPC != nil {
			w.add(path.Child(p.name), "the lab runs no gRPC probes: as a readiness probe it never succeeds, as another it always does")
		}
	}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		w.add(path.Child("lifecycle", "postStart"), "the lab does not run it")
	}
	return w
}

// serviceWarnings: noIPv6 is why the cluster has IPv4 alone, if it has.
func serviceWarnings(svc *corev1.Service, noIPv6 string) (w warningList) {
	spec := field.NewPath("spec")
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 {
		w.add(spec.Child("type"), "the lab has no load balancer, so the external address stays pending; the ClusterIP and the node ports work")
	}
	if p := svc.Spec.IPFamilyPolicy; p != nil && *p == corev1.IPFamilyPolicyPreferDualStack && noIPv6 != "" {
		w.add(spec.Child("ipFamilyPolicy"), "the lab is IPv4 only here, so the Service gets one address: "+noIPv6)
	}
	return w
}
