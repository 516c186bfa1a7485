package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect/kube"
)

// pods creates ready pods of the app, several at a time.
func (c *cluster) pods(app string, from, n int, ready func(i int) bool) {
	c.t.Helper()
	work := make(chan int)
	done := make(chan error)
	for range 8 {
		go func() {
			var err error
			for i := range work {
				if err == nil {
					err = c.readyPod(app, i, ready(i))
				}
			}
			done <- err
		}()
	}
	for i := range n {
		work <- from + i
	}
	close(work)
	for range 8 {
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *cluster) readyPod(app string, i int, ready bool) error {
	api := client.CoreV1().Pods(c.ns)
	p, err := api.Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "c", Image: "none", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	ip := fmt.Sprintf("10.244.%d.%d", i/250, 1+i%250)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	}
	_, err = api.UpdateStatus(c.t.Context(), p, metav1.UpdateOptions{})
	return err
}

// sizes are the numbers of endpoints in the slices of a Service.
func (c *cluster) sizes(service string) (out []int) {
	for _, s := range c.slicesOf(service) {
		out = append(out, len(s.Endpoints))
	}
	slices.Sort(out)
	return out
}

func TestSlicesArePackedByHundreds(t *testing.T) {
	c := start(t, func(o *Options) {
		o.BatchPeriod = 100 * time.Millisecond // the pods come in waves, not each on its own
	})
	c.pods("web", 0, 250, func(int) bool { return true })
	// All at once: full slices first, one with the rest.
	c.service("web", nil)
	c.eventually(func() string {
		if got := c.sizes("web"); !slices.Equal(got, []int{50, 100, 100}) {
			return fmt.Sprintf("slices of %v", got)
		}
		return c.disagreement("web")
	})
	before := map[string]string{}
	for _, s := range c.slicesOf("web") {
		before[s.Name] = s.ResourceVersion
	}
	// More fill the one that has room; no full one is written to.
	c.pods("web", 250, 40, func(int) bool { return true })
	c.eventually(func() string {
		if got := c.sizes("web"); !slices.Equal(got, []int{90, 100, 100}) {
			return fmt.Sprintf("slices of %v", got)
		}
		return c.disagreement("web")
	})
	written := 0
	for _, s := range c.slicesOf("web") {
		if before[s.Name] != s.ResourceVersion {
			written++
		}
	}
	if written != 1 {
		t.Errorf("%d of 3 slices were written to", written)
	}
	// Fewer leave holes: an update that frees endpoints does not repack.
	for i := range 60 {
		c.must(client.CoreV1().Pods(c.ns).Delete(t.Context(), fmt.Sprintf("web-%d", i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	}
	c.eventually(func() string { return c.disagreement("web") })
	total := 0
	for _, n := range c.sizes("web") {
		if total += n; n > 100 {
			t.Errorf("a slice of %d", n)
		}
	}
	if total != 230 {
		t.Errorf("%d endpoints", total)
	}
}

func TestEndpointsAreCutAtAThousandAndSlicesAreNot(t *testing.T) {
	c := start(t, func(o *Options) { o.BatchPeriod = 200 * time.Millisecond })
	// One port: the limit counts an address once for each subset it is in.
	c.service("web", func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	c.pods("web", 0, 1010, func(i int) bool { return i >= 60 })
	annotated := func(want bool) string {
		e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		if _, got := e.Annotations[corev1.EndpointsOverCapacity]; got != want || kube.ConvertEndpoints(e).Truncated != want {
			return fmt.Sprintf("annotations %v", e.Annotations)
		}
		return ""
	}
	c.eventually(func() string {
		if got := len(c.entries("web")); got != 1010 {
			return fmt.Sprintf("%d endpoints in slices", got)
		}
		if d := annotated(true); d != "" {
			return d
		}
		e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		ready, not := 0, 0
		for _, a := range kube.ConvertEndpoints(e).Addresses {
			if a.Ready {
				ready++
			} else {
				not++
			}
		}
		// All the ready ones, and as many others as there is room for.
		if ready != 950 || not != 50 {
			return fmt.Sprintf("%d ready and %d other addresses", ready, not)
		}
		return ""
	})
	for i := range 10 {
		c.must(client.CoreV1().Pods(c.ns).Delete(t.Context(), fmt.Sprintf("web-%d", i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	}
	c.eventually(func() string {
		if d := annotated(false); d != "" {
			return d
		}
		return c.disagreement("web")
	})
}

func TestEditedEndpointsStayUntilTheNextSyncAndSlicesNeverFollow(t *testing.T) {
	c := start(t, nil)
	c.service("web", nil)
	c.pods("web", 0, 2, func(int) bool { return true })
	c.eventually(func() string { return c.disagreement("web") })
	slice := c.slicesOf("web")[0]
	// The controller watches Endpoints only for their deletion, so an edit
	// wakes nobody. It is the next change of a pod or the Service that ends it:
	// a late notification of the pods above may, and then it is edited again.
	endings := 0
	for edited := false; !edited; endings++ {
		if endings == 10 {
			t.Fatal("each edit was undone: it wakes the controller")
		}
		c.edit("web", func(e *corev1.Endpoints) {
			e.Subsets = []corev1.EndpointSubset{subset(80, "192.0.2.66")}
			if e.Annotations == nil { // a sync without a trigger time takes it away
				e.Annotations = map[string]string{}
			}
			e.Annotations[corev1.EndpointsOverCapacity] = overCapacityTruncated
		})
		// Another Service's Endpoints are written after the edit was watched.
		other := fmt.Sprintf("other-%d", endings)
		c.service(other, nil)
		c.eventually(func() string { return c.disagreement(other) })
		e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		edited = e.Subsets[0].Addresses[0].IP == "192.0.2.66"
	}
	for _, s := range c.slicesOf("web") {
		if s.ResourceVersion != slice.ResourceVersion || s.Labels[discoveryv1.LabelManagedBy] != sliceManagedBy {
			t.Errorf("slice %s by %s followed the edit", s.Name, s.Labels[discoveryv1.LabelManagedBy])
		}
	}
	c.pods("web", 2, 1, func(int) bool { return true })
	c.eventually(func() string { return c.disagreement("web") })
	now, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
	c.must(err)
	if now.Annotations[corev1.EndpointsOverCapacity] != "" {
		t.Errorf("annotations %v", now.Annotations)
	}
}

func TestPublishNotReadyAddressesPublishesAllButFinishedPods(t *testing.T) {
	c := start(t, nil)
	c.pods("web", 0, 4, func(i int) bool { return i == 0 })
	c.status("web-3", "10.244.0.4", corev1.PodSucceeded, false, time.Now())
	c.must(client.CoreV1().Pods(c.ns).Delete(t.Context(), "web-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(300))}))
	publish := func(on bool, ready, legacyReady, legacyOther int) {
		t.Helper()
		s, err := client.CoreV1().Services(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		s.Spec.PublishNotReadyAddresses = on
		_, err = client.CoreV1().Services(c.ns).Update(t.Context(), s, metav1.UpdateOptions{})
		c.must(err)
		c.eventually(func() string { return c.disagreement("web") })
		n := 0
		for _, e := range c.entries("web") {
			if e.Ready {
				n++
			}
		}
		if n != ready || len(c.entries("web")) != 3 {
			t.Errorf("publishing %v: %d of %d are ready", on, n, len(c.entries("web")))
		}
		e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		is, not := 0, 0
		for _, s := range e.Subsets {
			is, not = is+len(s.Addresses), not+len(s.NotReadyAddresses)
		}
		if is != legacyReady || not != legacyOther {
			t.Errorf("publishing %v: Endpoints have %d ready and %d others", on, is, not)
		}
	}
	c.service("web", func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	publish(true, 3, 3, 0)
	publish(false, 1, 1, 1)
	publish(true, 3, 3, 0)
}
