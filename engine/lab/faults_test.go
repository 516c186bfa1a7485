package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/timeline"
)

// fault sets a fault for the rest of the test, unless it is cleared before.
func (w *world) fault(texts ...string) {
	w.Helper()
	if err := w.lab.SetFaults(w.Context(), "test", texts...); err != nil {
		w.Fatal(err)
	}
}

// added waits until a pod that was not there before is routed on all nodes but those
// left out, and returns its path.
func (w *world) added(before map[string]bool, nodes int, but ...string) *timeline.Path {
	w.Helper()
	var found *timeline.Path
	w.until("a new endpoint on every node but "+strings.Join(but, " "), func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		if svc == nil {
			return false
		}
		for _, p := range svc.Paths {
			if before[p.ID] || p.Op != timeline.OpAdd || len(p.Rules) < nodes {
				continue
			}
			arrived := 0
			for _, h := range p.Rules {
				if h.Status == timeline.StatusArrived {
					arrived++
				}
			}
			if arrived == nodes-len(but) && !slices.ContainsFunc(but, func(n string) bool { return hop(p, n).Status != timeline.StatusOpen }) || arrived == nodes {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func hop(p *timeline.Path, node string) timeline.Hop {
	for _, h := range p.Rules {
		if h.Plane.Node == node {
			return h
		}
	}
	return timeline.Hop{}
}

// paths are the IDs of those of the Service "web".
func (w *world) paths() map[string]bool {
	out := map[string]bool{}
	for _, p := range w.service(w.rt.Latest(), "web").Paths {
		out[p.ID] = true
	}
	return out
}

// steps keeps what the controllers and rule syncs did.
type steps struct {
	mu        sync.Mutex
	reconcile []collect.ReconcileStep
	sync      []collect.SyncStep
}

func (s *steps) Emit(e collect.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := e.Payload.(type) {
	case *collect.ReconcileStep:
		s.reconcile = append(s.reconcile, *p)
	case *collect.SyncStep:
		s.sync = append(s.sync, *p)
	}
}

func (s *steps) reconciled(ok func(collect.ReconcileStep) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reconcile, ok)
}

func (s *steps) synced(ok func(collect.SyncStep) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.sync, ok)
}

// TestFaultsOfNodes plays those of rule syncs and of the watches of one node's proxy.
func TestFaultsOfNodes(t *testing.T) {
	seen := &steps{}
	w := start(t, 3, seen)
	w.deploy(1, "200ms")
	w.settled()
	replicas := int32(1)
	more := func() map[string]bool {
		before := w.paths()
		replicas++
		w.scale(replicas)
		return before
	}
	t.Run("none", func(t *testing.T) {
		if seen.synced(func(s collect.SyncStep) bool { return s.Step == "failed" }) || len(w.rt.Latest().Faults) != 0 {
			t.Error("something failed without a fault")
		}
	})
	t.Run("sync-delay", func(t *testing.T) {
		w.fault("sync-delay=4s@node-2")
		p := w.added(more(), 3)
		if d := hop(p, "node-2").FromStep; d < 4*time.Second-hop(p, "node-2").Error {
			t.Errorf("the slow node was %v late, want 4s at least", d)
		}
		if a, b := hop(p, "node-1").FromStep, hop(p, "node-2").FromStep; a >= b {
			t.Errorf("node-1 was late by %v, node-2 by %v", a, b)
		}
		w.fault("sync-delay=off")
		s := w.settled()
		if n := len(s.Faults); n != 1 || s.Faults[0].Text() != "sync-delay 4s node-2" || s.Faults[0].To.IsZero() || s.Faults[0].By != "test" {
			t.Errorf("on the axis: %+v", s.Faults)
		}
	})
	t.Run("sync-fail", func(t *testing.T) {
		w.fault("sync-fail=on@node-2")
		before := more()
		p := w.added(before, 3, "node-2")
		w.until("a failed sync", func(*timeline.Snapshot) bool {
			return seen.synced(func(s collect.SyncStep) bool {
				return s.Node == "node-2" && s.Step == "failed" && strings.Contains(s.Detail, "sync-fail=on@node-2")
			})
		})
		if hop(p, "node-2").Status != timeline.StatusOpen {
			t.Error("a node whose syncs fail arrived")
		}
		if seen.synced(func(s collect.SyncStep) bool { return s.Node != "node-2" && s.Step == "failed" }) {
			t.Error("another node's syncs fail, too")
		}
		w.fault("sync-fail=off")
		more() // asks for a sync sooner than the 30 s after which a failed one is tried again
		w.settled()
	})
	t.Run("watch-hang", func(t *testing.T) {
		w.fault("watch-hang=on@node-3")
		p := w.added(more(), 3, "node-3")
		if h := hop(p, "node-3"); h.Status != timeline.StatusOpen {
			t.Errorf("a node that hears nothing is %s", h.Status)
		}
		seen.mu.Lock()
		n := 0
		for _, s := range seen.sync {
			if s.Node == "node-3" && s.Step == "received" {
				n++
			}
		}
		seen.mu.Unlock()
		w.fault("watch-hang=off")
		w.settled()
		after := 0
		seen.mu.Lock()
		for _, s := range seen.sync {
			if s.Node == "node-3" && s.Step == "received" {
				after++
			}
		}
		seen.mu.Unlock()
		if after <= n {
			t.Error("what was held back did not come")
		}
	})
	t.Run("watch-delay", func(t *testing.T) {
		w.fault("watch-delay=3s@node-3")
		p := w.added(more(), 3)
		if d := hop(p, "node-3").FromStep; d < 2900*time.Millisecond {
			t.Errorf("a node whose watch is 3s late was late by %v", d)
		}
		w.fault("watch-delay=off")
		w.settled()
	})
	t.Run("watch-drop", func(t *testing.T) {
		w.fault("watch-drop=1s@node-3")
		more()
		w.settled() // it watches again, and misses nothing
		w.fault("watch-drop=off")
	})
}

// TestFaultsOfTheControlPlane plays those of requests and of the endpoint controllers.
func TestFaultsOfTheControlPlane(t *testing.T) {
	seen := &steps{}
	w := start(t, 1, seen)
	w.deploy(1, "200ms")
	w.settled()
	replicas := int32(1)
	more := func() map[string]bool {
		before := w.paths()
		replicas++
		w.scale(replicas)
		return before
	}
	ctx := t.Context()
	t.Run("api-error", func(t *testing.T) {
		get := func() error {
			_, err := w.client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
			return err
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		w.fault("api-error=503@resource=services,verb=get")
		if err := get(); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("a refused request: %v", err)
		}
		if _, err := w.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("another request: %v", err)
		}
		w.fault("api-error=off")
		if err := get(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
	t.Run("api-delay", func(t *testing.T) {
		w.fault("api-delay=2s@verb=update,resource=endpointslices,client=reconciler")
		p := w.added(more(), 1)
		if p.Slice == nil || p.Slice.FromStep < 2*time.Second-p.Slice.Error {
			t.Errorf("the slice of a slow API came after %+v", p.Slice)
		}
		w.fault("api-delay=off")
		w.settled()
	})
	sliced := func(s *timeline.Snapshot) int {
		c, ok := w.service(s, "web").Slices.At(s.Now)
		if !ok {
			return -1
		}
		return c.Have
	}
	conflicts := func(s collect.ReconcileStep) bool { return s.Step == "conflict" }
	t.Run("conflict", func(t *testing.T) {
		w.fault("conflict=on")
		more()
		w.until("a conflict", func(*timeline.Snapshot) bool { return seen.reconciled(conflicts) })
		w.fault("conflict=off")
		w.settled()
		s, err := w.client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(s.Items) != 1 || s.Items[0].Annotations["kconverge.dev/written-by-another"] == "" {
			t.Errorf("nobody else wrote: %v, %v", s, err)
		}
	})
	t.Run("a conflict of somebody else", func(t *testing.T) {
		update := func() error {
			d, err := w.client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = w.client.AppsV1().Deployments("default").Update(ctx, d, metav1.UpdateOptions{})
			return err
		}
		w.fault("conflict=on@resource=deployments,name=web")
		if err := update(); !apierrors.IsConflict(err) {
			t.Errorf("an update between whose read and write somebody wrote: %v", err)
		}
		w.fault("conflict=off")
		w.until("no conflict", func(*timeline.Snapshot) bool { return update() == nil })
	})
	t.Run("event-lost and resync", func(t *testing.T) {
		w.settled()
		w.fault("event-lost=on@web")
		more()
		w.until("a pod that is ready and in no slice", func(s *timeline.Snapshot) bool {
			svc := w.service(s, "web")
			return svc.Wanted[len(svc.Wanted)-1].N == int(replicas) && sliced(s) == int(replicas)-1
		})
		w.fault("resync=1s") // nothing else would make it look
		w.settled()
		if n := sliced(w.rt.Latest()); n != int(replicas) {
			t.Errorf("%d endpoints after a resync, want %d", n, replicas)
		}
		w.fault("event-lost=off", "resync=off")
	})
	t.Run("workers", func(t *testing.T) {
		w.fault("workers=1", "reconcile-delay=1s")
		seen.mu.Lock()
		first := len(seen.reconcile)
		seen.mu.Unlock()
		for i := range 4 {
			_, err := w.client.CoreV1().Services("default").Create(ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d", i)},
				Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		w.settled()
		seen.mu.Lock()
		defer seen.mu.Unlock()
		slow := false
		for _, s := range seen.reconcile[first:] {
			if s.Worker > 1 {
				t.Errorf("worker %d works: %+v", s.Worker, s)
			}
			slow = slow || s.Controller == "endpointslice" && s.Step == "started" && s.Took >= 2*time.Second
		}
		if !slow {
			t.Error("no Service waited for the one slow worker")
		}
		w.fault("workers=off", "reconcile-delay=off")
	})
	t.Run("the ConfigMap", func(t *testing.T) {
		maps := w.client.CoreV1().ConfigMaps(faults.ConfigMapNamespace)
		patch := func(data string) {
			t.Helper()
			if _, err := maps.Patch(ctx, faults.ConfigMapName, types.MergePatchType, []byte(`{"data":`+data+`}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		inForce := func() string {
			var out []string
			for _, f := range w.lab.Faults() {
				out = append(out, f.String()+" by "+f.By)
			}
			return strings.Join(out, ", ")
		}
		patch(`{"sync-delay":"1s@node-1","nonsense":"1"}`)
		w.until("the fault of the ConfigMap", func(s *timeline.Snapshot) bool {
			refused := slices.ContainsFunc(s.Marks, func(m timeline.Mark) bool { return m.Kind == "fault" && strings.Contains(m.Text, "nonsense") })
			return inForce() == "sync-delay=1s@node-1 by ConfigMap" && refused
		})
		w.fault("workers=2")
		cm, err := maps.Get(ctx, faults.ConfigMapName, metav1.GetOptions{})
		if err != nil || cm.Data["workers"] != "2" || cm.Data["sync-delay"] != "1s@node-1" {
			t.Errorf("the ConfigMap: %v, %v", cm, err)
		}
		if err := maps.Delete(ctx, faults.ConfigMapName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.until("no fault", func(*timeline.Snapshot) bool { return inForce() == "" })
		w.fault("workers=2")
		if err := w.lab.ClearFaults(ctx, "test"); err != nil || inForce() != "" {
			t.Errorf("after clearing: %v %s", err, inForce())
		}
		if err := w.lab.SetFaults(ctx, "test", "workers=3", "sync-delay=1s@node-9"); err == nil || inForce() != "" {
			t.Errorf("a node that is not there: %v, in force %s", err, inForce())
		}
	})
}

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
