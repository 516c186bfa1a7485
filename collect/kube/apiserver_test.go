package kube_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

// TestMain silences the API server's log.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

// sink keeps events and can be waited on.
type sink struct {
	mu      sync.Mutex
	events  []collect.Event
	changed chan struct{}
}

func (s *sink) Emit(e collect.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done says so of all events up to now.
func (s *sink) await(t *testing.T, what string, done func([]collect.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		events, changed := s.events, s.changed
		s.mu.Unlock()
		if done(events) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			for _, e := range events[max(0, len(events)-30):] {
				t.Logf("%+v %+v", e, e.Payload)
			}
			t.Fatalf("never %s", what)
		}
	}
}

// vouchedBy reports that each source has vouched for t.
func vouchedBy(sources int, at time.Time) func([]collect.Event) bool {
	return func(events []collect.Event) bool {
		have := map[collect.SourceID]bool{}
		for _, e := range events {
			if v, ok := e.Payload.(*collect.Vouch); ok && !v.Until.Before(at) {
				have[e.Source] = true
			}
		}
		return len(have) == sources
	}
}

// startServer runs an API server and a source over it.
func startServer(t *testing.T) (kubernetes.Interface, *kube.Source, *sink) {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := kube.Reach(t.Context(), server.Config())
	if err != nil || version == "" {
		t.Errorf("Reach = %q, %v", version, err)
	}
	src, err := kube.New(kube.Options{Config: server.Config()})
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return client, src, s
}

func TestEveryResourceOfARealServerIsWatchedAndVouchedFor(t *testing.T) {
	client, src, s := startServer(t)
	s.await(t, "all synced", func(events []collect.Event) bool {
		synced := map[collect.SourceID]bool{}
		for _, e := range events {
			if p, ok := e.Payload.(*collect.SourceState); ok {
				synced[e.Source] = p.State == collect.SourceSynced
				if p.State == collect.SourceBroken || p.State == collect.SourceForbidden {
					t.Fatalf("%s: %+v", e.Source, p)
				}
			}
		}
		n := 0
		for _, ok := range synced {
			if ok {
				n++
			}
		}
		return n == 10
	})
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	check(err)
	_, err = client.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	check(err)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	_, err = client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}, Spec: template.Spec}, metav1.CreateOptions{})
	check(err)
	_, err = client.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-x"},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}, metav1.CreateOptions{})
	check(err)
	_, err = client.CoreV1().Endpoints("default").Create(ctx, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}) //nolint:staticcheck // the deprecated kind is what is observed
	check(err)
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	_, err = client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	check(err)
	_, err = client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	check(err)
	_, err = client.CoreV1().Events("default").Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Unhealthy",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web-0"}}, metav1.CreateOptions{})
	check(err)
	want := map[collect.ObjectKey]string{
		{Kind: "Node", Name: "n"}: "node", {Kind: "Service", Namespace: "default", Name: "web"}: "service",
		{Kind: "Pod", Namespace: "default", Name: "web-0"}: "pod", {Kind: "EndpointSlice", Namespace: "default", Name: "web-x"}: "endpointslice",
		{Kind: "Endpoints", Namespace: "default", Name: "web"}: "endpoints", {Kind: "Deployment", Namespace: "default", Name: "web"}: "workload",
		{Kind: "ReplicaSet", Namespace: "default", Name: "web-1"}: "workload", {Kind: "Event", Namespace: "default", Name: "e"}: "kubeevent",
	}
	s.await(t, "all added", func(events []collect.Event) bool {
		n := 0
		for _, e := range events {
			if e.Op == collect.OpAdded && e.Payload.Type() == want[e.Object] && e.UID != "" && e.ResourceVersion > 0 {
				n++
			}
		}
		return n == len(want)
	})
	asked := time.Now()
	src.Vouch()
	s.await(t, "vouched for by all", vouchedBy(10, asked))
}

func TestTwoThousandWritesFoldToWhatTheServerHas(t *testing.T) {
	client, src, s := startServer(t)
	api := client.CoreV1().Pods("default")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 9))
			exists := map[string]bool{}
			for i := range 500 {
				name := fmt.Sprintf("pod-%d-%d", w, rnd.IntN(10))
				var err error
				switch {
				case !exists[name]:
					_, err = api.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
						Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}, metav1.CreateOptions{})
					exists[name] = true
				case rnd.IntN(4) == 0:
					err = api.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
					delete(exists, name)
				default:
					_, err = api.Patch(t.Context(), name, "application/merge-patch+json",
						fmt.Appendf(nil, `{"metadata":{"labels":{"i":"%d"}}}`, i), metav1.PatchOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	asked := time.Now()
	src.Vouch()
	s.await(t, "vouched for", func(events []collect.Event) bool {
		for _, e := range events {
			if v, ok := e.Payload.(*collect.Vouch); ok && e.Source == collect.SourcePods && !v.Until.Before(asked) {
				return true
			}
		}
		return false
	})
	have := map[string]*collect.Pod{}
	last := uint64(0)
	s.mu.Lock()
	for _, e := range s.events {
		if e.Source != collect.SourcePods || e.Op == collect.OpNone {
			continue
		}
		if e.Op != collect.OpListed && e.ResourceVersion <= last {
			t.Errorf("%s of %s at %d follows %d", e.Op, e.Object.Name, e.ResourceVersion, last)
		}
		last = max(last, e.ResourceVersion)
		if e.Op == collect.OpDeleted {
			delete(have, e.Object.Name)
		} else {
			have[e.Object.Name] = e.Payload.(*collect.Pod)
		}
	}
	s.mu.Unlock()
	list, err := api.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*collect.Pod{}
	for i := range list.Items {
		want[list.Items[i].Name] = kube.ConvertPod(&list.Items[i])
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("folded %d pods, the server has %d, and they differ", len(have), len(want))
	}
}
