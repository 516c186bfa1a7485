package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/kubelet"
	"github.com/kconverge/kconverge/engine/lab/kubelet/fakenet"
	"github.com/kconverge/kconverge/engine/lab/workloads"
)

// patience bounds waits for something that will happen; no test is right or
// wrong by how long it took.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// cluster is the embedded API server with the controllers and some nodes.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	client kubernetes.Interface
	stop   map[string]func() // ends the kubelet of a node
}

// newCluster starts everything for the length of a test. Pods take next to no
// time to start and stop.
func newCluster(t *testing.T, nodes int, change ...func(*workloads.Options)) *cluster {
	t.Helper()
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.Config()
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	o := workloads.Options{Client: client}
	for _, f := range change {
		f(&o)
	}
	run("workloads", workloads.New(o).Run)
	shared := kubelet.NewShared(client)
	run("kubelets", shared.Run)
	stops := map[string]func(){}
	for i := range nodes {
		cidr := netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1))
		name := fmt.Sprintf("node-%d", i+1)
		k := kubelet.New(kubelet.Options{
			Client: client, Shared: shared, Node: name, Heartbeat: time.Second, Addresses: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("198.18.0.%d", i+1))},
			PodCIDRs: []netip.Prefix{cidr}, Sandbox: fakenet.New(cidr, 200),
			PullDelay: kubelet.None, StartDelay: kubelet.Exactly(5 * time.Millisecond), AppWarmup: kubelet.None, NoticeDelay: kubelet.None, StopDelay: kubelet.Exactly(5 * time.Millisecond),
		})
		alive, kill := context.WithCancel(ctx)
		stops[name] = kill
		run("kubelet", func(context.Context) error { return k.Run(alive) })
	}
	c := &cluster{t: t, ctx: t.Context(), client: client, stop: stops}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		stop, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(stop); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	c.until("the nodes are ready", func() (bool, error) {
		l, err := client.CoreV1().Nodes().List(c.ctx, metav1.ListOptions{})
		return err == nil && len(l.Items) == nodes, err
	})
	return c
}

// until waits for a condition.
func (c *cluster) until(what string, f func() (bool, error)) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(c.ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) { return f() })
	if err != nil {
		c.t.Fatalf("until %s: %v", what, err)
	}
}

func deployment(name string, replicas int32, change ...func(d *appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "v1"}}},
			},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func strategy(surge, unavailable string) func(d *appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		s, u := intstr.Parse(surge), intstr.Parse(unavailable)
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}}
	}
}

