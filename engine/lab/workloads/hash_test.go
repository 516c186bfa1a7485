package workloads

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The wanted values were computed by ComputeHash of k8s.io/kubernetes v1.37.2
// pkg/controller, without and with a collision count of 1.
func TestThePodTemplateHashIsKubernetes(t *testing.T) {
	for _, tc := range []struct{ template, hash, collided string }{
		{
			`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"nginx","image":"nginx"}]}}`,
			"5dcbb55d4b", "66fcc97979",
		},
		{
			`{"metadata":{"creationTimestamp":null,"labels":{"app":"web"},"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}},"spec":{"containers":[{"name":"nginx","image":"nginx","resources":{"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always","readinessProbe":{"httpGet":{"path":"/","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":2,"successThreshold":1,"failureThreshold":3}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}`,
			"55f8c8bcd7", "65cd88cc54",
		},
	} {
		var template corev1.PodTemplateSpec
		if err := json.Unmarshal([]byte(tc.template), &template); err != nil {
			t.Fatal(err)
		}
		one := int32(1)
		if got, collided := templateHash(&template, nil), templateHash(&template, &one); got != tc.hash || collided != tc.collided {
			t.Errorf("%s and %s, want %s and %s", got, collided, tc.hash, tc.collided)
		}
	}
}
