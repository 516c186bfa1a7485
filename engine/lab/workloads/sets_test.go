package workloads_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "v1"}}},
	}
}

func (c *cluster) createStatefulSet(name string, replicas int32, change ...func(*appsv1.StatefulSet)) {
	c.t.Helper()
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name, Template: template(name),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	for _, f := range change {
		f(s)
	}
	if _, err := c.client.AppsV1().StatefulSets("default").Create(c.ctx, s, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) changeStatefulSet(name string, f func(*appsv1.StatefulSet)) {
	c.t.Helper()
	err := retry.RetryOnConflict(patient, func() error {
		s, err := c.client.AppsV1().StatefulSets("default").Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(s)
		_, err = c.client.AppsV1().StatefulSets("default").Update(c.ctx, s, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// setSettled waits until the StatefulSet has exactly these pods, each as
// NAME=IMAGE, ready and not terminating.
func (c *cluster) setSettled(name string, want ...string) *appsv1.StatefulSet {
	c.t.Helper()
	var s *appsv1.StatefulSet
	var got []string
	c.until(fmt.Sprintf("%s has %v", name, want), func() (bool, error) {
		var err error
		if s, err = c.client.AppsV1().StatefulSets("default").Get(c.ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		got = nil
		for _, p := range c.pods(name) {
			if p.DeletionTimestamp == nil && ready(&p) {
				got = append(got, strings.TrimPrefix(p.Name, name+"-")+"="+p.Spec.Containers[0].Image)
			} else {
				got = append(got, p.Name+" busy")
			}
		}
		slices.Sort(got)
		return s.Status.ObservedGeneration == s.Generation && int(s.Status.ReadyReplicas) == len(want) && slices.Equal(got, want), nil
	})
	return s
}

func TestAStatefulSetStartsAndStopsItsPodsInOrder(t *testing.T) {
	c := newCluster(t, 2)
	// A pod may be there only while all before it are ready and staying.
	stop := c.followPods("db", func(pods []*corev1.Pod) error {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		for i, p := range pods {
			if want := fmt.Sprintf("db-%d", i); p.Name != want {
				return fmt.Errorf("pod %s where %s should be", p.Name, want)
			}
			if i < len(pods)-1 && (!ready(p) || p.DeletionTimestamp != nil) {
				return fmt.Errorf("%s is there although %s is not ready to be followed", pods[len(pods)-1].Name, p.Name)
			}
		}
		return nil
	})
	c.createStatefulSet("db", 3)
	c.setSettled("db", "0=v1", "1=v1", "2=v1")
	c.changeStatefulSet("db", func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 1 })
	c.setSettled("db", "0=v1")
	c.changeStatefulSet("db", func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 2 })
	c.setSettled("db", "0=v1", "1=v1")
	if err := stop(); err != nil {
		t.Error(err)
	}
	p := c.pods("db")[0]
	if p.Spec.Hostname != p.Name || p.Spec.Subdomain != "db" || p.Labels[appsv1.StatefulSetPodNameLabel] != p.Name {
		t.Errorf("identity: hostname %q subdomain %q labels %v", p.Spec.Hostname, p.Spec.Subdomain, p.Labels)
	}
}

func TestAParallelStatefulSetDoesNotWait(t *testing.T) {
	c := newCluster(t, 1)
	c.createStatefulSet("db", 3, func(s *appsv1.StatefulSet) {
		s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		// Nothing makes these ready.
		s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/never"}}
	})
	c.until("all three are there at once", func() (bool, error) { return len(c.pods("db")) == 3, nil })
}

func TestARollingUpdateOfAStatefulSetGoesDownToItsPartition(t *testing.T) {
	c := newCluster(t, 2)
	c.createStatefulSet("db", 3)
	c.setSettled("db", "0=v1", "1=v1", "2=v1")
	down := c.followPods("db", func(pods []*corev1.Pod) error {
		busy := 0
		for _, p := range pods {
			if p.DeletionTimestamp != nil || !ready(p) {
				busy++
			}
		}
		if busy > 1 || len(pods) < 2 {
			return fmt.Errorf("%d of %d pods are out of service", busy, len(pods))
		}
		return nil
	})
	partition := int32(2)
	c.changeStatefulSet("db", func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "v2"
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
	})
	s := c.setSettled("db", "0=v1", "1=v1", "2=v2")
	if s.Status.CurrentRevision == s.Status.UpdateRevision {
		t.Errorf("the update is not complete, but its revision is the current one: %+v", s.Status)
	}
	c.changeStatefulSet("db", func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 })
	c.setSettled("db", "0=v2", "1=v2", "2=v2")
	c.until("the new revision is the current one", func() (bool, error) {
		s, err := c.client.AppsV1().StatefulSets("default").Get(c.ctx, "db", metav1.GetOptions{})
		return err == nil && s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.UpdatedReplicas == 3 && s.Status.CurrentReplicas == 3, err
	})
	if err := down(); err != nil {
		t.Error(err)
	}
	// Back to the first template: its revision is used again.
	c.changeStatefulSet("db", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "v1" })
	c.setSettled("db", "0=v1", "1=v1", "2=v1")
	revs, err := c.client.AppsV1().ControllerRevisions("default").List(c.ctx, metav1.ListOptions{})
	if err != nil || len(revs.Items) != 2 {
		t.Errorf("%d revisions, %v; want 2", len(revs.Items), err)
	}
}

func (c *cluster) createDaemonSet(name string, change ...func(*appsv1.DaemonSet)) {
	c.t.Helper()
	d := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       appsv1.DaemonSetSpec{Template: template(name), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
	for _, f := range change {
		f(d)
	}
	if _, err := c.client.AppsV1().DaemonSets("default").Create(c.ctx, d, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// daemonSettled waits until the DaemonSet has one ready pod of the image on each
// of the nodes.
func (c *cluster) daemonSettled(name, image string, nodes ...string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%s runs %s on %v", name, image, nodes), func() (bool, error) {
		d, err := c.client.AppsV1().DaemonSets("default").Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var on []string
		for _, p := range c.pods(name) {
			if p.DeletionTimestamp != nil || !ready(&p) || p.Spec.Containers[0].Image != image {
				return false, nil
			}
			on = append(on, p.Spec.NodeName)
		}
		slices.Sort(on)
		n := int32(len(nodes))
		s := d.Status
		return slices.Equal(on, nodes) && s.ObservedGeneration == d.Generation && s.DesiredNumberScheduled == n && s.NumberAvailable == n && s.UpdatedNumberScheduled == n, nil
	})
}

func TestADaemonSetHasOnePodOnEachNodeThatItFits(t *testing.T) {
	c := newCluster(t, 3)
	c.createDaemonSet("agent")
	c.daemonSettled("agent", "v1", "node-1", "node-2", "node-3")
	c.changeNode("node-2", func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "gpu", Value: "1", Effect: corev1.TaintEffectNoExecute})
	})
	c.daemonSettled("agent", "v1", "node-1", "node-3")
	c.changeNode("node-2", func(n *corev1.Node) { n.Spec.Taints, n.Spec.Unschedulable = nil, true })
	c.daemonSettled("agent", "v1", "node-1", "node-2", "node-3")
}

func TestADaemonSetRollsOutOneNodeAtATime(t *testing.T) {
	c := newCluster(t, 3)
	c.createDaemonSet("agent")
	c.daemonSettled("agent", "v1", "node-1", "node-2", "node-3")
	stop := c.followPods("agent", func(pods []*corev1.Pod) error {
		up := 0
		for _, p := range pods {
			if p.DeletionTimestamp == nil && ready(p) {
				up++
			}
		}
		if up < 2 {
			return fmt.Errorf("only %d pods are up", up)
		}
		return nil
	})
	err := retry.RetryOnConflict(patient, func() error {
		d, err := c.client.AppsV1().DaemonSets("default").Get(c.ctx, "agent", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = "v2"
		_, err = c.client.AppsV1().DaemonSets("default").Update(c.ctx, d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.daemonSettled("agent", "v2", "node-1", "node-2", "node-3")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func (c *cluster) changeNode(name string, f func(*corev1.Node)) {
	c.t.Helper()
	err := retry.RetryOnConflict(patient, func() error {
		n, err := c.client.CoreV1().Nodes().Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(n)
		_, err = c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}
