package workloads

import (
	corev1 "k8s.io/api/core/v1"
)

const fieldNodeName = "metadata.name"

// tolerateAsDaemon adds the tolerations of a DaemonSet's pods
// (AddOrUpdateDaemonPodTolerations in pkg/controller/daemon/util).
func tolerateAsDaemon(s *corev1.PodSpec) {
	add := func(key string, effect corev1.TaintEffect) {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if s.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
}

// bindTo makes the scheduler put a pod on one node
// (ReplaceDaemonSetPodNodeNameNodeAffinity).
func bindTo(s *corev1.PodSpec, node string) {
	req := []corev1.NodeSelectorRequirement{{Key: fieldNodeName, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	if s.Affinity.NodeAffinity == nil {
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := s.Affinity.NodeAffinity
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil && len(r.NodeSelectorTerms) > 0 {
		for i := range r.NodeSelectorTerms {
			r.NodeSelectorTerms[i].MatchFields = req
		}
		return
	}
	a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: req}}}
}

// targetNode is the node a DaemonSet's pod is on, or is meant for.
func targetNode(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == fieldNodeName && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}
