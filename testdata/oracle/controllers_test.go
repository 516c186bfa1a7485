package oracle

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/reconcile"
)

var (
	operations = flag.Int("operations", 200, "how many random changes both sides go through")
	seed       = flag.Uint64("seed", 7, "of the random changes")
)

// newClient is an API in memory that hands out what the controllers go by:
// names, UIDs, versions and generations.
func newClient() *fake.Clientset {
	c := fake.NewSimpleClientset()
	var n atomic.Int64
	c.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		var obj runtime.Object
		switch a := a.(type) {
		case clienttesting.CreateActionImpl:
			obj = a.GetObject()
		case clienttesting.UpdateActionImpl:
			obj = a.GetObject()
		default:
			return false, nil, nil
		}
		o, err := meta.Accessor(obj)
		if err != nil {
			return false, nil, nil
		}
		i := n.Add(1)
		if o.GetName() == "" {
			o.SetName(o.GetGenerateName() + strconv.FormatInt(i, 36))
		}
		if o.GetUID() == "" {
			o.SetUID(types.UID(o.GetNamespace() + "-" + o.GetName()))
		}
		o.SetResourceVersion(strconv.FormatInt(i, 10))
		o.SetGeneration(i)
		return false, nil, nil
	})
	return c
}

// watched waits until all informers have begun to watch: what is written
// between an in-memory list and its watch would be lost.
func watched(t *testing.T, c *fake.Clientset) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		seen := map[string]bool{}
		for _, a := range c.Actions() {
			if a.GetVerb() == "watch" {
				seen[a.GetResource().Resource] = true
			}
		}
		return len(seen) == 5, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func realControllers(ctx context.Context, c *fake.Clientset) (stop func()) {
	f := informers.NewSharedInformerFactory(c, 0)
	core := f.Core().V1()
	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), f.Discovery().V1().EndpointSlices(), 100, c, 0)
	legacy := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), c, 0)
	mirror := endpointslicemirroring.NewController(ctx, core.Endpoints(), f.Discovery().V1().EndpointSlices(), core.Services(), 1000, c, 0)
	f.Start(ctx.Done())
	var wg sync.WaitGroup
	wg.Go(func() { slices.Run(ctx, 5) })
	wg.Go(func() { legacy.Run(ctx, 5) })
	wg.Go(func() { mirror.Run(ctx, 5) })
	return func() { wg.Wait(); f.Shutdown() }
}

type nowhere struct{}

func (nowhere) Emit(collect.Event) {}

