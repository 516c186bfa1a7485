package rulesync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// memory is a Table that remembers what it was told.
type memory struct {
	mu      sync.Mutex
	changes []Change
	err     error
	took    time.Duration
	ports   map[types.NamespacedName][]Port
	closed  bool
}

func (m *memory) Write(_ context.Context, ch Change) (Result, error) {
	m.mu.Lock()
	took := m.took
	m.mu.Unlock()
	time.Sleep(took) // fake time
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, ch)
	if m.err != nil {
		return Result{}, m.err
	}
	if ch.Full || m.ports == nil {
		m.ports = map[types.NamespacedName][]Port{}
	}
	maps.Copy(m.ports, ch.Services)
	return Result{Generation: uint32(len(m.changes)), Transactions: 1}, nil
}

func (m *memory) Close() error { m.closed = true; return nil }

// behave sets how the next writes go.
func (m *memory) behave(err error, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err, m.took = err, took
}

func (m *memory) wrote() []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.changes)
}

func (m *memory) endpoints(service string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, p := range m.ports[types.NamespacedName{Namespace: "default", Name: service}] {
		n += len(p.Cluster)
	}
	return n
}

// harness is a Syncer on a fake API and fake time.
type harness struct {
	t      *testing.T
	client *fake.Clientset
	table  *memory
	begin  time.Time
	stop   func()

	mu    sync.Mutex
	steps []string // "received default/web 1 pending"
}

func (h *harness) Emit(e collect.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := e.Payload.(*collect.SyncStep)
	s := fmt.Sprintf("%v %s", e.At.Sub(h.begin), p.Step)
	if e.Object.Name != "" {
		s += " " + e.Object.Namespace + "/" + e.Object.Name
	}
	switch p.Step {
	case "received", "started":
		s += fmt.Sprintf(" pending=%d", p.Pending)
	case "waiting":
		s += fmt.Sprintf(" %v", p.Took)
	case "committed":
		s += fmt.Sprintf(" gen=%d took=%v", p.Generation, p.Took)
	case "failed":
		s += " " + p.Detail
	}
	if p.Full {
		s += " full"
	}
	h.steps = append(h.steps, s)
	if e.Source != "engine/rulesync/node-1" || p.Node != "node-1" {
		h.t.Errorf("step of %s about %s", e.Source, p.Node)
	}
}

func (h *harness) expect(want ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.steps, want) {
		h.t.Errorf("steps:\n%q\nwant:\n%q", h.steps, want)
	}
	h.steps = nil
}

func (h *harness) service(name string) {
	h.t.Helper()
	_, err := h.client.CoreV1().Services("default").Create(h.t.Context(), testService(name), metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) slice(name, service string, ips ...string) {
	h.t.Helper()
	api := h.client.DiscoveryV1().EndpointSlices("default")
	s := testSlice(name, service, ips...)
	if _, err := api.Update(h.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		if _, err := api.Create(h.t.Context(), s, metav1.CreateOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
}

func testService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "7"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

func testSlice(name, service string, ips ...string) *discoveryv1.EndpointSlice {
	yes, port, portNumber, tcp := true, "http", int32(8080), corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &portNumber, Protocol: &tcp}},
	}
	for _, ip := range ips {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}})
	}
	return s
}

// inTime runs a Syncer in fake time. What is in the API at its start is there
// before it.
func inTime(t *testing.T, o Options, before func(*harness), f func(*harness)) {
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, client: fake.NewClientset(), table: &memory{}}
		if before != nil {
			before(h)
		}
		o.Node, o.Client, o.Table, o.Sink = desired.NodeRef{Name: "node-1"}, h.client, h.table, h
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		h.begin = time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		f(h)
		cancel()
		<-done
		if !h.table.closed {
			t.Error("Run ended and left the table open")
		}
	})
}

func TestTheFirstSyncIsFullAndHasTheCompleteLists(t *testing.T) {
	inTime(t, Options{}, func(h *harness) {
		h.service("a")
		h.service("b")
		h.slice("a-1", "a", "10.244.1.2")
	}, func(h *harness) {
		h.expect("0s started pending=2 full", "0s committed gen=1 took=0s full")
		if len(h.table.wrote()) != 1 || len(h.table.wrote()[0].Services) != 2 || h.table.endpoints("a") != 1 {
			t.Errorf("changes %+v", h.table.wrote())
		}
	})
}

