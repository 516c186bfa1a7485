package apiserver

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func setPointer[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

func addDefault[T runtime.Object](s *runtime.Scheme, kind T, f func(T)) {
	s.AddTypeDefaultingFunc(kind, func(o any) { f(o.(T)) })
}

// addDefaults registers what is filled in when a client leaves it out.
// The generated defaults of k8s.io/kubernetes cannot be imported; these follow
// pkg/apis/core/v1/defaults.go and pkg/apis/apps/v1/defaults.go.
func addDefaults(s *runtime.Scheme) {
	addDefault(s, &corev1.Pod{}, func(p *corev1.Pod) {
		defaultPodSpec(&p.Spec)
		defaultPod(p)
	})
	addDefault(s, &corev1.Service{}, defaultService)
	addDefault(s, &corev1.Namespace{}, defaultNamespace)
	addDefault(s, &corev1.Secret{}, func(x *corev1.Secret) { setDefault(&x.Type, corev1.SecretTypeOpaque) })
	addDefault(s, &corev1.Node{}, func(n *corev1.Node) {
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = n.Status.Capacity.DeepCopy()
		}
	})
	addDefault(s, &corev1.Endpoints{}, func(e *corev1.Endpoints) {
		for i := range e.Subsets {
			for j := range e.Subsets[i].Ports {
				setDefault(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	})
	addDefault(s, &discoveryv1.EndpointSlice{}, func(e *discoveryv1.EndpointSlice) {
		for i := range e.Ports {
			setPointer(&e.Ports[i].Name, "")
			setPointer(&e.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	})
	addDefault(s, &appsv1.Deployment{}, defaultDeployment)
	addDefault(s, &appsv1.StatefulSet{}, defaultStatefulSet)
	addDefault(s, &appsv1.DaemonSet{}, defaultDaemonSet)
	addDefault(s, &batchv1.Job{}, defaultJob)
	addDefault(s, &appsv1.ReplicaSet{}, func(r *appsv1.ReplicaSet) {
		setPointer(&r.Spec.Replicas, 1)
		if len(r.Labels) == 0 {
			r.Labels = r.Spec.Template.Labels
		}
		defaultPodSpec(&r.Spec.Template.Spec)
	})
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	setPointer(&s.ProgressDeadlineSeconds, 600)
	setDefault(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		setPointer(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	}
	defaultPodSpec(&s.Template.Spec)
}

func defaultNamespace(n *corev1.Namespace) {
	setDefault(&n.Status.Phase, corev1.NamespaceActive)
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

// defaultPod sets what applies to a Pod and not to a template.
func defaultPod(p *corev1.Pod) {
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		*g = 1
	}
	setPointer(&p.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			for name, q := range r.Limits {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				if _, ok := r.Requests[name]; !ok {
					r.Requests[name] = q.DeepCopy()
				}
			}
			for j := range list[i].Ports {
				if c := &list[i].Ports[j]; p.Spec.HostNetwork && c.HostPort == 0 {
					c.HostPort = c.ContainerPort
				}
			}
		}
	}
	// One address and the list of addresses say the same.
	st := &p.Status
	switch {
	case st.PodIP == "" && len(st.PodIPs) > 0:
		st.PodIP = st.PodIPs[0].IP
	case st.PodIP != "" && (len(st.PodIPs) == 0 || st.PodIPs[0].IP != st.PodIP):
		st.PodIPs = []corev1.PodIP{{IP: st.PodIP}}
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	setPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			defaultContainer(&list[i])
		}
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if imageTag(c.Image) == "latest" {
		setDefault(&c.ImagePullPolicy, corev1.PullAlways)
	}
	setDefault(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if v := c.Env[i].ValueFrom; v != nil && v.FieldRef != nil {
			setDefault(&v.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		setDefault(&p.TimeoutSeconds, 1)
		setDefault(&p.PeriodSeconds, 10)
		setDefault(&p.SuccessThreshold, 1)
		setDefault(&p.FailureThreshold, 3)
		defaultHTTPGet(p.HTTPGet)
		if p.GRPC != nil {
			setPointer(&p.GRPC.Service, "")
		}
	}
	if l := c.Lifecycle; l != nil {
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a != nil {
		setDefault(&a.Path, "/")
		setDefault(&a.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.ConfigMap != nil {
		setPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.Secret != nil {
		setPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.Projected != nil {
		setPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
	}
}

// imageTag returns the tag of an image reference: "latest" when it has
// neither tag nor digest.
func imageTag(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(name, ":"); ok {
		return tag
	}
	return "latest"
}
