package lab_test

import (
	"fmt"
	"strings"
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
	t.Run("reconcile-fail", func(t *testing.T) {
		w.settled()
		w.fault("reconcile-fail=on@web")
		more()
		failed := func(s collect.ReconcileStep) bool {
			return s.Step == "retry" && s.Tries >= 2 && strings.Contains(s.Detail, "reconcile-fail=on@web")
		}
		w.until("a pod that is ready, and a sync that fails again", func(s *timeline.Snapshot) bool {
			svc := w.service(s, "web")
			return svc.Wanted[len(svc.Wanted)-1].N == int(replicas) && seen.reconciled(failed)
		})
		if n := sliced(w.rt.Latest()); n != int(replicas)-1 {
			t.Errorf("%d endpoints while every sync fails, want the %d of before", n, replicas-1)
		}
		w.fault("reconcile-fail=off")
		w.settled() // the next try brings it
		if n := sliced(w.rt.Latest()); n != int(replicas) {
			t.Errorf("%d endpoints once syncs succeed, want %d", n, replicas)
		}
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
		patch := func(data string) error {
			_, err := maps.Patch(ctx, faults.ConfigMapName, types.MergePatchType, []byte(`{"data":`+data+`}`), metav1.PatchOptions{})
			return err
		}
		inForce := func() string {
			var out []string
			for _, f := range w.lab.Faults() {
				out = append(out, f.String()+" by "+f.By)
			}
			return strings.Join(out, ", ")
		}
		if err := patch(`{"sync-delay":"1s@node-1","sync-fial":"on"}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "did you mean sync-fail?") {
			t.Errorf("a fault that there is not: %v", err)
		}
		if err := patch(`{"sync-delay":"1s@node-1"}`); err != nil {
			t.Error(err)
		}
		w.until("the fault of the ConfigMap", func(s *timeline.Snapshot) bool { return inForce() == "sync-delay=1s@node-1 by ConfigMap" })
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
