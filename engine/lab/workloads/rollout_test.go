package workloads_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestRollouts(t *testing.T) {
	c := newCluster(t, 3)

	t.Run("a deployment gets its pods, spread over the nodes, and scales", func(t *testing.T) {
		c.t = t
		d := c.deploy(deployment("scale", 6))
		nodes := map[string]int{}
		for _, p := range c.pods("scale") {
			nodes[p.Spec.NodeName]++
		}
		if len(nodes) != 3 || nodes["node-1"] != 2 || nodes["node-2"] != 2 {
			t.Errorf("pods by node: %v", nodes)
		}
		if d.Annotations["deployment.kubernetes.io/revision"] != "1" {
			t.Errorf("revision %q", d.Annotations["deployment.kubernetes.io/revision"])
		}
		rs := c.replicaSets("scale")[0]
		hash := rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		if rs.Name != "scale-"+hash || rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] != hash || !metav1.IsControlledBy(&rs, d) {
			t.Errorf("ReplicaSet %s, selector %v", rs.Name, rs.Spec.Selector)
		}
		c.change("scale", replicas(9))
		c.rolledOut("scale")
		c.change("scale", replicas(0))
		c.rolledOut("scale")
		for _, want := range []string{"from 0 to 6", "from 6 to 9"} {
			c.untilEvent("Deployment", "scale", "ScalingReplicaSet: Scaled up replica set "+rs.Name+" "+want)
		}
		c.untilEvent("Deployment", "scale", "ScalingReplicaSet: Scaled down replica set "+rs.Name+" from 9 to 0")
		c.untilEvent("ReplicaSet", rs.Name, "SuccessfulCreate: Created pod: "+rs.Name+"-")
		c.untilEvent("ReplicaSet", rs.Name, "SuccessfulDelete: Deleted pod: "+rs.Name+"-")
	})

	t.Run("scaling down takes the pods that are not ready", func(t *testing.T) {
		c.t = t
		gate := corev1.PodConditionType("example.com/gate")
		d := deployment("unready", 5, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
		})
		if _, err := c.client.AppsV1().Deployments("default").Create(c.ctx, d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.until("all pods run", func() (bool, error) {
			return !slices.ContainsFunc(c.pods("unready"), func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning }) && len(c.pods("unready")) == 5, nil
		})
		var open []string
		for _, p := range c.pods("unready")[2:] {
			open = append(open, p.Name)
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, gate)
			if _, err := c.client.CoreV1().Pods("default").Patch(c.ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
		c.until("three are ready", func() (bool, error) { return c.get("unready").Status.ReadyReplicas == 3, nil })
		c.change("unready", replicas(3))
		c.rolledOut("unready")
		slices.Sort(open)
		if left := names(c.pods("unready")); !slices.Equal(left, open) {
			t.Errorf("%v are left, the ready ones were %v", left, open)
		}
	})

	for _, tc := range []struct {
		surge, unavailable string
		replicas           int
		most, least        int
	}{
		{"25%", "25%", 4, 5, 3},
		{"0", "1", 3, 3, 2},
		{"2", "0", 4, 6, 4},
	} {
		t.Run(fmt.Sprintf("a restart of %d keeps surge %s and unavailable %s at every moment", tc.replicas, tc.surge, tc.unavailable), func(t *testing.T) {
			c.t = t
			name := strings.Trim(fmt.Sprintf("restart-%s-%s", strings.Trim(tc.surge, "%"), strings.Trim(tc.unavailable, "%")), "-")
			c.deploy(deployment(name, int32(tc.replicas), strategy(tc.surge, tc.unavailable)))
			before := names(c.pods(name))
			// Surge is a promise about what the ReplicaSets ask for: one may
			// create its pod a moment before the other deletes its own, in
			// Kubernetes too.
			surge := c.followReplicaSets(name, func(rss []*appsv1.ReplicaSet) error {
				n := 0
				for _, rs := range rss {
					n += int(*rs.Spec.Replicas)
				}
				if n > tc.most {
					return fmt.Errorf("%d pods are asked for, want at most %d", n, tc.most)
				}
				return nil
			})
			availability := c.followPods(name, func(pods []*corev1.Pod) error {
				n := 0
				for _, p := range pods {
					if p.DeletionTimestamp == nil && ready(p) {
						n++
					}
				}
				if n < tc.least {
					return fmt.Errorf("%d pods are available, want at least %d", n, tc.least)
				}
				return nil
			})
			c.change(name, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			})
			c.rolledOut(name)
			if err := errors.Join(surge(), availability()); err != nil {
				t.Error(err)
			}
			for _, n := range names(c.pods(name)) {
				if slices.Contains(before, n) {
					t.Errorf("%s was not replaced", n)
				}
			}
		})
	}

	t.Run("a Recreate rollout never runs old and new pods together", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("recreate", 3, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }))
		watched := c.followPods("recreate", func(pods []*corev1.Pod) error {
			images := map[string]bool{}
			for _, p := range pods {
				if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
					images[p.Spec.Containers[0].Image] = true
				}
			}
			if len(images) > 1 {
				return fmt.Errorf("pods of %v run together", images)
			}
			return nil
		})
		c.change("recreate", image("v2"))
		c.rolledOut("recreate")
		if err := watched(); err != nil {
			t.Error(err)
		}
	})

	t.Run("an undo goes back to the old ReplicaSet under a new revision", func(t *testing.T) {
		c.t = t
		first := c.deploy(deployment("undo", 2))
		c.change("undo", image("v2"))
		c.rolledOut("undo")
		// What kubectl rollout undo does: put the old template back.
		c.change("undo", func(d *appsv1.Deployment) { d.Spec.Template = first.Spec.Template })
		d := c.rolledOut("undo")
		rss := c.replicaSets("undo")
		v1 := c.byImage("undo", "v1")
		if len(rss) != 2 || *v1.Spec.Replicas != 2 || v1.Annotations["deployment.kubernetes.io/revision"] != "3" || v1.Annotations["deployment.kubernetes.io/revision-history"] != "1" {
			t.Errorf("%d ReplicaSets; the old one has %d replicas and %v", len(rss), *v1.Spec.Replicas, v1.Annotations)
		}
		if got := d.Annotations["deployment.kubernetes.io/revision"]; got != "3" {
			t.Errorf("the deployment has revision %s", got)
		}
	})

	t.Run("old revisions beyond the limit are deleted", func(t *testing.T) {
		c.t = t
		limit := int32(1)
		c.deploy(deployment("history", 1, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = &limit }))
		for _, v := range []string{"v2", "v3", "v4"} {
			c.change("history", image(v))
			c.rolledOut("history")
		}
		c.until("two are left", func() (bool, error) { return len(c.replicaSets("history")) == 2, nil })
		c.byImage("history", "v3")
		c.byImage("history", "v4")
	})

	t.Run("a paused deployment scales but does not roll out", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("paused", 2))
		c.change("paused", func(d *appsv1.Deployment) { d.Spec.Paused = true })
		c.change("paused", image("v2"))
		c.change("paused", replicas(4))
		c.until("it has four pods", func() (bool, error) {
			d := c.get("paused")
			return d.Status.AvailableReplicas == 4 && d.Status.ObservedGeneration == d.Generation, nil
		})
		if rss := c.replicaSets("paused"); len(rss) != 1 {
			t.Errorf("%d ReplicaSets", len(rss))
		}
		if r := reason(c.get("paused"), appsv1.DeploymentProgressing); r != "DeploymentPaused" {
			t.Errorf("Progressing has reason %s", r)
		}
		c.change("paused", func(d *appsv1.Deployment) { d.Spec.Paused = false })
		c.rolledOut("paused")
		c.byImage("paused", "v2")
	})

	for _, tc := range []struct {
		strategy  appsv1.DeploymentStrategyType
		available int32 // once it is stuck
	}{
		{appsv1.RollingUpdateDeploymentStrategyType, 2},
		{appsv1.RecreateDeploymentStrategyType, 0},
	} {
		t.Run(fmt.Sprintf("conditions tell a %s rollout that progresses, is done, and is stuck", tc.strategy), func(t *testing.T) {
			c.t = t
			name := "stuck-" + strings.ToLower(string(tc.strategy))
			deadline := int32(1)
			c.deploy(deployment(name, 2, func(d *appsv1.Deployment) {
				d.Spec.ProgressDeadlineSeconds = &deadline
				d.Spec.Strategy.Type = tc.strategy
			}))
			c.until("it is done", func() (bool, error) {
				d := c.get(name)
				return reason(d, appsv1.DeploymentProgressing) == "NewReplicaSetAvailable" && reason(d, appsv1.DeploymentAvailable) == "MinimumReplicasAvailable", nil
			})
			c.change(name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "where"} })
			c.until("it is stuck", func() (bool, error) {
				return reason(c.get(name), appsv1.DeploymentProgressing) == "ProgressDeadlineExceeded", nil
			})
			d := c.get(name)
			if d.Status.AvailableReplicas != tc.available {
				t.Errorf("%d available, want %d", d.Status.AvailableReplicas, tc.available)
			}
			if d.Generation != 2 {
				t.Errorf("generation %d after one change: the controller's own writes must not count as changes", d.Generation)
			}
		})
	}

	t.Run("a pod is available only after minReadySeconds", func(t *testing.T) {
		c.t = t
		d := c.deploy(deployment("minready", 1, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 2 }))
		var at time.Time
		for _, cond := range d.Status.Conditions {
			if cond.Type == appsv1.DeploymentAvailable {
				at = cond.LastTransitionTime.Time
			}
		}
		p := c.pods("minready")[0]
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && at.Sub(cond.LastTransitionTime.Time) < 2*time.Second {
				t.Errorf("ready at %v, available at %v", cond.LastTransitionTime, at)
			}
		}
	})

	t.Run("a pod that is relabelled is released and replaced", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("relabel", 3))
		p := c.pods("relabel")[0]
		c.label(p.Name, "app", "lost")
		c.until("it is replaced", func() (bool, error) {
			pods := c.pods("relabel")
			return len(pods) == 3 && !slices.Contains(names(pods), p.Name) && c.get("relabel").Status.AvailableReplicas == 3, nil
		})
		c.until("it is released", func() (bool, error) {
			lost, err := c.client.CoreV1().Pods("default").Get(c.ctx, p.Name, metav1.GetOptions{})
			return err == nil && len(lost.OwnerReferences) == 0 && lost.DeletionTimestamp == nil && ready(lost), err
		})
		// And back: it is adopted, and one too many then.
		c.label(p.Name, "app", "relabel")
		c.until("there are three again", func() (bool, error) {
			return len(c.pods("relabel")) == 3 && c.get("relabel").Status.Replicas == 3, nil
		})
	})

	t.Run("a pod that is deleted is replaced at once", func(t *testing.T) {
		c.t = t
		c.deploy(deployment("replace", 2))
		p := c.pods("replace")[0]
		// It takes its time to stop, and its replacement does not wait.
		c.annotate(p.Name, "kconverge.dev/stop-after", "1h")
		if err := c.client.CoreV1().Pods("default").Delete(c.ctx, p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.until("there are three, of which one terminates", func() (bool, error) {
			pods, terminating := c.pods("replace"), 0
			for _, q := range pods {
				if q.DeletionTimestamp != nil {
					terminating++
				}
			}
			s := c.get("replace").Status
			return len(pods) == 3 && terminating == 1 && s.AvailableReplicas == 2 && s.TerminatingReplicas != nil && *s.TerminatingReplicas == 1, nil
		})
	})
}

