package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

var (
	server *apiserver.Server
	client kubernetes.Interface
)

// TestMain runs one API server for all tests; each test has its namespace.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // the API server's
	os.Exit(func() int {
		var err error
		server, err = apiserver.Start(context.Background(), apiserver.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		client, err = kubernetes.NewForConfig(server.Config())
		if err == nil {
			_, err = client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := server.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// steps is a sink that can be waited on.
type steps struct {
	mu      sync.Mutex
	events  []collect.Event
	changed chan struct{}
}

func newSteps() *steps { return &steps{changed: make(chan struct{})} }

func (s *steps) Emit(e collect.Event) {
	if _, ok := e.Payload.(*collect.ControllerState); ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// of returns the steps of one controller about one Service so far.
func (s *steps) of(controller, namespace, service string) (out []collect.ReconcileStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		p := e.Payload.(*collect.ReconcileStep)
		if p.Controller == controller && e.Object.Namespace == namespace && e.Object.Name == service {
			out = append(out, *p)
		}
	}
	return out
}

// await waits for a step from index from on that matches; it returns its index.
func (s *steps) await(t *testing.T, controller, namespace, service string, from int, match func(collect.ReconcileStep) bool) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		all := s.of(controller, namespace, service)
		for i := from; i < len(all); i++ {
			if match(all[i]) {
				return i
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("no such step of %s about %s/%s; got %s", controller, namespace, service, dump(all))
		}
	}
}

func is(step string) func(collect.ReconcileStep) bool {
	return func(s collect.ReconcileStep) bool { return s.Step == step }
}

func dump(all []collect.ReconcileStep) string {
	var b strings.Builder
	for _, s := range all {
		j, _ := json.Marshal(s)
		fmt.Fprintf(&b, "\n%s", j)
	}
	return b.String()
}

// checkCausal verifies that each key went queued, started, outcome, over and
// over, with counts and times that can be.
func (s *steps) checkCausal(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := map[string]string{}
	for _, e := range s.events {
		p := e.Payload.(*collect.ReconcileStep)
		key := p.Controller + " " + e.Object.Namespace + "/" + e.Object.Name
		want := map[string]string{"queued": "outcome", "started": "queued"}[p.Step]
		if want == "" {
			want = "started"
		}
		have := cmp.Or(last[key], "outcome")
		if have != want {
			t.Errorf("%s: %s follows %s", key, p.Step, have)
		}
		switch last[key] = p.Step; p.Step {
		case "queued":
			if p.Queue < 1 {
				t.Errorf("%s: queued, but the queue is empty", key)
			}
		case "started":
		case "wrote":
			last[key] = "outcome"
			if p.Writes == 0 || p.Detail == "" {
				t.Errorf("%s: wrote nothing: %+v", key, p)
			}
		case "unchanged", "conflict", "retry", "dropped":
			last[key] = "outcome"
		default:
			t.Errorf("%s: unknown step %q", key, p.Step)
		}
		if p.Took < 0 || e.At.IsZero() || e.Source != collect.SourceReconciler || e.Object.Kind != "Service" {
			t.Errorf("%s: %+v %+v", key, e, p)
		}
	}
}

// cluster is a namespace with a running reconciler.
type cluster struct {
	t  *testing.T
	ns string
	*steps
}

func start(t *testing.T, change func(*Options)) *cluster {
	t.Helper()
	c := &cluster{t: t, steps: newSteps()}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.ns = ns.Name
	o := Options{Client: client, Sink: c.steps}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		c.checkCausal(t)
	})
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) service(name string, change func(*corev1.Service)) *corev1.Service {
	c.t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name},
		Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromString("web")},
			{Name: "metrics", Port: 9090, TargetPort: intstr.FromInt32(9100)},
		},
	}}
	if change != nil {
		change(s)
	}
	s, err := client.CoreV1().Services(c.ns).Create(c.t.Context(), s, metav1.CreateOptions{})
	c.must(err)
	return s
}

// pod creates a pod of the app, scheduled to node-1, without an address.
func (c *cluster) pod(name, app string, port int32) {
	c.t.Helper()
	_, err := client.CoreV1().Pods(c.ns).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "c", Image: "none", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: port}},
		}}},
	}, metav1.CreateOptions{})
	c.must(err)
}

