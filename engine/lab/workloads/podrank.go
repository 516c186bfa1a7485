package workloads

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podsToDelete picks the n pods whose loss hurts least, by the order of
// k8s.io/kubernetes pkg/controller ActivePodsWithRanks. related are the pods of
// all ReplicaSets of the same owner: a pod on a node that it shares with many of
// them goes first.
func podsToDelete(pods, related []*corev1.Pod, n int, now time.Time) []*corev1.Pod {
	if n >= len(pods) {
		return pods
	}
	onNode := map[string]int{}
	for _, p := range related {
		if podActive(p) {
			onNode[p.Spec.NodeName]++
		}
	}
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		return cmp.Or(
			boolFirst(a.Spec.NodeName == "", b.Spec.NodeName == ""),
			cmp.Compare(phaseOrder(a), phaseOrder(b)),
			boolFirst(!podReady(a), !podReady(b)),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			cmp.Compare(onNode[b.Spec.NodeName], onNode[a.Spec.NodeName]),
			youngestFirst(readySince(a), readySince(b), now, a, b),
			cmp.Compare(restarts(b), restarts(a)),
			youngestFirst(a.CreationTimestamp.Time, b.CreationTimestamp.Time, now, a, b),
		)
	})
	return sorted[:n]
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func phaseOrder(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// deletionCost is the annotation controller.kubernetes.io/pod-deletion-cost.
func deletionCost(p *corev1.Pod) int32 {
	n, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func readySince(p *corev1.Pod) time.Time {
	if c := podCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func restarts(p *corev1.Pod) int32 {
	var n int32
	for _, c := range p.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// youngestFirst compares ages on a logarithmic scale, as Kubernetes does since
// 1.22: pods of about the same age are taken in the order of their UIDs, which
// is arbitrary but stable. A time that is not known counts as the youngest.
func youngestFirst(a, b, now time.Time, pa, pb *corev1.Pod) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero():
		return -1
	case b.IsZero():
		return 1
	}
	rank := func(t time.Time) int64 {
		if d := now.Sub(t); d > 0 {
			return int64(math.Log2(float64(d)))
		}
		return -1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(pa.UID, pb.UID))
}