func TestADeletedPodIsUnreadyAndTerminalBeforeItGoes(t *testing.T) {
	c := newCluster(t, 1)
	c.deploy(deployment("web", 1))
	p := c.pods("web")[0]
	w, err := c.client.CoreV1().Pods("default").Watch(c.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name, ResourceVersion: p.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.client.CoreV1().Pods("default").Delete(c.ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("the watch broke: %+v", e.Object)
		}
		state := fmt.Sprintf("%s %s ready=%t terminating=%t grace=%d", e.Type, p.Status.Phase, ready(p), p.DeletionTimestamp != nil, *p.DeletionGracePeriodSeconds)
		if len(got) == 0 || got[len(got)-1] != state {
			got = append(got, state)
		}
		if e.Type == watch.Deleted {
			break
		}
	}
	want := []string{
		"MODIFIED Running ready=true terminating=true grace=30",
		"MODIFIED Succeeded ready=false terminating=true grace=30",
		// The API server's own step of a deletion without grace.
		"MODIFIED Succeeded ready=false terminating=true grace=0",
		"DELETED Succeeded ready=false terminating=true grace=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("states:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	c.untilEvent("Pod", p.Name, "Killing: Stopping container app")
}

func reason(d *appsv1.Deployment, t appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c.Reason
		}
	}
	return ""
}

func (c *cluster) label(pod, key, value string) {
	c.t.Helper()
	c.patch(pod, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
}

func (c *cluster) annotate(pod, key, value string) {
	c.t.Helper()
	c.patch(pod, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

func (c *cluster) patch(pod, patch string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Pods("default").Patch(c.ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