func TestABurstOfChangesIsWrittenAsOneAndOnlyTheChangedServices(t *testing.T) {
	inTime(t, Options{}, func(h *harness) {
		h.service("a")
		h.service("b")
	}, func(h *harness) {
		h.table.behave(nil, 200*ms)
		time.Sleep(10 * time.Second)
		h.expect("0s started pending=2 full", "0s committed gen=1 took=0s full")
		h.slice("a-1", "a", "10.244.1.2")
		h.expect("10s received default/a pending=1", "10s started pending=1")
		time.Sleep(300 * ms)
		h.slice("a-1", "a", "10.244.1.2", "10.244.1.3")
		time.Sleep(100 * ms)
		h.slice("a-2", "a", "10.244.1.4")
		time.Sleep(100 * ms)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(5 * time.Second)
		h.expect("10.2s committed gen=2 took=200ms",
			"10.3s received default/a pending=1", "10.3s waiting 900ms", "10.4s received default/a pending=1", "10.5s received default/a pending=1",
			"11.2s started pending=1", "11.4s committed gen=3 took=200ms")
		last := h.table.wrote()[len(h.table.wrote())-1]
		if last.Full || len(last.Services) != 1 || h.table.endpoints("a") != 2 {
			t.Errorf("last change %+v; endpoints of a: %d, want 2", last, h.table.endpoints("a"))
		}
	})
}

func TestWhatArrivesDuringASyncIsForTheNextOne(t *testing.T) {
	inTime(t, Options{}, func(h *harness) { h.service("a") }, func(h *harness) {
		h.table.behave(nil, 500*ms)
		time.Sleep(10 * time.Second)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(100 * ms)
		h.slice("a-1", "a", "10.244.1.2", "10.244.1.3")
		time.Sleep(500 * ms)
		if n := h.table.endpoints("a"); n != 1 {
			t.Errorf("after the first sync %d endpoints, want those of its start, 1", n)
		}
		time.Sleep(2 * time.Second)
		if n := h.table.endpoints("a"); n != 2 {
			t.Errorf("after the second sync %d endpoints, want 2", n)
		}
		h.expect("0s started pending=1 full", "0s committed gen=1 took=0s full",
			"10s received default/a pending=1", "10s started pending=1", "10.1s received default/a pending=1",
			"10.5s committed gen=2 took=500ms", "10.5s waiting 1s", "11.5s started pending=1", "12s committed gen=3 took=500ms")
	})
}

func TestAFailureIsFollowedByAFullSyncThirtySecondsLater(t *testing.T) {
	inTime(t, Options{}, func(h *harness) { h.service("a"); h.service("b") }, func(h *harness) {
		time.Sleep(10 * time.Second)
		h.table.behave(errors.New("no space"), 0)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(time.Second)
		h.table.behave(nil, 0)
		time.Sleep(time.Minute)
		h.expect("0s started pending=2 full", "0s committed gen=1 took=0s full",
			"10s received default/a pending=1", "10s started pending=1", "10s failed no space",
			"40s started pending=0 full", "40s committed gen=3 took=0s full")
		if n := len(h.table.wrote()[2].Services); n != 2 || h.table.endpoints("a") != 1 {
			t.Errorf("the retry wrote %d Services and %d endpoints of a, want 2 and 1", n, h.table.endpoints("a"))
		}
	})
}

func TestAChangeAfterAFailureBringsTheFullRetryForward(t *testing.T) {
	inTime(t, Options{}, func(h *harness) { h.service("a"); h.service("b") }, func(h *harness) {
		time.Sleep(10 * time.Second)
		h.table.behave(errors.New("no space"), 0)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(100 * ms)
		h.table.behave(nil, 0)
		h.slice("b-1", "b", "10.244.1.3")
		time.Sleep(5 * time.Second)
		h.expect("0s started pending=2 full", "0s committed gen=1 took=0s full",
			"10s received default/a pending=1", "10s started pending=1", "10s failed no space",
			"10.1s received default/b pending=1", "10.1s waiting 900ms", "11s started pending=1 full", "11s committed gen=3 took=0s full")
	})
}

func TestThereIsAFullSyncEveryHour(t *testing.T) {
	inTime(t, Options{}, func(h *harness) { h.service("a") }, func(h *harness) {
		time.Sleep(30 * time.Minute)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(40 * time.Minute)
		h.slice("a-1", "a", "10.244.1.3")
		time.Sleep(time.Minute)
		// A partial sync starts the hour of quiet anew, but a sync more than an
		// hour after the last full one is full.
		h.expect("0s started pending=1 full", "0s committed gen=1 took=0s full",
			"30m0s received default/a pending=1", "30m0s started pending=1", "30m0s committed gen=2 took=0s",
			"1h10m0s received default/a pending=1", "1h10m0s started pending=1 full", "1h10m0s committed gen=3 took=0s full")
	})
}