// status sets a pod's address, phase and readiness.
func (c *cluster) status(name, ip string, phase corev1.PodPhase, ready bool, since time.Time) {
	c.t.Helper()
	c.update(name, "status", func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.PodIP, p.Status.PodIPs = "", nil
		if ip != "" {
			p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		}
		st := corev1.ConditionFalse
		if ready {
			st = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: st, LastTransitionTime: metav1.NewTime(since)}}
	})
}

func (c *cluster) update(name, sub string, change func(*corev1.Pod)) {
	c.t.Helper()
	api := client.CoreV1().Pods(c.ns)
	p, err := api.Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	change(p)
	if sub == "status" {
		_, err = api.UpdateStatus(c.t.Context(), p, metav1.UpdateOptions{})
	} else {
		_, err = api.Update(c.t.Context(), p, metav1.UpdateOptions{})
	}
	c.must(err)
}

func (c *cluster) slicesOf(service string) []discoveryv1.EndpointSlice {
	c.t.Helper()
	l, err := client.DiscoveryV1().EndpointSlices(c.ns).List(c.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	c.must(err)
	return l.Items
}

// eventually polls the API server until f gives "".
func (c *cluster) eventually(f func() string) {
	c.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(c.t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = f()
		return last == "", nil
	})
	if err != nil {
		c.t.Fatalf("%v: %s\nsteps:%s", err, last, dump(c.of(EndpointSliceController, c.ns, "web")))
	}
}

// disagreement compares slices and Endpoints of a Service with what
// engine/desired wants of the Service and pods there are.
func (c *cluster) disagreement(service string) string {
	c.t.Helper()
	svc, err := client.CoreV1().Services(c.ns).Get(c.t.Context(), service, metav1.GetOptions{})
	c.must(err)
	l, err := client.CoreV1().Pods(c.ns).List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	var pods []desired.PodRef
	for i := range l.Items {
		pods = append(pods, desired.PodRef{Name: l.Items[i].Name, UID: string(l.Items[i].UID), Pod: kube.ConvertPod(&l.Items[i])})
	}
	want := desired.Slices(kube.ConvertService(svc), pods)
	have := c.entries(service)
	if !reflect.DeepEqual(have, want) && len(have)+len(want) > 0 {
		return fmt.Sprintf("slices have\n%+v\nwant\n%+v", have, want)
	}
	e, err := client.CoreV1().Endpoints(c.ns).Get(c.t.Context(), service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "no Endpoints"
	}
	c.must(err)
	legacyWant := desired.EndpointsV1(kube.ConvertService(svc), pods)
	legacyHave := mergePorts(kube.ConvertEndpoints(e).Addresses)
	if !reflect.DeepEqual(legacyHave, legacyWant) && len(legacyHave)+len(legacyWant) > 0 {
		return fmt.Sprintf("Endpoints have\n%+v\nwant\n%+v", legacyHave, legacyWant)
	}
	return ""
}

// entries reads the slices as desired.SliceEntry, sorted alike.
func (c *cluster) entries(service string) (out []desired.SliceEntry) {
	for _, s := range c.slicesOf(service) {
		p, ok := kube.ConvertEndpointSlice(&s)
		if !ok {
			continue
		}
		desired.SortPorts(p.Ports)
		for _, e := range p.Endpoints {
			out = append(out, desired.SliceEntry{
				PodName: e.PodName, PodUID: e.PodUID, Address: e.Address, Node: e.Node,
				Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Ports: p.Ports,
			})
		}
	}
	slices.SortFunc(out, func(a, b desired.SliceEntry) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.PodUID, b.PodUID))
	})
	return out
}

// mergePorts joins the entries that an address has in several subsets.
func mergePorts(in []collect.EndpointsAddress) (out []collect.EndpointsAddress) {
	type id struct {
		ip  netip.Addr
		uid string
	}
	at := map[id]int{}
	for _, a := range in {
		i, ok := at[id{a.IP, a.PodUID}]
		if !ok {
			at[id{a.IP, a.PodUID}] = len(out)
			out = append(out, a)
			continue
		}
		out[i].Ports = append(slices.Clone(out[i].Ports), a.Ports...)
	}
	for i := range out {
		out[i].Ports = slices.Clone(out[i].Ports)
		desired.SortPorts(out[i].Ports)
	}
	slices.SortFunc(out, func(a, b collect.EndpointsAddress) int {
		return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.PodUID, b.PodUID))
	})
	return out
}