func image(name string) func(d *appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) func(d *appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func (c *cluster) deploy(d *appsv1.Deployment) *appsv1.Deployment {
	c.t.Helper()
	d, err := c.client.AppsV1().Deployments("default").Create(c.ctx, d, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.rolledOut(d.Name)
}

// patient goes on while controllers write as often as the test does.
var patient = wait.Backoff{Steps: 100, Duration: time.Millisecond, Factor: 1.2, Jitter: 1, Cap: 100 * time.Millisecond}

// change updates a Deployment as kubectl edit would.
func (c *cluster) change(name string, f func(d *appsv1.Deployment)) {
	c.t.Helper()
	err := retry.RetryOnConflict(patient, func() error {
		d, err := c.client.AppsV1().Deployments("default").Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(d)
		_, err = c.client.AppsV1().Deployments("default").Update(c.ctx, d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) get(name string) *appsv1.Deployment {
	c.t.Helper()
	d, err := c.client.AppsV1().Deployments("default").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// rolledOut waits as kubectl rollout status does, and for the pods on top: they
// are as many as wanted and none is terminating.
func (c *cluster) rolledOut(name string) *appsv1.Deployment {
	c.t.Helper()
	var d *appsv1.Deployment
	c.until(name+" is rolled out", func() (done bool, err error) {
		d, err = c.client.AppsV1().Deployments("default").Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		want := *d.Spec.Replicas
		if d.Generation > d.Status.ObservedGeneration || d.Status.UpdatedReplicas != want || d.Status.Replicas != want || d.Status.AvailableReplicas != want {
			return false, nil
		}
		return len(c.pods(name)) == int(want), nil
	})
	return d
}

// pods are the pods with the label app=NAME.
func (c *cluster) pods(app string) []corev1.Pod {
	c.t.Helper()
	l, err := c.client.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.t.Fatal(err)
	}
	return l.Items
}

func (c *cluster) replicaSets(app string) []appsv1.ReplicaSet {
	c.t.Helper()
	l, err := c.client.AppsV1().ReplicaSets("default").List(c.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.t.Fatal(err)
	}
	slices.SortFunc(l.Items, func(a, b appsv1.ReplicaSet) int { return strings.Compare(a.Name, b.Name) })
	return l.Items
}

// byImage returns the ReplicaSet of an image.
func (c *cluster) byImage(app, image string) appsv1.ReplicaSet {
	c.t.Helper()
	for _, rs := range c.replicaSets(app) {
		if rs.Spec.Template.Spec.Containers[0].Image == image {
			return rs
		}
	}
	c.t.Fatalf("no ReplicaSet of %s with image %s", app, image)
	return appsv1.ReplicaSet{}
}

func names(pods []corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

// events returns "Reason: message" of the Events about an object.
func (c *cluster) events(kind, name string) []string {
	c.t.Helper()
	l, err := c.client.CoreV1().Events("default").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, e := range l.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

func (c *cluster) untilEvent(kind, name, want string) {
	c.t.Helper()
	c.until("there is an Event "+want, func() (bool, error) {
		return slices.ContainsFunc(c.events(kind, name), func(s string) bool { return strings.HasPrefix(s, want) }), nil
	})
}

// follow calls check with the objects of one app after each change that a watch
// shows, which has every state that the API server had. The function it returns
// stops it and returns what check found wrong.
func follow[T metav1.Object](c *cluster, list []T, from string, start func(o metav1.ListOptions) (watch.Interface, error), app string, check func(all []T) error) (stop func() error) {
	c.t.Helper()
	w, err := start(metav1.ListOptions{LabelSelector: "app=" + app, ResourceVersion: from})
	if err != nil {
		c.t.Fatal(err)
	}
	now := map[types.UID]T{}
	for _, o := range list {
		now[o.GetUID()] = o
	}
	var failures []error
	var stopping atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(T)
			if !ok {
				if !stopping.Load() {
					failures = append(failures, fmt.Errorf("the watch broke: %+v", e.Object))
				}
				return
			}
			now[o.GetUID()] = o
			if e.Type == watch.Deleted {
				delete(now, o.GetUID())
			}
			if err := check(slices.Collect(maps.Values(now))); err != nil {
				failures = append(failures, fmt.Errorf("after %s %s: %w", e.Type, o.GetName(), err))
			}
		}
	})
	stop = sync.OnceValue(func() error {
		stopping.Store(true)
		w.Stop()
		wg.Wait()
		return errors.Join(failures...)
	})
	c.t.Cleanup(func() { _ = stop() }) // for a test that failed before its own stop
	return stop
}

func (c *cluster) followPods(app string, check func(pods []*corev1.Pod) error) (stop func() error) {
	c.t.Helper()
	l, err := c.client.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.t.Fatal(err)
	}
	return follow(c, pointers(l.Items), l.ResourceVersion, func(o metav1.ListOptions) (watch.Interface, error) {
		return c.client.CoreV1().Pods("default").Watch(c.ctx, o)
	}, app, check)
}

func (c *cluster) followReplicaSets(app string, check func(rss []*appsv1.ReplicaSet) error) (stop func() error) {
	c.t.Helper()
	l, err := c.client.AppsV1().ReplicaSets("default").List(c.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.t.Fatal(err)
	}
	return follow(c, pointers(l.Items), l.ResourceVersion, func(o metav1.ListOptions) (watch.Interface, error) {
		return c.client.AppsV1().ReplicaSets("default").Watch(c.ctx, o)
	}, app, check)
}

func pointers[T any](items []T) []*T {
	var out []*T
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (c *cluster) gone(what string, get func() error) {
	c.t.Helper()
	c.until(what+" is gone", func() (bool, error) {
		err := get()
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