func TestChangesOfNoConsequenceForRulesCauseNoSync(t *testing.T) {
	inTime(t, Options{}, func(h *harness) {
		h.service("a")
		h.slice("a-1", "a", "10.244.1.2")
	}, func(h *harness) {
		h.expect("0s started pending=1 full", "0s committed gen=1 took=0s full")
		s := testService("a")
		s.Labels = map[string]string{"team": "x"}
		if _, err := h.client.CoreV1().Services("default").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		sl := testSlice("a-1", "a", "10.244.1.2")
		sl.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z"}
		if _, err := h.client.DiscoveryV1().EndpointSlices("default").Update(t.Context(), sl, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.expect()
	})
}

func TestASliceThatMovesToAnotherServiceChangesBoth(t *testing.T) {
	inTime(t, Options{}, func(h *harness) {
		h.service("a")
		h.service("b")
		h.slice("x", "a", "10.244.1.2")
	}, func(h *harness) {
		time.Sleep(10 * time.Second)
		h.slice("x", "b", "10.244.1.2")
		time.Sleep(10 * time.Second)
		if a, b := h.table.endpoints("a"), h.table.endpoints("b"); a != 0 || b != 1 {
			t.Errorf("a has %d endpoints and b %d, want 0 and 1", a, b)
		}
		if n := len(h.table.wrote()[1].Services); n != 2 {
			t.Errorf("%d Services written, want 2", n)
		}
	})
}

func TestADeletedServiceIsWrittenWithoutPorts(t *testing.T) {
	inTime(t, Options{}, func(h *harness) {
		h.service("a")
		h.slice("a-1", "a", "10.244.1.2")
	}, func(h *harness) {
		time.Sleep(10 * time.Second)
		if err := h.client.CoreV1().Services("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		ports, written := h.table.wrote()[1].Services[types.NamespacedName{Namespace: "default", Name: "a"}]
		if !written || len(ports) != 0 {
			t.Errorf("written %v with ports %v, want written without", written, ports)
		}
	})
}

func TestBeforeCanDelayAndFailASync(t *testing.T) {
	var fail atomic.Bool
	inTime(t, Options{Before: func(ctx context.Context, full bool) error {
		if !full {
			time.Sleep(3 * time.Second)
		}
		if fail.Load() {
			return errors.New("fault")
		}
		return nil
	}}, func(h *harness) { h.service("a") }, func(h *harness) {
		time.Sleep(10 * time.Second)
		h.slice("a-1", "a", "10.244.1.2")
		time.Sleep(time.Second)
		h.slice("a-1", "a", "10.244.1.2", "10.244.1.3")
		time.Sleep(2500 * ms)
		if n := h.table.endpoints("a"); n != 1 {
			t.Errorf("the delayed sync wrote %d endpoints, want those of its start, 1", n)
		}
		fail.Store(true)
		time.Sleep(10 * time.Second)
		h.expect("0s started pending=1 full", "0s committed gen=1 took=0s full",
			"10s received default/a pending=1", "10s started pending=1", "11s received default/a pending=1", "13s committed gen=2 took=3s",
			"13s waiting 1s", "14s started pending=1", "17s failed fault")
		if len(h.table.wrote()) != 2 {
			t.Errorf("%d changes written, want 2: a failed one is not", len(h.table.wrote()))
		}
	})
}

// Nobody is to read, at a lab's end, that syncs fail.
func TestASyncThatIsCutShortAtTheEndHasNotFailed(t *testing.T) {
	var harnessed *harness
	inTime(t, Options{Before: func(ctx context.Context, full bool) error {
		if full {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}, func(h *harness) { h.service("a") }, func(h *harness) {
		harnessed = h
		time.Sleep(10 * time.Second)
		h.slice("a-1", "a", "10.244.1.2")
		h.expect("0s started pending=1 full", "0s committed gen=1 took=0s full", "10s received default/a pending=1", "10s started pending=1")
	})
	if len(harnessed.steps) > 0 {
		t.Errorf("at the end: %q", harnessed.steps)
	}
}

func TestSharedInformersServeSeveralNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(testService("a"), testSlice("a-1", "a", "10.244.1.2"))
		factory := informers.NewSharedInformerFactory(client, 0)
		services, epSlices := factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		tables := []*memory{{}, {}}
		for i, table := range tables {
			s, err := New(Options{Node: desired.NodeRef{Name: fmt.Sprint("node-", i)}, Table: table, Services: services, Slices: epSlices})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		factory.StartWithContext(ctx)
		synctest.Wait()
		for i, table := range tables {
			if n := table.endpoints("a"); n != 1 {
				t.Errorf("node %d: %d endpoints, want 1", i, n)
			}
		}
		cancel()
		running.Wait()
		factory.Shutdown()
	})
}
