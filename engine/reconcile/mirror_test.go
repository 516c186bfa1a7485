package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/workloads"
)

// bare makes a Service without selector.
func (c *cluster) bare(name string) {
	c.t.Helper()
	c.service(name, func(s *corev1.Service) { s.Spec.Selector = nil })
}

// hand creates Endpoints as a person would.
func (c *cluster) hand(name string, subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	c.t.Helper()
	e, err := client.CoreV1().Endpoints(c.ns).Create(c.t.Context(), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name}, Subsets: subsets}, metav1.CreateOptions{})
	c.must(err)
	return e
}

func (c *cluster) edit(name string, change func(*corev1.Endpoints)) {
	c.t.Helper()
	api := client.CoreV1().Endpoints(c.ns)
	e, err := api.Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	change(e)
	_, err = api.Update(c.t.Context(), e, metav1.UpdateOptions{})
	c.must(err)
}

func subset(port int32, ips ...string) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP}}}
	for _, ip := range ips {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	return s
}

// unmirrored compares the slices of a Service without selector with what
// engine/desired wants of its Endpoints.
func (c *cluster) unmirrored(name string) string {
	c.t.Helper()
	var want []desired.SliceEntry
	e, err := client.CoreV1().Endpoints(c.ns).Get(c.t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		c.must(err)
		want = desired.Mirrored(kube.ConvertEndpoints(e))
	}
	have := mergeEntries(c.entries(name))
	if !reflect.DeepEqual(have, want) && len(have)+len(want) > 0 {
		return fmt.Sprintf("slices have\n%+v\nwant\n%+v", have, want)
	}
	return ""
}

// mergeEntries joins what several slices say of one endpoint.
func mergeEntries(in []desired.SliceEntry) (out []desired.SliceEntry) {
	for _, e := range in {
		e.Node = ""
		if k := len(out) - 1; k >= 0 && out[k].Address == e.Address && out[k].PodUID == e.PodUID {
			out[k].Ready = out[k].Ready || e.Ready
			out[k].Ports = append(slices.Clone(out[k].Ports), e.Ports...)
			desired.SortPorts(out[k].Ports)
			continue
		}
		out = append(out, e)
	}
	return out
}

func TestHandMadeEndpointsAreMirrored(t *testing.T) {
	c := start(t, nil)
	c.bare("db")
	e, err := client.CoreV1().Endpoints(c.ns).Create(t.Context(), &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: map[string]string{"team": "data"}, Annotations: map[string]string{
			"note": "the old database", corev1.LastAppliedConfigAnnotation: "{}", corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z",
		}},
		Subsets: []corev1.EndpointSubset{{
			Addresses:         []corev1.EndpointAddress{{IP: "192.0.2.1", NodeName: ptr.To("node-1"), Hostname: "first"}, {IP: "2001:db8::1"}},
			NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.2", TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "u"}}},
			Ports:             []corev1.EndpointPort{{Name: "http", Port: 5432, AppProtocol: ptr.To("postgres")}},
		}},
	}, metav1.CreateOptions{})
	c.must(err)
	c.eventually(func() string { return c.unmirrored("db") })
	c.await(t, MirrorController, c.ns, "db", 0, is("wrote"))
	list := c.slicesOf("db")
	if len(list) != 2 {
		t.Fatalf("%d slices, want one for each family", len(list))
	}
	slices.SortFunc(list, func(a, b discoveryv1.EndpointSlice) int { return cmp.Compare(a.AddressType, b.AddressType) })
	for i, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		s := list[i]
		if s.AddressType != family || !strings.HasPrefix(s.Name, "db-") {
			t.Errorf("slice %s of %s", s.Name, s.AddressType)
		}
		if want := map[string]string{"team": "data", discoveryv1.LabelServiceName: "db", discoveryv1.LabelManagedBy: mirrorManagedBy}; !reflect.DeepEqual(s.Labels, want) {
			t.Errorf("labels %v, want %v", s.Labels, want)
		}
		if want := map[string]string{"note": "the old database"}; !reflect.DeepEqual(s.Annotations, want) {
			t.Errorf("annotations %v, want %v", s.Annotations, want)
		}
		owner := metav1.GetControllerOf(&s)
		if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Endpoints" || owner.UID != e.UID {
			t.Errorf("controlled by %+v, want the Endpoints", owner)
		}
		if p := s.Ports[0]; *p.Name != "http" || *p.Port != 5432 || *p.Protocol != corev1.ProtocolTCP || *p.AppProtocol != "postgres" {
			t.Errorf("port %+v", p)
		}
	}
	first, second := list[0].Endpoints[0], list[0].Endpoints[1]
	if *first.NodeName != "node-1" || *first.Hostname != "first" || first.Conditions.Serving != nil || first.Conditions.Terminating != nil {
		t.Errorf("%+v", first)
	}
	if second.TargetRef == nil || second.TargetRef.UID != "u" || *second.Conditions.Ready {
		t.Errorf("%+v", second)
	}
}

