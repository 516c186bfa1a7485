package lab_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/timeline"
)

// TestFaultsOfPods plays those of the kubelet.
func TestFaultsOfPods(t *testing.T) {
	w := start(t, 1)
	w.deploy(2, "9s")
	w.settled()
	ctx := t.Context()
	probed := func(period int32) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","readinessProbe":{"httpGet":{"port":8080},"periodSeconds":%d,"failureThreshold":1}}]}}}}`, period)
		if _, err := w.client.AppsV1().Deployments("default").Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settled()
	}
	ready := func(n int) func(*timeline.Snapshot) bool {
		return func(s *timeline.Snapshot) bool {
			return have(s, n, 1) && s.Service("default", "web").State == timeline.Converged
		}
	}
	pods := func() []corev1.Pod {
		t.Helper()
		list, err := w.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	t.Run("stop-early", func(t *testing.T) {
		stopped := func() time.Duration {
			victim := pods()[0]
			began := time.Now()
			if err := w.client.CoreV1().Pods("default").Delete(ctx, victim.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.until("the pod is gone", func(*timeline.Snapshot) bool {
				_, err := w.client.CoreV1().Pods("default").Get(ctx, victim.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
			return time.Since(began)
		}
		if d := stopped(); d < 9*time.Second {
			t.Errorf("a pod that serves for 9 s was gone after %v", d)
		}
		w.settled()
		w.fault("stop-early=on@web")
		before := w.paths()
		early := stopped()
		w.settled()
		risk := false
		for _, p := range w.service(w.rt.Latest(), "web").Paths {
			risk = risk || !before[p.ID] && p.Op == timeline.OpRemove
		}
		if early >= 9*time.Second || !risk {
			t.Errorf("a pod that stops at once was gone after %v", early)
		}
		w.fault("stop-early=off")
	})
	t.Run("address-reuse", func(t *testing.T) {
		w.fault("stop-early=on@web")
		again := func() (gone, came string) {
			w.scale(2)
			w.settled()
			had := map[string]bool{}
			for _, p := range pods() {
				had[p.Status.PodIP] = true
			}
			w.scale(1)
			w.settled()
			for ip := range had {
				if !slices.ContainsFunc(pods(), func(p corev1.Pod) bool { return p.Status.PodIP == ip }) {
					gone = ip
				}
			}
			w.scale(2)
			w.settled()
			for _, p := range pods() {
				if p.Status.PodIP == gone || !had[p.Status.PodIP] {
					came = p.Status.PodIP
				}
			}
			return gone, came
		}
		if gone, came := again(); gone == came {
			t.Errorf("without the fault %s was used again at once", gone)
		}
		w.fault("address-reuse=on")
		if gone, came := again(); gone != came {
			t.Errorf("%s was given back, and the next pod got %s", gone, came)
		}
		w.fault("address-reuse=off", "stop-early=off")
	})
	t.Run("start-delay and listen-delay", func(t *testing.T) {
		w.fault("stop-early=on", "start-delay=3s@web")
		w.scale(3)
		w.settled()
		slow := 0
		for _, p := range pods() {
			scheduled, started := time.Time{}, time.Time{}
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled {
					scheduled = c.LastTransitionTime.Time
				}
			}
			if s := p.Status.ContainerStatuses[0].State.Running; s != nil {
				started = s.StartedAt.Time
			}
			if started.Sub(scheduled) >= 2*time.Second { // both are whole seconds
				slow++
			}
		}
		if slow == 0 {
			t.Error("no pod started 3s late")
		}
		w.fault("start-delay=off")
	})
	t.Run("probe-fail", func(t *testing.T) {
		probed(1)
		w.until("three are ready", ready(3))
		w.fault("probe-fail=on@web")
		w.until("none is ready", ready(0))
		w.fault("probe-fail=off")
		w.until("three are ready again", ready(3))
		found := false
		for _, p := range w.service(w.rt.Latest(), "web").Paths {
			found = found || p.Cause == timeline.CausePodUnready
		}
		if !found {
			t.Error("no path says that a pod was unready")
		}
	})
	t.Run("clock-skew", func(t *testing.T) {
		for _, c := range []struct {
			fault string
			off   time.Duration
		}{{"clock-skew=5m@node-1", 5 * time.Minute}, {"clock-skew=-5m@node-1", -5 * time.Minute}, {"clock-skew=off", 0}} {
			w.fault(c.fault)
			if err := w.client.CoreV1().Pods("default").Delete(ctx, pods()[0].Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.settled()
			right := 0
			for _, p := range pods() {
				for _, x := range p.Status.Conditions {
					at := x.LastTransitionTime.Time.Add(-c.off)
					if x.Type == corev1.PodReady && !at.Before(began.Truncate(time.Second)) && !at.After(time.Now()) {
						right++
					}
				}
			}
			if right != 1 {
				t.Errorf("%s: %d pods claim such a time, want the new one", c.fault, right)
			}
		}
	})
	if err := w.lab.ClearFaults(context.WithoutCancel(ctx), "test"); err != nil {
		t.Error(err)
	}
}

func TestADeadNode(t *testing.T) {
	w := start(t, 2)
	w.deploy(4, "200ms")
	w.settled()
	ctx := t.Context()
	on := func(node string) (ips []string) {
		list, err := w.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Spec.NodeName == node {
				ips = append(ips, p.Status.PodIP)
			}
		}
		return ips
	}
	there := on("node-2")
	if len(there) == 0 {
		t.Fatal("node-2 has no pod")
	}
	reach := func() error {
		nodes := w.lab.Nodes()
		if len(nodes) == 0 {
			return nil // no packets flow in memory
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		conn, err := nodes[0].Dial(ctx, "tcp", there[0]+":8080")
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := reach(); err != nil {
		t.Fatalf("before: %v", err)
	}
	node := func() corev1.ConditionStatus {
		n, err := w.client.CoreV1().Nodes().Get(ctx, "node-2", metav1.GetOptions{})
		if err != nil {
			return ""
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status
			}
		}
		return ""
	}
	w.fault("node-grace=12s", "node-death=on@node-2")
	if len(w.lab.Nodes()) > 0 {
		w.until("nobody answers on a dead node", func(*timeline.Snapshot) bool { return reach() != nil })
	}
	w.until("the cluster notices", func(s *timeline.Snapshot) bool {
		for _, n := range s.Nodes {
			if n.Name == "node-2" && !n.Ready {
				return node() == corev1.ConditionUnknown
			}
		}
		return false
	})
	w.until("its pods are not routed", func(s *timeline.Snapshot) bool {
		p := w.service(s, "web").Rules.Of("node-1")
		c, ok := p.At(s.Now)
		return ok && c.Have == 4-len(there)
	})
	w.fault("node-death=off", "node-grace=off")
	w.until("it is back", func(*timeline.Snapshot) bool { return node() == corev1.ConditionTrue })
	w.until("somebody answers", func(*timeline.Snapshot) bool { return reach() == nil })
	w.settled()
}
