package workloads

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// untolerated is the first taint with one of the effects that no toleration
// covers, or nil.
func untolerated(tolerations []corev1.Toleration, taints []corev1.Taint, effects ...corev1.TaintEffect) *corev1.Taint {
	for i := range taints {
		t := &taints[i]
		if slices.Contains(effects, t.Effect) && !slices.ContainsFunc(tolerations, func(tol corev1.Toleration) bool { return tolerates(&tol, t) }) {
			return t
		}
	}
	return nil
}

// tolerates leaves out the operators that compare numbers, which the API has off
// by default.
func tolerates(tol *corev1.Toleration, t *corev1.Taint) bool {
	return tol.ToleratesTaint(klog.Logger{}, t, false)
}

// toleratesKey reports whether the pod tolerates a taint of the node lifecycle
// controller's with the effect NoSchedule.
func toleratesKey(p *corev1.Pod, key string) bool {
	taint := &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(p.Spec.Tolerations, func(tol corev1.Toleration) bool { return tolerates(&tol, taint) })
}

// selectsNode applies nodeSelector and the required node affinity.
func selectsNode(p *corev1.Pod, n *corev1.Node) bool {
	if !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return false
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			matchesNode(t.MatchExpressions, labels.Set(n.Labels)) &&
			matchesNode(t.MatchFields, labels.Set{"metadata.name": n.Name})
	})
}

var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func matchesNode(all []corev1.NodeSelectorRequirement, of labels.Set) bool {
	for _, r := range all {
		req, err := labels.NewRequirement(r.Key, nodeOperators[r.Operator], r.Values)
		if err != nil || !req.Matches(of) {
			return false
		}
	}
	return true
}