func TestMirrorFollowsEveryEdit(t *testing.T) {
	c := start(t, nil)
	c.bare("db")
	c.hand("db")
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		c.edit("db", func(e *corev1.Endpoints) {
			if e.Subsets = nil; rnd.IntN(8) == 0 {
				return
			}
			for i := range 1 + rnd.IntN(3) {
				var s corev1.EndpointSubset
				for j := range 1 + rnd.IntN(5) {
					a := corev1.EndpointAddress{IP: fmt.Sprintf("192.0.2.%d", 1+rnd.IntN(6))}
					if rnd.IntN(4) == 0 {
						a.IP = fmt.Sprintf("2001:db8::%d", 1+rnd.IntN(3))
					}
					if rnd.IntN(3) == 0 {
						a.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "u"}
					}
					if rnd.IntN(3) == 0 && j > 0 {
						s.NotReadyAddresses = append(s.NotReadyAddresses, a)
					} else {
						s.Addresses = append(s.Addresses, a)
					}
				}
				for j := range 1 + rnd.IntN(2) {
					s.Ports = append(s.Ports, corev1.EndpointPort{Name: fmt.Sprintf("p%d", (i+j)%3), Port: 80 + int32(rnd.IntN(2))})
				}
				e.Subsets = append(e.Subsets, s)
			}
		})
		c.eventually(func() string { return c.unmirrored("db") })
		for _, s := range c.slicesOf("db") {
			seen := map[string]bool{}
			for _, e := range s.Endpoints {
				if id := fmt.Sprint(e.Addresses, e.TargetRef != nil); seen[id] {
					t.Errorf("%s holds %s twice", s.Name, id)
				} else {
					seen[id] = true
				}
			}
		}
	}
}

func TestMirrorIsSkippedWhereAsked(t *testing.T) {
	c := start(t, nil)
	for name, change := range map[string]func(*corev1.Endpoints, bool){
		"labelled": func(e *corev1.Endpoints, on bool) {
			e.Labels = map[string]string{discoveryv1.LabelSkipMirror: fmt.Sprint(on)}
		},
		"lock": func(e *corev1.Endpoints, on bool) {
			if e.Annotations = nil; on {
				e.Annotations = map[string]string{leaderAnnotation: "{}"}
			}
		},
	} {
		c.bare(name)
		c.hand(name, subset(80, "192.0.2.1"))
		c.eventually(func() string {
			if n := len(c.slicesOf(name)); n != 1 {
				return fmt.Sprintf("%s: %d slices before", name, n)
			}
			return ""
		})
		c.edit(name, func(e *corev1.Endpoints) { change(e, true) })
		c.eventually(func() string {
			if n := len(c.slicesOf(name)); n != 0 {
				return fmt.Sprintf("%s: %d slices", name, n)
			}
			return c.unmirrored(name)
		})
		c.edit(name, func(e *corev1.Endpoints) { change(e, false) })
		c.eventually(func() string {
			if n := len(c.slicesOf(name)); n != 1 {
				return fmt.Sprintf("%s: %d slices afterwards", name, n)
			}
			return c.unmirrored(name)
		})
	}
}

