package kube

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kconverge/kconverge/collect"
)

// labelPodTemplateHash names the ReplicaSet's revision of the pod template
// (k8s.io/api/apps/v1, DefaultDeploymentUniqueLabelKey).
const labelPodTemplateHash = "pod-template-hash"

// ConvertPod returns the facts of a Pod.
func ConvertPod(p *corev1.Pod) *collect.Pod {
	out := &collect.Pod{
		Labels:      maps.Clone(p.Labels),
		Node:        p.Spec.NodeName,
		Phase:       string(p.Status.Phase),
		HostNetwork: p.Spec.HostNetwork,
		Owner:       ownerOf(p),
		Created:     p.CreationTimestamp.Time,
		Deletion:    timeOf(p.DeletionTimestamp),
		Revision:    p.Labels[labelPodTemplateHash],
	}
	if g := p.DeletionGracePeriodSeconds; g != nil {
		out.Grace = time.Duration(*g) * time.Second
	}
	for _, ip := range p.Status.PodIPs {
		out.IPs = append(out.IPs, parseAddrs([]string{ip.IP})...)
	}
	if len(p.Status.PodIPs) == 0 && p.Status.PodIP != "" {
		out.IPs = parseAddrs([]string{p.Status.PodIP})
	}
	out.Ports = namedPorts(p)
	convertConditions(p, out)
	out.Started, out.Stopped = runTimes(p)
	convertWaiting(p, out)
	convertReadiness(p, out)
	return out
}

// namedPorts lists the ports that a Service can target by name, in the order in
// which a name is looked up: containers, then init containers that keep
// running (k8s.io/endpointslice, FindPort).
func namedPorts(p *corev1.Pod) []collect.NamedPort {
	var out []collect.NamedPort
	add := func(c *corev1.Container) {
		for _, cp := range c.Ports {
			if cp.Name != "" {
				out = append(out, collect.NamedPort{Name: cp.Name, Port: cp.ContainerPort, Protocol: protocol(cp.Protocol)})
			}
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if isSidecar(&p.Spec.InitContainers[i]) {
			add(&p.Spec.InitContainers[i])
		}
	}
	return out
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func convertConditions(p *corev1.Pod, out *collect.Pod) {
	for _, c := range p.Status.Conditions {
		cond := &collect.Condition{Status: c.Status == corev1.ConditionTrue, Since: c.LastTransitionTime.Time, Reason: c.Reason}
		switch c.Type {
		case corev1.PodScheduled:
			out.Scheduled = cond
		case corev1.PodInitialized:
			out.Initialized = cond
		case corev1.ContainersReady:
			out.ContainersReady = cond
		case corev1.PodReady:
			out.Ready = cond
		case corev1.DisruptionTarget:
			out.Disruption = cond
		}
	}
}

// runTimes returns the latest start among the running containers and, when
// none runs any more, the latest end. Sidecars count: while one runs, something
// may still answer. Init containers that end by design and ephemeral ones do
// not.
func runTimes(p *corev1.Pod) (started, stopped time.Time) {
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; isSidecar(c) {
			sidecars[c.Name] = true
		}
	}
	running := false
	add := func(s *corev1.ContainerStatus) {
		if r := s.State.Running; r != nil {
			running = true
			started = later(started, r.StartedAt.Time)
		}
		if t := s.State.Terminated; t != nil {
			stopped = later(stopped, t.FinishedAt.Time)
		}
		// Waiting for a restart: it ran before, and does not now.
		if t := s.LastTerminationState.Terminated; t != nil && s.State.Running == nil {
			stopped = later(stopped, t.FinishedAt.Time)
		}
	}
	for i := range p.Status.ContainerStatuses {
		add(&p.Status.ContainerStatuses[i])
	}
	for i := range p.Status.InitContainerStatuses {
		if s := &p.Status.InitContainerStatuses[i]; sidecars[s.Name] {
			add(s)
		}
	}
	if running {
		stopped = time.Time{}
	}
	return started, stopped
}

// convertWaiting takes why containers do not run. Every container waits for a moment
// while it is made (k8s.io/kubernetes pkg/kubelet, ContainerCreating and
// PodInitializing), which is no reason.
func convertWaiting(p *corev1.Pod, out *collect.Pod) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			out.Restarts += list[i].RestartCount
			w := list[i].State.Waiting
			if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
				continue
			}
			if out.Waiting == "" {
				out.Waiting = w.Reason
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// convertReadiness takes the probe that is slowest to make the pod ready:
// period x success threshold. Defaults are the API's (10 s, 1, 3).
func convertReadiness(p *corev1.Pod, out *collect.Pod) {
	var slowest time.Duration
	probe := func(c *corev1.Container) {
		r := c.ReadinessProbe
		if r == nil {
			return
		}
		period := time.Duration(or(r.PeriodSeconds, 10)) * time.Second
		success, failure := or(r.SuccessThreshold, 1), or(r.FailureThreshold, 3)
		if d := period * time.Duration(success); d > slowest {
			slowest = d
			out.ReadinessPeriod = period
			out.ReadinessSuccessThreshold = success
			out.ReadinessFailureThreshold = failure
		}
	}
	for i := range p.Spec.Containers {
		probe(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if isSidecar(&p.Spec.InitContainers[i]) {
			probe(&p.Spec.InitContainers[i])
		}
	}
}

func or(v, zero int32) int32 {
	if v == 0 {
		return zero
	}
	return v
}
