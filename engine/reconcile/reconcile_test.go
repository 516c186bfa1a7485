package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/workloads"
)

func TestSlicesAndEndpointsFollowEveryChangeOfPods(t *testing.T) {
	c := start(t, func(o *Options) { o.MaxEndpointsPerSlice = 4 })
	c.service("web", nil)
	c.eventually(func() string { return c.disagreement("web") })
	rnd := rand.New(rand.NewPCG(3, 4))
	api := client.CoreV1().Pods(c.ns)
	exists := map[string]bool{}
	for i := range 80 {
		name := fmt.Sprintf("web-%d", rnd.IntN(10))
		ip := fmt.Sprintf("10.244.0.%d", 1+rnd.IntN(200))
		what := rnd.IntN(10)
		if !exists[name] {
			c.pod(name, "web", 8080+int32(rnd.IntN(2)))
			exists[name] = true
			if what < 8 {
				c.status(name, ip, corev1.PodRunning, what < 6, time.Now())
			}
		} else {
			switch what {
			case 0, 1, 2, 3, 4, 5:
				c.status(name, ip, corev1.PodRunning, what < 3, time.Now())
			case 6:
				c.status(name, ip, corev1.PodSucceeded, false, time.Now())
			case 7:
				c.update(name, "", func(p *corev1.Pod) {
					p.Labels["app"] = map[string]string{"web": "other", "other": "web"}[p.Labels["app"]]
				})
			case 8: // terminating: it stays until the second deletion
				c.must(api.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(300))}))
			case 9:
				c.must(api.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
				delete(exists, name)
			}
		}
		if i%5 == 4 {
			c.eventually(func() string { return c.disagreement("web") })
		}
	}
	for _, s := range c.slicesOf("web") {
		if len(s.Endpoints) > 4 {
			t.Errorf("slice %s has %d endpoints, at most 4 are allowed", s.Name, len(s.Endpoints))
		}
	}
}

func TestTriggerTimeIsWhenThePodBecameReady(t *testing.T) {
	c := start(t, nil)
	c.service("web", nil)
	c.pod("web-0", "web", 8080)
	c.eventually(func() string { return c.disagreement("web") })
	c.await(t, EndpointSliceController, c.ns, "web", 0, is("wrote"))
	ready := time.Now().Truncate(time.Second)
	c.status("web-0", "10.244.0.7", corev1.PodRunning, true, ready)
	want := ready.UTC().Format(time.RFC3339Nano)
	c.eventually(func() string {
		if d := c.disagreement("web"); d != "" {
			return d
		}
		e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		for _, got := range []string{c.slicesOf("web")[0].Annotations[corev1.EndpointsLastChangeTriggerTime], e.Annotations[corev1.EndpointsLastChangeTriggerTime]} {
			if got != want {
				return fmt.Sprintf("trigger time %q, want %q", got, want)
			}
		}
		return ""
	})
}

func TestDeletedSliceAndEndpointsAreMadeAgain(t *testing.T) {
	c := start(t, nil)
	c.service("web", nil)
	c.pod("web-0", "web", 8080)
	c.status("web-0", "10.244.0.7", corev1.PodRunning, true, time.Now())
	c.eventually(func() string { return c.disagreement("web") })
	old := c.slicesOf("web")[0]
	c.must(client.DiscoveryV1().EndpointSlices(c.ns).Delete(t.Context(), old.Name, metav1.DeleteOptions{}))
	c.must(client.CoreV1().Endpoints(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	c.eventually(func() string { return c.disagreement("web") })
	if s := c.slicesOf("web"); s[0].UID == old.UID {
		t.Errorf("slice %s was not deleted", old.Name)
	}
}

func TestHandEditedSliceIsRepaired(t *testing.T) {
	c := start(t, nil)
	c.service("web", nil)
	c.pod("web-0", "web", 8080)
	c.status("web-0", "10.244.0.7", corev1.PodRunning, true, time.Now())
	c.eventually(func() string { return c.disagreement("web") })
	s := c.slicesOf("web")[0]
	s.Endpoints = nil
	edited, err := client.DiscoveryV1().EndpointSlices(c.ns).Update(t.Context(), &s, metav1.UpdateOptions{})
	c.must(err)
	c.eventually(func() string {
		if c.slicesOf("web")[0].ResourceVersion == edited.ResourceVersion {
			return "still as edited"
		}
		return c.disagreement("web")
	})
}

func TestServiceWithoutSelectorIsLeftAlone(t *testing.T) {
	c := start(t, nil)
	c.service("manual", func(s *corev1.Service) { s.Spec.Selector = nil })
	c.service("web", nil)
	hand := func(service, managedBy string) *discoveryv1.EndpointSlice {
		s, err := client.DiscoveryV1().EndpointSlices(c.ns).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: service + "-hand-", Labels: map[string]string{
				discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: managedBy}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		}, metav1.CreateOptions{})
		c.must(err)
		return s
	}
	// One of a Service without selector, one of another manager beside ours.
	slices := []*discoveryv1.EndpointSlice{hand("manual", "me"), hand("web", "me")}
	c.await(t, EndpointSliceController, c.ns, "manual", 0, is("unchanged"))
	c.await(t, EndpointsController, c.ns, "manual", 0, is("unchanged"))
	c.await(t, EndpointSliceController, c.ns, "web", 0, is("wrote"))
	for _, s := range slices {
		now, err := client.DiscoveryV1().EndpointSlices(c.ns).Get(t.Context(), s.Name, metav1.GetOptions{})
		c.must(err)
		if now.ResourceVersion != s.ResourceVersion {
			t.Errorf("%s was written to", s.Name)
		}
	}
	if n := len(c.slicesOf("manual")); n != 1 {
		t.Errorf("%d slices for the Service without selector, want the one made by hand", n)
	}
	if _, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "manual", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Endpoints for the Service without selector: %v", err)
	}
}

