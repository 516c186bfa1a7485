package workloads_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/lab/workloads"
)

func nodeOptions(o *workloads.Options) {
	o.NodeGrace = 10 * time.Second
}

// podOn creates a pod on a node by hand and waits until it is ready.
func (c *cluster) podOn(name, node string, tolerateSeconds int64) {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods("default").Create(c.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "v1"}},
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &tolerateSeconds}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.until(name+" is ready", func() (bool, error) { return ready(c.pod(name)), nil })
}

func (c *cluster) pod(name string) *corev1.Pod {
	c.t.Helper()
	p, err := c.client.CoreV1().Pods("default").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *cluster) node(name string) (ready corev1.ConditionStatus, taints []string) {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady {
			ready = x.Status
		}
	}
	for _, x := range n.Spec.Taints {
		taints = append(taints, x.Key+":"+string(x.Effect))
	}
	return ready, taints
}

func TestANodeThatGoesSilentTakesItsPodsOutAndLosesThem(t *testing.T) {
	c := newCluster(t, 2, nodeOptions)
	c.podOn("patient", "node-1", 3600)
	c.podOn("leaving", "node-1", 0)
	c.podOn("elsewhere", "node-2", 3600)
	c.stop["node-1"]()
	c.until("node-1 is not ready and tainted", func() (bool, error) {
		r, taints := c.node("node-1")
		return r == corev1.ConditionUnknown && len(taints) == 2 && taints[0] == "node.kubernetes.io/unreachable:NoSchedule", nil
	})
	c.until("its pods are unready", func() (bool, error) { return !ready(c.pod("patient")) && !ready(c.pod("leaving")), nil })
	c.until("the one that tolerates nothing is told to go", func() (bool, error) { return c.pod("leaving").DeletionTimestamp != nil, nil })
	if c.pod("patient").DeletionTimestamp != nil {
		t.Error("a pod that tolerates the taint was evicted")
	}
	c.until("the other node and its pod are untouched", func() (bool, error) {
		r, taints := c.node("node-2")
		p := c.pod("elsewhere")
		return r == corev1.ConditionTrue && len(taints) == 0 && ready(p) && p.DeletionTimestamp == nil, nil
	})
}
