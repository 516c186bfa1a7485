package timeline

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func TestMarksStandWhereTheyBelong(t *testing.T) {
	m, _ := benchCluster(1, 1)
	at := epoch.Add(time.Minute)
	step := &collect.ReconcileStep{Controller: "endpointslice", Step: "wrote", Detail: "svc0-1"}
	sync := &collect.SyncStep{Node: "n0", Step: "committed", Generation: 9}
	for _, e := range []collect.Event{
		{At: at, Source: collect.SourceUser, Payload: &collect.Action{Namespace: "default", Service: "svc0", Text: "scale svc0 1→2"}},
		{At: at.Add(1), Source: collect.SourceUser, Payload: &collect.Action{Text: "restart"}},
		{At: at.Add(2), Source: collect.SourceReconciler, Object: collect.ObjectKey{Kind: "Service", Namespace: "default", Name: "svc0"}, Payload: step},
		{At: at.Add(3), Source: collect.RuleSyncSource("n0"), Payload: sync},
		{At: at.Add(4), Source: collect.SourceKubeEvents, Op: collect.OpAdded, ResourceVersion: 5000, Payload: &collect.KubeEvent{
			Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "default", Name: "svc0-3"}, UID: "u-svc0-3", Reason: "Unhealthy", Message: "probe failed"}},
		{At: at.Add(5), Source: collect.SourceKubeEvents, Op: collect.OpAdded, ResourceVersion: 5001, Payload: &collect.KubeEvent{
			Regarding: collect.ObjectKey{Kind: "Node", Name: "n0"}, Reason: "NodeNotReady"}},
		advance(at.Add(time.Second)),
	} {
		m.Apply(e)
	}
	s := m.Snapshot()
	texts := func(marks []Mark) (out []string) {
		for _, x := range marks {
			out = append(out, x.Kind+" "+x.Node+" "+x.Text)
		}
		return out
	}
	equal := func(got, want []string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
	// The first list of Events is not complete, so theirs are taken for the
	// past, and these two do not say when.
	equal(texts(s.Service("default", "svc0").Marks), []string{"action  scale svc0 1→2", "reconcile  endpointslice wrote: svc0-1"})
	equal(texts(s.Marks), []string{"action  restart", "sync n0 committed"})
	if s.Reconciler != step || len(s.Nodes) != 1 || s.Nodes[0].Sync != sync {
		t.Errorf("last steps: reconciler %+v, nodes %+v", s.Reconciler, s.Nodes)
	}

	m.Apply(collect.Event{At: at.Add(2 * time.Second), Source: collect.SourceKubeEvents, Payload: &collect.SourceState{State: collect.SourceSynced}})
	m.Apply(collect.Event{At: at.Add(3 * time.Second), Source: collect.SourceKubeEvents, Op: collect.OpAdded, ResourceVersion: 5002, Payload: &collect.KubeEvent{
		Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "default", Name: "svc0-3"}, UID: "u-svc0-3", Reason: "Unhealthy", Message: "probe failed"}})
	m.Apply(advance(at.Add(4 * time.Second)))
	marks := m.Snapshot().Service("default", "svc0").Marks
	if last := marks[len(marks)-1]; last.Text != "Unhealthy: probe failed" || !last.At.Equal(at.Add(3*time.Second)) {
		t.Errorf("the pod's event is %+v", last)
	}
}
