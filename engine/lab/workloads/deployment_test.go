package workloads

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func rolling(replicas int32, surge, unavailable string) *appsv1.Deployment {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}},
	}}
}

func sized(name string, n int32, annotations ...string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}, Spec: appsv1.ReplicaSetSpec{Replicas: &n}}
	for i := 0; i+1 < len(annotations); i += 2 {
		rs.Annotations[annotations[i]] = annotations[i+1]
	}
	return rs
}

// The cases are those in the comment of Kubernetes' ResolveFenceposts, and the
// defaults of 25 %.
func TestFenceposts(t *testing.T) {
	for _, tc := range []struct {
		replicas                 int32
		surge, unavailable       string
		wantSurge, wantUnavailab int32
	}{
		{2, "0%", "1%", 0, 1},
		{1, "0%", "1%", 0, 1},
		{2, "1%", "25%", 1, 0},
		{1, "1%", "25%", 1, 0},
		{2, "1%", "0%", 1, 0},
		{4, "25%", "25%", 1, 1},
		{7, "25%", "25%", 2, 1},
		{10, "3", "2", 3, 2},
		{3, "0", "10", 0, 3},
	} {
		d := rolling(tc.replicas, tc.surge, tc.unavailable)
		if s, u := maxSurge(d), maxUnavailable(d); s != tc.wantSurge || u != tc.wantUnavailab {
			t.Errorf("%d replicas, surge %s, unavailable %s: %d and %d, want %d and %d", tc.replicas, tc.surge, tc.unavailable, s, u, tc.wantSurge, tc.wantUnavailab)
		}
	}
}

func TestTheNewestRevisionGrowsAsFarAsSurgeAllows(t *testing.T) {
	d := rolling(10, "3", "2")
	for _, tc := range []struct{ old, current, want int32 }{
		{10, 0, 3}, // the surge
		{8, 3, 5},  // what the old ones gave up
		{13, 0, 0}, // rolled over: no room
		{0, 8, 10}, // no more than wanted
		{14, 2, 2}, // never smaller
	} {
		if got := newReplicaSetSize(d, []*appsv1.ReplicaSet{sized("old", tc.old), sized("new", tc.current)}, tc.current); got != tc.want {
			t.Errorf("old %d, new %d: %d, want %d", tc.old, tc.current, got, tc.want)
		}
	}
}

// The case is the one in Kubernetes' documentation of proportional scaling: 10
// replicas, surge 3, unavailable 2, stuck at 8 old and 5 new, scaled to 15.
func TestScalingInTheMiddleOfARolloutIsProportional(t *testing.T) {
	d := rolling(15, "3", "2")
	d.Status.Replicas = 13
	old, cur := sized("old", 8, maxReplicasAnnotation, "13"), sized("new", 5, maxReplicasAnnotation, "13")
	add := int32(18 - 13)
	first := proportion(old, d, add, 0)
	second := proportion(cur, d, add, first)
	if first != 3 || second != 2 {
		t.Errorf("old +%d, new +%d, want +3 and +2", first, second)
	}
	*d.Spec.Replicas = 0
	if got := proportion(old, d, -13, 0); got != -8 {
		t.Errorf("scaled to zero the old one changes by %d, want -8", got)
	}
}

func TestRevisionsOfAReplicaSetThatIsRolledBackToAreKept(t *testing.T) {
	d := rolling(1, "1", "0")
	d.Annotations = map[string]string{"why": "because", revisionAnnotation: "7", corev1.LastAppliedConfigAnnotation: "{}"}
	rs := sized("web", 1)
	if !annotate(rs, d, 3) || rs.Annotations[revisionAnnotation] != "3" || rs.Annotations["why"] != "because" {
		t.Errorf("annotations %v", rs.Annotations)
	}
	if _, ok := rs.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		t.Error("what kubectl apply keeps must not be copied")
	}
	if annotate(rs, d, 3) {
		t.Error("nothing changed, and yet it says so")
	}
	for _, next := range []int64{5, 8} {
		if !annotate(rs, d, next) {
			t.Errorf("revision %d was not taken", next)
		}
	}
	if got := rs.Annotations[revisionHistoryAnnotation]; got != "3,5" || rs.Annotations[revisionAnnotation] != "8" {
		t.Errorf("history %q, revision %s", got, rs.Annotations[revisionAnnotation])
	}
	if annotate(rs, d, 2) {
		t.Error("a revision never falls")
	}
	long := strings.TrimSuffix(strings.Repeat("1234567,", maxHistoryChars/8), ",")
	if got := appendHistory(long, "42"); len(got) > maxHistoryChars || !strings.HasSuffix(got, ",42") {
		t.Errorf("a long history has %d characters and ends in %q", len(got), got[len(got)-5:])
	}
}

func TestTemplatesAreComparedWithoutTheirHash(t *testing.T) {
	a := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	b := a.DeepCopy()
	b.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc"
	if !sameTemplate(a, b) || !sameTemplate(b, a) {
		t.Error("the hash counts")
	}
	b.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	if sameTemplate(a, b) {
		t.Error("a restart does not count")
	}
	if b.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "" {
		t.Error("comparing has changed the template")
	}
}
