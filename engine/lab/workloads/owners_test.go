package workloads_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *cluster) deleteDeployment(name string, policy metav1.DeletionPropagation) {
	c.t.Helper()
	if err := c.client.AppsV1().Deployments("default").Delete(c.ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		c.t.Fatal(err)
	}
}

func TestGarbageCollection(t *testing.T) {
	c := newCluster(t, 2)

	t.Run("a deployment takes its replica sets and pods along", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("background", 3))
		c.change("background", image("v2"))
		c.rolledOut("background")
		c.deleteDeployment("background", metav1.DeletePropagationBackground)
		c.until("all is gone", func() (bool, error) {
			return len(c.replicaSets("background")) == 0 && len(c.pods("background")) == 0, nil
		})
	})

	t.Run("in the foreground the deployment goes last", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("foreground", 3))
		w, err := c.client.AppsV1().Deployments("default").Watch(c.ctx, metav1.ListOptions{FieldSelector: "metadata.name=foreground"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		c.deleteDeployment("foreground", metav1.DeletePropagationForeground)
		for e := range w.ResultChan() {
			if e.Type != "DELETED" {
				continue
			}
			if n, m := len(c.replicaSets("foreground")), len(c.pods("foreground")); n != 0 || m != 0 {
				t.Errorf("%d replica sets and %d pods were left when it went", n, m)
			}
			return
		}
		t.Error("it did not go")
	})

	t.Run("orphaned pods live on and are adopted by a new deployment", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("orphan", 2))
		before := names(c.pods("orphan"))
		c.deleteDeployment("orphan", metav1.DeletePropagationOrphan)
		c.gone("the deployment", func() error {
			_, err := c.client.AppsV1().Deployments("default").Get(c.ctx, "orphan", metav1.GetOptions{})
			return err
		})
		rss := c.replicaSets("orphan")
		if len(rss) != 1 || len(rss[0].OwnerReferences) != 0 {
			t.Fatalf("replica sets %+v", rss)
		}
		c.deploy(deployment("orphan", 2))
		c.until("the replica set is adopted", func() (bool, error) { return len(c.replicaSets("orphan")[0].OwnerReferences) == 1, nil })
		if rss := c.replicaSets("orphan"); len(rss) != 1 {
			t.Errorf("%d replica sets", len(rss))
		}
		after := names(c.pods("orphan"))
		if len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
			t.Errorf("pods %v, before %v", after, before)
		}
	})

	t.Run("endpoint slices go with their service", func(t *testing.T) {
		c.t = t
		svc, err := c.client.CoreV1().Services("default").Create(c.ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "svc"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slices := c.client.DiscoveryV1().EndpointSlices("default")
		_, err = slices.Create(c.ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: "svc-abc", Labels: map[string]string{discoveryv1.LabelServiceName: "svc"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(svc, corev1.SchemeGroupVersion.WithKind("Service"))},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.client.CoreV1().Services("default").Delete(c.ctx, "svc", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.gone("the slice", func() error {
			_, err := slices.Get(c.ctx, "svc-abc", metav1.GetOptions{})
			return err
		})
	})

	t.Run("an object whose owner never was is collected, one with another owner stays", func(t *testing.T) {
		c.t = t
		d := c.deploy(deployment("owner", 0))
		missing := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "never", UID: "never"}
		alive := *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
		alive.Controller = nil
		make := func(name string, refs ...metav1.OwnerReference) {
			_, err := c.client.CoreV1().Services("default").Create(c.ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: refs}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		make("kept", missing, alive)
		make("collected", missing)
		c.gone("the one", func() error {
			_, err := c.client.CoreV1().Services("default").Get(c.ctx, "collected", metav1.GetOptions{})
			return err
		})
		c.until("the other has lost its missing owner", func() (bool, error) {
			s, err := c.client.CoreV1().Services("default").Get(c.ctx, "kept", metav1.GetOptions{})
			return err == nil && len(s.OwnerReferences) == 1 && s.OwnerReferences[0].UID == d.UID, err
		})
	})
}

func TestScheduling(t *testing.T) {
	c := newCluster(t, 2)
	cordon := func(node string, on bool) {
		t.Helper()
		n, err := c.client.CoreV1().Nodes().Get(c.ctx, node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.Spec.Unschedulable = on
		if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cordon("node-1", true)
	cordon("node-2", true)
	if _, err := c.client.AppsV1().Deployments("default").Create(c.ctx, deployment("wait", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.until("the pod is unschedulable", func() (bool, error) {
		for _, p := range c.pods("wait") {
			for _, cond := range p.Status.Conditions {
				if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason == corev1.PodReasonUnschedulable {
					return true, nil
				}
			}
		}
		return false, nil
	})
	p := c.pods("wait")[0]
	c.untilEvent("Pod", p.Name, "FailedScheduling: 0/2 nodes are available: 2 node(s) were unschedulable.")
	cordon("node-2", false)
	c.rolledOut("wait")
	if p := c.pods("wait")[0]; p.Spec.NodeName != "node-2" {
		t.Errorf("the pod runs on %s", p.Spec.NodeName)
	}
	c.untilEvent("Pod", p.Name, "Scheduled: Successfully assigned default/"+p.Name+" to node-2")

	// Taints and node selectors count as well.
	n, err := c.client.CoreV1().Nodes().Get(c.ctx, "node-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.deploy(deployment("db", 3, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "db"}}
	}))
	cordon("node-1", false)
	c.deploy(deployment("web", 3))
	for _, p := range c.pods("web") {
		if p.Spec.NodeName != "node-1" {
			t.Errorf("%s runs on the tainted node", p.Name)
		}
	}
	c.deploy(deployment("picky", 2, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-1"}
	}))
	for _, p := range c.pods("picky") {
		if p.Spec.NodeName != "node-1" {
			t.Errorf("%s runs on %s", p.Name, p.Spec.NodeName)
		}
	}
}
