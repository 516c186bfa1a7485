package lab_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	heapFile = flag.String("large.heap", "", "BenchmarkLarge: write what is in memory to `FILE`.converged, FILE.churned and FILE.idle")
	full     = size{nodes: 50, services: 200, pods: 2000}
)

func init() {
	flag.IntVar(&full.nodes, "large.nodes", full.nodes, "BenchmarkLarge: number of nodes")
	flag.IntVar(&full.services, "large.services", full.services, "BenchmarkLarge: number of Services")
	flag.IntVar(&full.pods, "large.pods", full.pods, "BenchmarkLarge: number of pods")
}

// writeHeap writes what is in memory, when that is asked for.
func writeHeap(tb testing.TB, when string) {
	tb.Helper()
	if *heapFile == "" {
		return
	}
	f, err := os.Create(*heapFile + "." + when)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	runtime.GC()
	if err := pprof.WriteHeapProfile(f); err != nil {
		tb.Fatal(err)
	}
}

// size is how large a lab is.
type size struct{ nodes, services, pods int }

// figures are what a large lab took.
type figures struct {
	start, converge, churn          time.Duration // from nothing, from the first object, of all replicas down to one and back
	startCPU, convergeCPU, churnCPU time.Duration
	convergedRSS, rss               int64 // bytes, when converged and after everything
}

// cpu is what this process has used of the processors.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is what this process has in memory, in bytes.
func resident(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmRSS:" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib << 10
		}
	}
	tb.Fatal("no VmRSS in /proc/self/status")
	return 0
}

// large runs a lab of a size until it has converged, scales everything down to
// one replica and back up, and checks that every node routes every pod and that
// nothing was missed on the way.
func large(tb testing.TB, s size) (*world, figures) {
	tb.Helper()
	var f figures
	began, used := time.Now(), cpu(tb)
	lap := func(took, usedCPU *time.Duration) {
		now := cpu(tb)
		*took, *usedCPU = time.Since(began), now-used
		began, used = time.Now(), now
	}
	w := start(tb, s.nodes)
	w.patience = 15 * time.Minute // many processors' work may fall on a busy one
	lap(&f.start, &f.startCPU)
	each := s.pods / s.services
	w.forEach(s, func(name string) error { return w.app(name, int32(each)) })
	w.routes(s, each)
	lap(&f.converge, &f.convergeCPU)
	f.convergedRSS = resident(tb)
	writeHeap(tb, "converged")
	for _, n := range []int{1, each} {
		w.forEach(s, func(name string) error {
			return w.lab.Scale(w.Context(), "default", "Deployment", name, int32(n))
		})
		w.routes(s, n)
	}
	lap(&f.churn, &f.churnCPU)
	f.rss = resident(tb)
	writeHeap(tb, "churned")
	for _, g := range w.rt.Latest().Gaps {
		// A server ends every watch after some minutes. That it is opened again
		// a little late on a busy machine is no fault; anything else is.
		if !strings.HasPrefix(g.Why, "the watch had ended") {
			tb.Errorf("a gap of %s: %s", g.Source, g.Why)
		}
	}
	return w, f
}

// forEach does something for each of the Services, ten at a time.
func (w *world) forEach(s size, do func(name string) error) {
	w.Helper()
	var all sync.WaitGroup
	turns := make(chan struct{}, 10)
	for i := range s.services {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := do(fmt.Sprintf("app-%d", i)); err != nil {
				w.Error(err)
			}
		})
	}
	all.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// app creates a Service and its Deployment.
func (w *world) app(name string, replicas int32) error {
	labels := map[string]string{"app": name}
	_, err := w.client.CoreV1().Services("default").Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = w.client.AppsV1().Deployments("default").Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"kconverge.dev/stop-after": "1s"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](15),
					Containers:                    []corev1.Container{{Name: "c", Image: "nginx"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// routes waits until all has settled, and checks that every node routes n
// endpoints of each Service.
func (w *world) routes(s size, n int) {
	w.Helper()
	w.until(fmt.Sprintf("%d endpoints of %d Services on %d nodes", n, s.services, s.nodes), func(snap *timeline.Snapshot) bool {
		if len(snap.Services) < s.services {
			return false
		}
		for _, svc := range snap.Services {
			if svc.Rules.Len() != s.nodes || svc.State != timeline.Converged {
				return false
			}
			for _, p := range svc.Rules.All() {
				if c, ok := p.At(snap.Now); !ok || c.Have != n {
					return false
				}
			}
		}
		return true
	})
	w.settled()
}

func TestManyServicesOnManyNodesConverge(t *testing.T) {
	_, f := large(t, size{nodes: 12, services: 30, pods: 240})
	t.Logf("%+v", f)
}

// BenchmarkLarge measures 50 nodes, 200 Services and 2,000 pods, or what the flags
// ask for.
func BenchmarkLarge(b *testing.B) {
	for range b.N {
		_, f := large(b, full)
		b.ReportMetric(f.start.Seconds(), "start-s")
		b.ReportMetric(f.startCPU.Seconds(), "start-cpu-s")
		b.ReportMetric(f.converge.Seconds(), "converge-s")
		b.ReportMetric(f.convergeCPU.Seconds(), "converge-cpu-s")
		b.ReportMetric(f.churn.Seconds(), "churn-s")
		b.ReportMetric(f.churnCPU.Seconds(), "churn-cpu-s")
		b.ReportMetric(float64(f.convergedRSS)/1e6, "converged-rss-MB")
		b.ReportMetric(float64(f.rss)/1e6, "rss-MB")
		const window = 30 * time.Second
		before := cpu(b)
		<-time.After(window) // how long is looked at, not something awaited
		b.ReportMetric(100*(cpu(b)-before).Seconds()/window.Seconds(), "idle-%-of-a-core")
		b.ReportMetric(float64(resident(b))/1e6, "idle-rss-MB")
		writeHeap(b, "idle")
	}
	b.ReportMetric(0, "ns/op")
}
