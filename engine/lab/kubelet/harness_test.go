package kubelet_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
	"github.com/kconverge/kconverge/engine/lab/kubelet/fakenet"
)

var (
	nodeAddr = netip.MustParseAddr("198.18.0.1")
	podCIDR  = netip.MustParsePrefix("10.244.1.0/24")
)

// bench is one kubelet over a fake API server and a network in memory, inside a
// synctest bubble: all times are exact.
type bench struct {
	t      *testing.T
	ctx    context.Context
	client *fake.Clientset
	net    *fakenet.Network
	begin  time.Time
	stop   func()

	mu     sync.Mutex
	seen   []string
	events []*corev1.Event

	react atomic.Pointer[clienttesting.ReactionFunc]
}

// inBubble runs f with a running kubelet and checks at the end that it stops
// cleanly: a goroutine that is left makes synctest fail.
func inBubble(t *testing.T, o kubelet.Options, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &bench{t: t, ctx: ctx, client: fake.NewClientset(), net: fakenet.New(podCIDR, 3, o.PodCIDRs...), begin: time.Now()}
		b.client.PrependReactor("*", "events", b.event)
		b.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if f := b.react.Load(); f != nil {
				return (*f)(a)
			}
			return false, nil, nil
		})
		w, err := b.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { b.record(w) })
		b.stop = b.run(o)
		defer func() {
			b.stop()
			w.Stop()
			cancel()
			wg.Wait()
		}()
		f(b)
	})
}

// run starts a kubelet with exact delays where o sets none, and returns how to
// stop it.
func (b *bench) run(o kubelet.Options) (stop func()) {
	o.Client, o.Node, o.Zone, o.Sandbox = b.client, "node-1", "zone-a", b.net
	// What a test gives comes after the first address and range.
	o.Addresses, o.PodCIDRs = append([]netip.Addr{nodeAddr}, o.Addresses...), append([]netip.Prefix{podCIDR}, o.PodCIDRs...)
	for r, d := range map[*kubelet.Range]time.Duration{&o.PullDelay: 300 * time.Millisecond, &o.StartDelay: 200 * time.Millisecond, &o.AppWarmup: 100 * time.Millisecond, &o.NoticeDelay: 200 * time.Millisecond, &o.StopDelay: time.Second} {
		if *r == (kubelet.Range{}) {
			*r = kubelet.Exactly(d)
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- kubelet.New(o).Run(ctx) }()
	synctest.Wait()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run returned %v", err)
		}
	})
}

// reactTo puts f before the fake API server; the fake's own PrependReactor cannot
// be used while somebody asks it.
func (b *bench) reactTo(verb, resource string, f clienttesting.ReactionFunc) {
	matching := clienttesting.ReactionFunc(func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() != verb || a.GetResource().Resource != resource {
			return false, nil, nil
		}
		return f(a)
	})
	b.react.Store(&matching)
}

// record notes each change of a pod in one line, with the time since the start.
func (b *bench) record(w watch.Interface) {
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		line := fmt.Sprintf("%v %s %s %s", time.Since(b.begin), p.Name, strings.ToLower(string(e.Type)), describe(p))
		b.mu.Lock()
		b.seen = append(b.seen, line)
		b.mu.Unlock()
	}
}

// describe is what matters of a pod to a Service.
func describe(p *corev1.Pod) string {
	out := []string{strings.ToLower(string(p.Status.Phase))}
	if p.Status.PodIP != "" {
		out = append(out, p.Status.PodIP)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out = append(out, map[corev1.ConditionStatus]string{corev1.ConditionTrue: "ready", corev1.ConditionFalse: "unready"}[c.Status])
		}
	}
	if p.DeletionTimestamp != nil {
		out = append(out, "terminating")
	}
	return strings.TrimSpace(strings.Join(out, " "))
}

// history returns the lines of one pod.
func (b *bench) history(name string) []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, l := range b.seen {
		if strings.Contains(l, " "+name+" ") {
			out = append(out, strings.Replace(l, " "+name, "", 1))
		}
	}
	return out
}

func (b *bench) wantHistory(name string, want ...string) {
	b.t.Helper()
	if got := b.history(name); !slices.Equal(got, want) {
		b.t.Errorf("history of %s:\n  %s\nwant:\n  %s", name, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// pass lets time go by.
func (b *bench) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
	synctest.Wait()
}

func (b *bench) create(p *corev1.Pod) {
	b.t.Helper()
	if _, err := b.client.CoreV1().Pods(p.Namespace).Create(b.ctx, p, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

func (b *bench) get(name string) *corev1.Pod {
	b.t.Helper()
	synctest.Wait()
	p, err := b.client.CoreV1().Pods("default").Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// delete does what an API server does when a pod is deleted with grace: it marks
// the object, and leaves the rest to the kubelet.
func (b *bench) delete(name string, grace int64) {
	b.t.Helper()
	p := b.get(name).DeepCopy()
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	if _, err := b.client.CoreV1().Pods("default").Update(b.ctx, p, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// event keeps what is recorded. The fake API server cannot: names of Events end
// in the time, which stands still in a bubble, so that all of one moment would
// have the same.
func (b *bench) event(a clienttesting.Action) (bool, runtime.Object, error) {
	c, ok := a.(clienttesting.CreateAction)
	if !ok {
		return true, &corev1.Event{}, nil
	}
	e, ok := c.GetObject().(*corev1.Event)
	if !ok {
		return true, nil, fmt.Errorf("not a v1 Event: %T", c.GetObject())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	return true, e, nil
}

// reasons returns the Events about a pod as "Reason: message".
func (b *bench) reasons(name string) []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		if e.InvolvedObject.Name == name {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

func (b *bench) wantReason(pod, want string) {
	b.t.Helper()
	if got := b.reasons(pod); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
		b.t.Errorf("no Event %q on %s, only:\n  %s", want, pod, strings.Join(got, "\n  "))
	}
}

// boundPod is a pod on node-1 with one container that declares port 8080.
func boundPod(name string, change ...func(p *corev1.Pod)) *corev1.Pod {
	grace := int64(30)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName: "node-1", TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "app", Image: "img", ImagePullPolicy: corev1.PullAlways, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// probed gives the pod a readiness probe.
func probed(pr corev1.Probe) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &pr }
}

func httpGet() corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}
}

func tcpSocket() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}
}
