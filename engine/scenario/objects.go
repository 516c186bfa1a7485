package scenario

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

// podPort is where the pods of a deploy step listen, under the name "http".
const podPort = 8080

// probeTimeout in seconds is long, so that a busy machine fails no probe: what is slow
// should be what the scenario makes slow.
const probeTimeout = 10

// manifests reads those of an apply step.
func manifests(text string) (out []*unstructured.Unstructured, err error) {
	dec := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("apply: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return nil, fmt.Errorf("apply: manifest %d: kind, apiVersion and metadata.name are needed", len(out)+1)
		}
		out = append(out, u)
	}
	if len(out) == 0 {
		return nil, errors.New("apply: there is no manifest")
	}
	return out, nil
}

func (d *Deploy) validate() error {
	whole := func(name string, x Duration) error {
		if time.Duration(x)%time.Second != 0 {
			return fmt.Errorf("deploy: %s: %s is not in whole seconds, as Kubernetes wants it", name, time.Duration(x))
		}
		return nil
	}
	switch {
	case d.Name == "":
		return errors.New("deploy: name is missing")
	case d.Replicas < 0 || d.Replicas > 2000:
		return fmt.Errorf("deploy: replicas: %d: choose 0 to 2000", d.Replicas)
	case d.Local != "" && d.Local != "internal" && d.Local != "external":
		return fmt.Errorf("deploy: local: %q: choose internal or external", d.Local)
	case d.Kind != "" && d.Kind != "Deployment" && d.Kind != "StatefulSet" && d.Kind != "DaemonSet":
		return fmt.Errorf("deploy: kind: %q: choose Deployment, StatefulSet or DaemonSet", d.Kind)
	}
	return errors.Join(whole("probe", d.Probe), whole("grace", d.Grace), whole("preStop", d.PreStop), whole("minReady", d.MinReady))
}

// objects are the Service, if one is wanted, and the workload.
func (d *Deploy) objects() (out []*unstructured.Unstructured, err error) {
	var list []runtime.Object
	if !d.NoService {
		list = append(list, d.service())
	}
	for _, o := range append(list, d.workload()) {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: m}
		u.SetGroupVersionKind(kinds[0])
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
		out = append(out, u)
	}
	return out, nil
}

func (d *Deploy) labels() map[string]string { return map[string]string{"app": d.Name} }

func (d *Deploy) service() *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
	s.Spec.Selector = d.Selector
	if len(s.Spec.Selector) == 0 {
		s.Spec.Selector = d.labels()
	}
	target := intstr.FromInt32(podPort)
	if n, err := strconv.Atoi(d.TargetPort); err == nil {
		target = intstr.FromInt32(int32(n))
	} else if d.TargetPort != "" {
		target = intstr.FromString(d.TargetPort)
	}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: target, Protocol: corev1.ProtocolTCP}}
	switch d.Local {
	case "internal":
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
	case "external":
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	return s
}

func (d *Deploy) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: d.labels(), Annotations: map[string]string{}}}
	c := corev1.Container{Name: d.Name, Image: "nginx", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: podPort, Protocol: corev1.ProtocolTCP}}}
	if d.Probe > 0 {
		c.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(podPort)}},
			PeriodSeconds: int32(time.Duration(d.Probe) / time.Second), FailureThreshold: d.Failures, TimeoutSeconds: probeTimeout,
		}
	}
	if d.PreStop > 0 {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(time.Duration(d.PreStop) / time.Second)}}}
	}
	if d.Serve != nil {
		t.Annotations[kubelet.StopAfterAnnotation] = time.Duration(*d.Serve).String()
	}
	if d.Grace > 0 {
		t.Spec.TerminationGracePeriodSeconds = ptr.To(int64(time.Duration(d.Grace) / time.Second))
	}
	if d.Gate != "" {
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(d.Gate)}}
	}
	t.Spec.NodeName, t.Spec.HostNetwork = d.Node, d.HostNetwork
	t.Spec.Containers = []corev1.Container{c}
	return t
}

func (d *Deploy) workload() runtime.Object {
	meta := metav1.ObjectMeta{Name: d.Name, Labels: d.labels()}
	selector := &metav1.LabelSelector{MatchLabels: d.labels()}
	ready := int32(time.Duration(d.MinReady) / time.Second)
	switch d.Kind {
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &d.Replicas, Selector: selector, Template: d.template(), MinReadySeconds: ready, ServiceName: d.Name,
			PodManagementPolicy: appsv1.ParallelPodManagement,
		}}
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: d.template(), MinReadySeconds: ready}}
	}
	out := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &d.Replicas, Selector: selector, Template: d.template(), MinReadySeconds: ready}}
	if d.Surge != nil || d.Unavailable != nil {
		update := &appsv1.RollingUpdateDeployment{}
		if d.Surge != nil {
			update.MaxSurge = ptr.To(intstr.FromInt32(*d.Surge))
		}
		if d.Unavailable != nil {
			update.MaxUnavailable = ptr.To(intstr.FromInt32(*d.Unavailable))
		}
		out.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: update}
	}
	return out
}