func TestMirrorStopsAtAThousandAddressesAndSaysSo(t *testing.T) {
	c := start(t, nil)
	c.bare("db")
	big := subset(80)
	big.Addresses = addresses(1, 900, "ready")
	big.NotReadyAddresses = addresses(20000, 250, "not")
	c.hand("db", big)
	c.eventually(func() string {
		list := c.slicesOf("db")
		if len(list) != 1 || len(list[0].Endpoints) != desired.MaxMirrored {
			return fmt.Sprintf("%d slices", len(list))
		}
		return ""
	})
	e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "db", metav1.GetOptions{})
	c.must(err)
	if n := len(desired.Mirrored(kube.ConvertEndpoints(e))); n != desired.MaxMirrored {
		t.Errorf("%d endpoints are wanted", n)
	}
	ready := 0
	for _, e := range c.slicesOf("db")[0].Endpoints {
		if *e.Conditions.Ready {
			ready++
		}
	}
	if ready != 900 {
		t.Errorf("%d of 900 ready addresses are mirrored", ready)
	}
	c.eventually(func() string {
		l, err := client.CoreV1().Events(c.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Endpoints"})
		c.must(err)
		for _, e := range l.Items {
			if e.Reason == "TooManyAddressesToMirror" && e.Source.Component == "endpoint-slice-mirroring-controller" &&
				e.Message == "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 150 addresses were skipped" {
				return ""
			}
		}
		return fmt.Sprintf("events: %+v", l.Items)
	})
}

func TestMirroredSliceIsRepaired(t *testing.T) {
	c := start(t, nil)
	c.bare("db")
	c.hand("db", subset(80, "192.0.2.1", "192.0.2.2"))
	c.eventually(func() string { return c.unmirrored("db") })
	c.await(t, MirrorController, c.ns, "db", 0, is("wrote"))
	s := c.slicesOf("db")[0]
	s.Endpoints = s.Endpoints[:1]
	edited, err := client.DiscoveryV1().EndpointSlices(c.ns).Update(t.Context(), &s, metav1.UpdateOptions{})
	c.must(err)
	c.eventually(func() string {
		if c.slicesOf("db")[0].ResourceVersion == edited.ResourceVersion {
			return "still as edited"
		}
		return c.unmirrored("db")
	})
	c.must(client.DiscoveryV1().EndpointSlices(c.ns).Delete(t.Context(), s.Name, metav1.DeleteOptions{}))
	c.eventually(func() string { return c.unmirrored("db") })
	if now := c.slicesOf("db")[0]; now.UID == s.UID {
		t.Error("the slice was not deleted")
	}
}

