package workloads

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The annotations that record on a ReplicaSet for how many pods its Deployment
// was when it was last scaled; a difference to the Deployment's spec is how a
// scaling is told from a rollout.
const (
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// fenceposts resolves maxSurge (rounded up) and maxUnavailable (rounded down)
// of a rolling update. When both come to nothing, one pod may be unavailable,
// or there would be no progress. A value that does not parse, which the API
// server refuses, counts as zero.
func fenceposts(d *appsv1.Deployment) (surge, unavailable int32) {
	ru := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || ru == nil {
		return 0, 0
	}
	scaled := func(v *intstr.IntOrString, up bool) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(v, intstr.FromInt32(0)), int(*d.Spec.Replicas), up)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	surge, unavailable = scaled(ru.MaxSurge, true), scaled(ru.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func maxSurge(d *appsv1.Deployment) int32 {
	s, _ := fenceposts(d)
	return s
}

// maxUnavailable is never more than there are replicas.
func maxUnavailable(d *appsv1.Deployment) int32 {
	_, u := fenceposts(d)
	return min(u, *d.Spec.Replicas)
}

// newReplicaSetSize is how large the newest revision may be now.
func newReplicaSetSize(d *appsv1.Deployment, all []*appsv1.ReplicaSet, current int32) int32 {
	want := *d.Spec.Replicas
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return want
	}
	room := want + maxSurge(d) - specReplicas(all)
	if room <= 0 {
		return current
	}
	return current + min(room, want-current)
}

// proportion is the share of add (which may be negative) that falls to a
// ReplicaSet when a Deployment is scaled in the middle of a rollout; added is
// what others have been given before.
func proportion(rs *appsv1.ReplicaSet, d *appsv1.Deployment, add, added int32) int32 {
	if *rs.Spec.Replicas == 0 || add == 0 || add == added {
		return 0
	}
	part := fraction(rs, d)
	if add > 0 {
		return min(part, add-added)
	}
	return max(part, add-added)
}

func fraction(rs *appsv1.ReplicaSet, d *appsv1.Deployment) int32 {
	size := *rs.Spec.Replicas
	if *d.Spec.Replicas == 0 {
		return -size
	}
	before, ok := annotationInt(rs, maxReplicasAnnotation)
	if !ok || before == 0 {
		if before = d.Status.Replicas; before == 0 {
			return 0
		}
	}
	scaled := float64(size*(*d.Spec.Replicas+maxSurge(d))) / float64(before)
	return int32(math.Round(scaled)) - size
}

func annotationInt(rs *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseInt(rs.Annotations[key], 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int32(n), true
}

func specReplicas(rss []*appsv1.ReplicaSet) int32 {
	return sum(rss, func(rs *appsv1.ReplicaSet) int32 { return *rs.Spec.Replicas })
}

func availableReplicas(rss []*appsv1.ReplicaSet) int32 {
	return sum(rss, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.AvailableReplicas })
}

func sum(rss []*appsv1.ReplicaSet, f func(*appsv1.ReplicaSet) int32) int32 {
	var n int32
	for _, rs := range rss {
		n += f(rs)
	}
	return n
}

// active are the ReplicaSets that want pods.
func active(rss []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, rs := range rss {
		if *rs.Spec.Replicas > 0 {
			out = append(out, rs)
		}
	}
	return out
}

func oldestFirst(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// largestFirst orders by size; equal ones by age.
func largestFirst(newerFirst bool) func(a, b *appsv1.ReplicaSet) int {
	return func(a, b *appsv1.ReplicaSet) int {
		age := oldestFirst(a, b)
		if newerFirst {
			age = -age
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), age)
	}
}

func sortedBy(rss []*appsv1.ReplicaSet, by func(a, b *appsv1.ReplicaSet) int) []*appsv1.ReplicaSet {
	out := slices.Clone(rss)
	slices.SortStableFunc(out, by)
	return out
}
