package lab_test

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/rulesync"
	"github.com/kconverge/kconverge/engine/timeline"
)

// patience is how long a condition is awaited before a test is given up: far
// beyond what anything takes.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// world is a running lab with a model that observes it.
type world struct {
	testing.TB
	lab        *lab.Lab
	rt         *live.Runtime
	client     kubernetes.Interface
	kubeconfig []byte
	plane      rulesync.Dataplane
	patience   time.Duration
}

// start runs a lab for the length of the test.
func start(t testing.TB, nodes int, sinks ...collect.Sink) *world {
	t.Helper()
	return startPlane(t, nodes, rulesync.KubeProxy, sinks...)
}

func startPlane(t testing.TB, nodes int, plane rulesync.Dataplane, sinks ...collect.Sink) *world {
	t.Helper()
	w := &world{TB: t, plane: plane, patience: patience}
	w.lab = lab.New(lab.Options{Nodes: nodes, Dataplane: plane, Addr: "127.0.0.1:0", Kubeconfig: func(b []byte) error { w.kubeconfig = b; return nil }})
	var recorders []live.Recorder
	for _, s := range sinks {
		recorders = append(recorders, recorder{s})
	}
	w.rt = live.New(live.Options{Session: w.lab.Session(), Recorders: recorders})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.rt.Run(ctx, w.lab) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the lab ended with %v", err)
		}
	})
	ready, giveUp := context.WithTimeout(t.Context(), patience)
	defer giveUp()
	if err := w.lab.WaitReady(ready); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return w
}

type recorder struct{ collect.Sink }

func (r recorder) Write(e collect.Event) error { r.Emit(e); return nil }

// until waits for a snapshot that satisfies cond and returns it.
func (w *world) until(what string, cond func(*timeline.Snapshot) bool) *timeline.Snapshot {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), w.patience)
	defer cancel()
	s, _, err := w.rt.Wait(ctx, func(s *timeline.Snapshot) (bool, string) { return cond(s), what })
	if err != nil {
		w.Fatalf("waiting for %s: %v", what, err)
	}
	return s
}

// settled waits until everything has settled, converged and been vouched for.
func (w *world) settled() *timeline.Snapshot {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), w.patience)
	defer cancel()
	s, why, err := w.rt.Wait(ctx, live.Convergence{Settled: true, After: time.Now(), Ask: w.lab.Vouch}.Condition())
	if err != nil {
		w.Fatalf("waiting for %s: %v", why, err)
	}
	return s
}

// service returns a Service of the snapshot that must be there.
func (w *world) service(s *timeline.Snapshot, name string) *timeline.Service {
	w.Helper()
	svc := s.Service("default", name)
	if svc == nil {
		w.Fatalf("default/%s is not in the snapshot", name)
	}
	return svc
}