func TestSelectorTakesOverAndGivesBack(t *testing.T) {
	c := start(t, nil)
	c.bare("web")
	c.hand("web", subset(80, "192.0.2.1"))
	byHand, err := client.DiscoveryV1().EndpointSlices(c.ns).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "mine", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "me"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.9"}}},
	}, metav1.CreateOptions{})
	c.must(err)
	c.pod("web-0", "web", 8080)
	c.status("web-0", "10.244.0.7", corev1.PodRunning, true, time.Now())
	managers := func() (out []string) {
		for _, s := range c.slicesOf("web") {
			out = append(out, s.Labels[discoveryv1.LabelManagedBy])
		}
		slices.Sort(out)
		return out
	}
	become := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		c.eventually(func() string {
			if got := managers(); !slices.Equal(got, want) {
				return fmt.Sprintf("slices by %q, want %q", got, want)
			}
			return ""
		})
	}
	become("me", mirrorManagedBy)
	selector := func(to map[string]string) {
		t.Helper()
		s, err := client.CoreV1().Services(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		s.Spec.Selector = to
		_, err = client.CoreV1().Services(c.ns).Update(t.Context(), s, metav1.UpdateOptions{})
		c.must(err)
	}
	endpoints := func(want string) {
		t.Helper()
		c.eventually(func() string {
			e, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
			c.must(err)
			if len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 1 || e.Subsets[0].Addresses[0].IP != want || e.Labels[labelEndpointsManagedBy] != endpointsManagedBy {
				return fmt.Sprintf("%v %+v", e.Labels, e.Subsets)
			}
			return ""
		})
	}
	// The pods' slices replace the mirrored ones, and the Endpoints that a
	// person wrote are overwritten. Another manager's slice is left alone.
	selector(map[string]string{"app": "web"})
	become("me", sliceManagedBy)
	endpoints("10.244.0.7")
	// Without a selector nobody deletes the controller's slices any more, and
	// its Endpoints are mirrored as if they had been made by hand.
	selector(nil)
	become("me", sliceManagedBy, mirrorManagedBy)
	for _, s := range c.slicesOf("web") {
		if s.Labels[discoveryv1.LabelManagedBy] == mirrorManagedBy && s.Endpoints[0].Addresses[0] != "10.244.0.7" {
			t.Errorf("mirrored %+v", s.Endpoints)
		}
	}
	selector(map[string]string{"app": "web"})
	become("me", sliceManagedBy)
	now, err := client.DiscoveryV1().EndpointSlices(c.ns).Get(t.Context(), "mine", metav1.GetOptions{})
	c.must(err)
	if now.ResourceVersion != byHand.ResourceVersion {
		t.Error("the slice of another manager was written to")
	}
}

func TestMirrorGoesWithItsEndpointsOrService(t *testing.T) {
	c := start(t, nil)
	none := func(name string) {
		t.Helper()
		c.eventually(func() string {
			if n := len(c.slicesOf(name)); n > 0 {
				return fmt.Sprintf("%d slices of %s", n, name)
			}
			return ""
		})
	}
	for _, name := range []string{"a", "b"} {
		c.bare(name)
		c.hand(name, subset(80, "192.0.2.1"))
		c.eventually(func() string { return c.unmirrored(name) })
	}
	c.must(client.CoreV1().Endpoints(c.ns).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	none("a")
	c.must(client.CoreV1().Services(c.ns).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	none("b")
	c.eventually(func() string {
		if _, err := client.CoreV1().Endpoints(c.ns).Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("Endpoints outlive their Service: %v", err)
		}
		return ""
	})
	// Under the same name again, and before there is a Service.
	c.hand("a", subset(80, "192.0.2.3"))
	c.hand("c", subset(80, "192.0.2.4"))
	c.bare("c")
	for _, name := range []string{"a", "c"} {
		c.eventually(func() string {
			if len(c.slicesOf(name)) != 1 {
				return name + " is not mirrored"
			}
			return c.unmirrored(name)
		})
	}
}

func TestMirrorIsCollectedWithItsEndpointsWhileNobodyMirrors(t *testing.T) {
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
	e := c.hand("left", subset(80, "192.0.2.1"))
	_, err := client.DiscoveryV1().EndpointSlices(c.ns).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "left-1", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(e, corev1.SchemeGroupVersion.WithKind("Endpoints"))}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}, metav1.CreateOptions{})
	c.must(err)
	c.must(client.CoreV1().Endpoints(c.ns).Delete(t.Context(), "left", metav1.DeleteOptions{}))
	c.eventually(func() string {
		if _, err := client.DiscoveryV1().EndpointSlices(c.ns).Get(t.Context(), "left-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("slice outlives its Endpoints: %v", err)
		}
		return ""
	})
}