func TestDeletedServiceTakesSlicesAndEndpointsAlong(t *testing.T) {
	c := start(t, nil)
	gc := workloads.New(workloads.Options{Client: client})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gc.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("garbage collection: %v", err)
		}
	}()
	c.service("web", nil)
	c.eventually(func() string { return c.disagreement("web") })
	c.must(client.CoreV1().Services(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	c.eventually(func() string {
		if n := len(c.slicesOf("web")); n > 0 {
			return fmt.Sprintf("%d slices left", n)
		}
		if _, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("Endpoints left: %v", err)
		}
		return ""
	})
}

// rival is a client that has a slice changed by another hand just before its
// next update in the namespace, once that is set.
type rival struct {
	kubernetes.Interface
	namespace atomic.Pointer[string]
}

func (r *rival) DiscoveryV1() typeddiscovery.DiscoveryV1Interface {
	return rivalDiscovery{r.Interface.DiscoveryV1(), r}
}

type rivalDiscovery struct {
	typeddiscovery.DiscoveryV1Interface
	r *rival
}

func (d rivalDiscovery) EndpointSlices(ns string) typeddiscovery.EndpointSliceInterface {
	return rivalSlices{d.DiscoveryV1Interface.EndpointSlices(ns), d.r, ns}
}

type rivalSlices struct {
	typeddiscovery.EndpointSliceInterface
	r  *rival
	ns string
}

func (s rivalSlices) Update(ctx context.Context, o *discoveryv1.EndpointSlice, opts metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	if ns := s.r.namespace.Load(); ns != nil && *ns == s.ns && s.r.namespace.CompareAndSwap(ns, nil) {
		other, err := s.Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		other.Labels["rival"] = "was-here"
		if _, err := s.EndpointSliceInterface.Update(ctx, other, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
	}
	return s.EndpointSliceInterface.Update(ctx, o, opts)
}

func TestConflictIsRetriedOnAFreshRead(t *testing.T) {
	r := &rival{Interface: client}
	c := start(t, func(o *Options) { o.Client = r })
	c.service("web", nil)
	c.pod("web-0", "web", 8080)
	c.status("web-0", "10.244.0.7", corev1.PodRunning, true, time.Now())
	// The first endpoint replaces the placeholder slice unconditionally; the
	// second one changes a slice that was read.
	c.eventually(func() string { return c.disagreement("web") })
	r.namespace.Store(&c.ns)
	c.pod("web-1", "web", 8080)
	c.status("web-1", "10.244.0.8", corev1.PodRunning, true, time.Now())
	i := c.await(t, EndpointSliceController, c.ns, "web", 0, is("conflict"))
	c.await(t, EndpointSliceController, c.ns, "web", i, is("wrote"))
	c.eventually(func() string { return c.disagreement("web") })
	if s := c.of(EndpointSliceController, c.ns, "web")[i]; s.Tries != 1 || s.Writes != 0 || s.Detail == "" {
		t.Errorf("conflict = %+v", s)
	}
}

func TestBeforeCanMakeSyncsFail(t *testing.T) {
	var fail atomic.Bool
	fail.Store(true)
	c := start(t, func(o *Options) {
		o.Before = func(_ context.Context, controller, _ string) error {
			if controller == EndpointSliceController && fail.Load() {
				return fmt.Errorf("the disk is on fire")
			}
			return nil
		}
	})
	c.service("web", nil)
	i := c.await(t, EndpointSliceController, c.ns, "web", 0, func(s collect.ReconcileStep) bool {
		return s.Step == "retry" && s.Detail == "the disk is on fire"
	})
	c.await(t, EndpointsController, c.ns, "web", 0, is("wrote"))
	fail.Store(false)
	c.await(t, EndpointSliceController, c.ns, "web", i, is("wrote"))
}
