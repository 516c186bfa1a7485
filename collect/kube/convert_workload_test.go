package kube

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect"
)

func TestOfAStatefulSetThePartitionIsWhatItsUpdateLeavesAlone(t *testing.T) {
	three, two, nine := int32(3), int32(2), int32(9)
	for _, tc := range []struct {
		name     string
		strategy appsv1.StatefulSetUpdateStrategy
		want     int32
	}{
		{"none", appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}, 0},
		{"two", appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &two}}, 2},
		{"more than there are", appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &nine}}, 3},
		{"all", appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ConvertStatefulSet(&appsv1.StatefulSet{
				Spec:   appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: tc.strategy},
				Status: appsv1.StatefulSetStatus{UpdatedReplicas: 1, UpdateRevision: "db-2"},
			})
			if w.Partition != tc.want || w.Replicas != 3 || w.Updated != 1 || w.Revision != "db-2" {
				t.Errorf("got %+v, want partition %d", w, tc.want)
			}
		})
	}
}

func TestOfADaemonSetTheReplicasAreTheNodesThatShouldHaveAPod(t *testing.T) {
	w := ConvertDaemonSet(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 4, Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 4, DesiredNumberScheduled: 3, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberReady: 2, NumberAvailable: 1},
	})
	if w.Replicas != 3 || w.StatusReplicas != 2 || w.Updated != 1 || w.Ready != 2 || w.Available != 1 || w.Revision != "2" || w.Partition != 0 {
		t.Errorf("got %+v", w)
	}
}

func TestMinReadySecondsOfEachWorkload(t *testing.T) {
	for kind, w := range map[string]*collect.Workload{
		"Deployment":  ConvertDeployment(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{MinReadySeconds: 30}}),
		"ReplicaSet":  ConvertReplicaSet(&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{MinReadySeconds: 30}}),
		"StatefulSet": ConvertStatefulSet(&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{MinReadySeconds: 30}}),
		"DaemonSet":   ConvertDaemonSet(&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{MinReadySeconds: 30}}),
	} {
		if w.MinReady != 30*time.Second {
			t.Errorf("%s: %s", kind, w.MinReady)
		}
	}
}