// contents are the slices and Endpoints of a side, without what is made up:
// names, UIDs and how endpoints are spread over slices.
func contents(t *testing.T, c *fake.Clientset) string {
	t.Helper()
	var out []string
	list, err := c.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(x any) string { return fmt.Sprintf("%+v", x) }
	for _, s := range list.Items {
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s/%s/%d", *p.Name, *p.Protocol, *p.Port))
		}
		sort.Strings(ports)
		annotations := map[string]string{}
		for k, v := range s.Annotations {
			if k != v1.EndpointsLastChangeTriggerTime {
				annotations[k] = v
			}
		}
		head := fmt.Sprintf("%s %s %v %v owned by %s %s", s.AddressType, ports, s.Labels, annotations, s.OwnerReferences[0].Kind, s.OwnerReferences[0].Name)
		if len(s.Endpoints) == 0 {
			out = append(out, head)
		}
		for _, e := range s.Endpoints {
			is := func(b *bool) string {
				if b == nil {
					return "-"
				}
				return strconv.FormatBool(*b)
			}
			name := func(s *string) string {
				if s == nil {
					return "-"
				}
				return *s
			}
			uid := types.UID("-")
			if e.TargetRef != nil {
				uid = e.TargetRef.UID
			}
			hints := ""
			if e.Hints != nil {
				hints = text(e.Hints.ForZones) + text(e.Hints.ForNodes)
			}
			out = append(out, fmt.Sprintf("%s: %s %s ready %s serving %s terminating %s on %s in %s hints %s", head, e.Addresses, uid,
				is(e.Conditions.Ready), is(e.Conditions.Serving), is(e.Conditions.Terminating), name(e.NodeName), name(e.Zone), hints))
		}
	}
	legacy, err := c.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range legacy.Items {
		head := fmt.Sprintf("Endpoints %s %v", e.Name, e.Labels)
		out = append(out, head)
		for _, s := range e.Subsets {
			for _, p := range s.Ports {
				add := func(list []v1.EndpointAddress, how string) {
					for _, a := range list {
						uid := types.UID("-")
						if a.TargetRef != nil {
							uid = a.TargetRef.UID
						}
						out = append(out, fmt.Sprintf("%s: %s %s %s %s/%d", head, how, a.IP, uid, p.Name, p.Port))
					}
				}
				add(s.Addresses, "ready")
				add(s.NotReadyAddresses, "not ready")
			}
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func TestControllersWriteWhatTheRealOnesWrite(t *testing.T) {
	klog.LogToStderr(false)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	real, ours := newClient(), newClient()
	both := []*fake.Clientset{real, ours}
	for i, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		for _, c := range both {
			n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i+1), Labels: map[string]string{v1.LabelTopologyZone: zone}}}
			if _, err := c.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop := realControllers(ctx, real)
	r, err := reconcile.New(reconcile.Options{Client: ours, Sink: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	watched(t, real)
	watched(t, ours)

	// Once a first Service is through, both have looked for what was left over
	// from before them.
	rnd := rand.New(rand.NewPCG(*seed, 11))
	w := &changes{rnd: rnd, services: map[string]*v1.Service{}, pods: map[string]*v1.Pod{}}
	first := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first", UID: "first"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeClusterIP, ClusterIP: "10.96.0.8", IPFamilies: []v1.IPFamily{v1.IPv4Protocol}, Selector: map[string]string{"app": "none"}}}
	for _, c := range both {
		if _, err := c.CoreV1().Services("ns").Create(ctx, first.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	equal(ctx, t, real, ours, "the start", 2)
	for i := range *operations {
		what, do := w.next()
		for _, c := range both {
			if err := do(ctx, c); err != nil {
				t.Fatalf("%d %s: %v", i, what, err)
			}
		}
		equal(ctx, t, real, ours, fmt.Sprintf("change %d, %s", i, what), 1)
	}
}

// equal waits until both sides have the same content, of at least so many
// lines, and are still: nothing is written any more.
func equal(ctx context.Context, t *testing.T, real, ours *fake.Clientset, what string, lines int) {
	t.Helper()
	var a, b string
	still, last := 0, ""
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		a, b = contents(t, real), contents(t, ours)
		if a != b || a != last || strings.Count(a, "\n")+1 < lines {
			still, last = 0, a
			return false, nil
		}
		still++
		return still == 12, nil
	})
	if err != nil {
		x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
		t.Fatalf("after %s:\nonly the real ones:\n%s\nonly ours:\n%s", what, strings.Join(without(x, y), "\n"), strings.Join(without(y, x), "\n"))
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// changes makes random changes that both sides go through.
type changes struct {
	rnd      *rand.Rand
	services map[string]*v1.Service
	pods     map[string]*v1.Pod
	n        int
}

type doing func(ctx context.Context, c *fake.Clientset) error

func (w *changes) next() (string, doing) {
	w.n++
	switch w.rnd.IntN(10) {
	case 0, 1, 2:
		return w.service()
	case 3, 4:
		return w.endpoints()
	}
	return w.pod()
}

func (w *changes) service() (string, doing) {
	name := fmt.Sprintf("svc-%d", w.rnd.IntN(4))
	old := w.services[name]
	if old != nil && w.rnd.IntN(8) == 0 {
		delete(w.services, name)
		return "delete " + name, func(ctx context.Context, c *fake.Clientset) error {
			// What garbage collection would do, which runs nowhere here.
			if err := c.CoreV1().Services("ns").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			return collectSlices(ctx, c, name)
		}
	}
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.n))}}
	if old != nil {
		s = old.DeepCopy()
	}
	s.Labels = [...]map[string]string{nil, {"team": "a"}}[w.rnd.IntN(2)]
	// A Service keeps its first family; the second comes and goes.
	ips, families := []string{"10.96.0.9", "fd00:10:96::9"}, []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	if name == "svc-3" {
		slices.Reverse(ips)
		slices.Reverse(families)
	}
	stacks := 1 + w.rnd.IntN(2)
	s.Spec.Type, s.Spec.ClusterIPs, s.Spec.IPFamilies = v1.ServiceTypeClusterIP, ips[:stacks], families[:stacks]
	if w.rnd.IntN(6) == 0 {
		s.Spec.ClusterIPs = []string{v1.ClusterIPNone}
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	s.Spec.Selector = [...]map[string]string{nil, {"app": "a"}, {"app": "a"}, {"app": "b"}}[w.rnd.IntN(4)]
	s.Spec.PublishNotReadyAddresses = w.rnd.IntN(4) == 0
	s.Spec.TrafficDistribution = [...]*string{nil, nil, ptr("PreferSameZone"), ptr("PreferSameNode")}[w.rnd.IntN(4)]
	s.Spec.Ports = []v1.ServicePort{{Name: "http", Port: 80, Protocol: v1.ProtocolTCP, TargetPort: intstr.FromString("web")}}
	if w.rnd.IntN(3) == 0 {
		s.Spec.Ports = append(s.Spec.Ports, v1.ServicePort{Name: "metrics", Port: 90, Protocol: v1.ProtocolTCP, TargetPort: intstr.FromInt32(9100)})
	}
	w.services[name] = s
	return fmt.Sprintf("Service %s %v of %v", name, s.Spec.IPFamilies, s.Spec.Selector), func(ctx context.Context, c *fake.Clientset) error {
		if old == nil {
			_, err := c.CoreV1().Services("ns").Create(ctx, s.DeepCopy(), metav1.CreateOptions{})
			return err
		}
		_, err := c.CoreV1().Services("ns").Update(ctx, s.DeepCopy(), metav1.UpdateOptions{})
		return err
	}
}

// collectSlices deletes the slices that a Service or Endpoints owned.
func collectSlices(ctx context.Context, c *fake.Clientset, name string) error {
	list, err := c.DiscoveryV1().EndpointSlices("ns").List(ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + name})
	if err != nil {
		return err
	}
	for _, s := range list.Items {
		if err := c.DiscoveryV1().EndpointSlices("ns").Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// endpoints writes Endpoints by hand, with or without a Service of that name.
func (w *changes) endpoints() (string, doing) {
	name := fmt.Sprintf("svc-%d", w.rnd.IntN(4))
	if w.rnd.IntN(6) == 0 {
		return "delete Endpoints " + name, func(ctx context.Context, c *fake.Clientset) error {
			err := c.CoreV1().Endpoints("ns").Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
	}
	var subsets []v1.EndpointSubset
	// One family at a time: when slices of both come and go at once, the real
	// controller's recycleSlices tells those that are yet to be created apart
	// by names that they do not have, and takes many failed tries.
	six := w.rnd.IntN(4) == 0
	for range w.rnd.IntN(3) {
		var s v1.EndpointSubset
		for range 1 + w.rnd.IntN(4) {
			a := v1.EndpointAddress{IP: fmt.Sprintf("192.0.2.%d", 1+w.rnd.IntN(5))}
			if six {
				a.IP = fmt.Sprintf("2001:db8::%d", 1+w.rnd.IntN(5))
			}
			if w.rnd.IntN(4) == 0 {
				a.NodeName, a.TargetRef = ptr("node-1"), &v1.ObjectReference{Kind: "Pod", Name: "p", UID: "p"}
			}
			if w.rnd.IntN(3) == 0 {
				s.NotReadyAddresses = append(s.NotReadyAddresses, a)
			} else {
				s.Addresses = append(s.Addresses, a)
			}
		}
		for i := range 1 + w.rnd.IntN(2) {
			s.Ports = append(s.Ports, v1.EndpointPort{Name: fmt.Sprintf("p%d", i), Port: 80 + int32(w.rnd.IntN(2)), Protocol: v1.ProtocolTCP})
		}
		subsets = append(subsets, s)
	}
	skip := w.rnd.IntN(6) == 0
	return fmt.Sprintf("Endpoints %s (skip %v)", name, skip), func(ctx context.Context, c *fake.Clientset) error {
		api := c.CoreV1().Endpoints("ns")
		e, err := api.Get(ctx, name, metav1.GetOptions{})
		create := apierrors.IsNotFound(err)
		if create {
			e = &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		} else if err != nil {
			return err
		}
		e = e.DeepCopy()
		if e.Labels == nil {
			e.Labels = map[string]string{}
		}
		delete(e.Labels, discovery.LabelSkipMirror)
		if skip {
			e.Labels[discovery.LabelSkipMirror] = "true"
		}
		if e.Subsets = nil; len(subsets) > 0 {
			e.Subsets = (&v1.Endpoints{Subsets: subsets}).DeepCopy().Subsets
		}
		if create {
			_, err = api.Create(ctx, e, metav1.CreateOptions{})
		} else {
			_, err = api.Update(ctx, e, metav1.UpdateOptions{})
		}
		return err
	}
}

func (w *changes) pod() (string, doing) {
	name := fmt.Sprintf("pod-%d", w.rnd.IntN(8))
	old := w.pods[name]
	if old != nil && w.rnd.IntN(6) == 0 {
		delete(w.pods, name)
		return "delete " + name, func(ctx context.Context, c *fake.Clientset) error {
			return c.CoreV1().Pods("ns").Delete(ctx, name, metav1.DeleteOptions{})
		}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.n))}}
	p.Spec.NodeName = fmt.Sprintf("node-%d", 1+w.rnd.IntN(3))
	p.Spec.Containers = []v1.Container{{Name: "c", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: 8080 + int32(w.rnd.IntN(2)), Protocol: v1.ProtocolTCP}}}}
	if old != nil {
		p = old.DeepCopy()
	}
	p.Labels = [...]map[string]string{{"app": "a"}, {"app": "a"}, {"app": "b"}}[w.rnd.IntN(3)]
	p.Status = v1.PodStatus{Phase: v1.PodRunning}
	if w.rnd.IntN(8) > 0 {
		n := 1 + w.rnd.IntN(200)
		ips := []v1.PodIP{{IP: fmt.Sprintf("10.244.0.%d", n)}, {IP: fmt.Sprintf("fd00:10:244::%d", n)}}
		switch w.rnd.IntN(6) {
		case 0:
			ips = ips[:1]
		case 1:
			ips = ips[1:]
		case 2:
			slices.Reverse(ips)
		}
		p.Status.PodIP, p.Status.PodIPs = ips[0].IP, ips
	}
	switch w.rnd.IntN(8) {
	case 0:
		p.Status.Phase = v1.PodSucceeded
	case 1:
		if p.DeletionTimestamp == nil && old != nil {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_900_000_000, 0)}
			p.DeletionGracePeriodSeconds = ptr(int64(30))
		}
	}
	if w.rnd.IntN(3) > 0 {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	}
	w.pods[name] = p
	return fmt.Sprintf("Pod %s %v", name, p.Labels), func(ctx context.Context, c *fake.Clientset) error {
		if old == nil {
			_, err := c.CoreV1().Pods("ns").Create(ctx, p.DeepCopy(), metav1.CreateOptions{})
			return err
		}
		_, err := c.CoreV1().Pods("ns").Update(ctx, p.DeepCopy(), metav1.UpdateOptions{})
		return err
	}
}
