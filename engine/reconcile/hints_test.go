package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/engine/desired"
)

func TestTrafficDistributionHintsFollowZonesAndNodes(t *testing.T) {
	nodes := map[string]string{"hint-1": "zone-a", "hint-2": "zone-b", "hint-3": "zone-b"}
	for name, zone := range nodes {
		_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, nil)
	for i, node := range []string{"hint-1", "hint-2", "hint-3", "hint-3"} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}}},
		}
		_, err := client.CoreV1().Pods(c.ns).Create(t.Context(), p, metav1.CreateOptions{})
		c.must(err)
		c.status(p.Name, fmt.Sprintf("10.244.9.%d", i+1), corev1.PodRunning, true, metav1.Now().Time)
	}
	svc := c.service("web", func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	routed := func(node, zone string) (out []string) {
		var list []*collect.EndpointSlice
		for _, s := range c.slicesOf("web") {
			p, _ := kube.ConvertEndpointSlice(&s)
			list = append(list, p)
		}
		now, err := client.CoreV1().Services(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
		c.must(err)
		for _, p := range desired.Rules(desired.ServiceRef{Namespace: c.ns, Name: "web", Service: kube.ConvertService(now)}, list, desired.NodeRef{Name: node, Zone: zone}) {
			for _, e := range p.Endpoints {
				out = append(out, e.Addr().String())
			}
		}
		return out
	}
	ip := func(n ...int) (out []string) {
		for _, i := range n {
			out = append(out, netip.AddrFrom4([4]byte{10, 244, 9, byte(i)}).String())
		}
		return out
	}
	distribute := func(d string) {
		t.Helper()
		patch := `{"spec":{"trafficDistribution":null}}`
		if d != "" {
			patch = fmt.Sprintf(`{"spec":{"trafficDistribution":%q}}`, d)
		}
		_, err := client.CoreV1().Services(c.ns).Patch(t.Context(), svc.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		c.must(err)
	}
	hints := func(zones, onNodes bool) {
		t.Helper()
		c.eventually(func() string {
			if d := c.disagreement("web"); d != "" {
				return d
			}
			n := 0
			for _, s := range c.slicesOf("web") {
				p, _ := kube.ConvertEndpointSlice(&s)
				for _, e := range p.Endpoints {
					n++
					var wantZones, wantNodes []string
					if zones {
						wantZones = []string{nodes[e.Node]}
					}
					if onNodes {
						wantNodes = []string{e.Node}
					}
					if !slices.Equal(e.HintZones, wantZones) || !slices.Equal(e.HintNodes, wantNodes) || e.Zone != nodes[e.Node] {
						return fmt.Sprintf("%+v", e)
					}
				}
			}
			if n != 4 {
				return fmt.Sprintf("%d endpoints", n)
			}
			return ""
		})
	}
	expect := func(node, zone string, want []string) {
		t.Helper()
		if got := routed(node, zone); !slices.Equal(got, want) {
			t.Errorf("%s in %s should route to %v, want %v", node, zone, got, want)
		}
	}
	hints(false, false)
	expect("hint-1", "zone-a", ip(1, 2, 3, 4))
	for _, d := range []string{"PreferSameZone", "PreferClose"} {
		distribute(d)
		hints(true, false)
		expect("hint-1", "zone-a", ip(1))
		expect("hint-2", "zone-b", ip(2, 3, 4))
		expect("other", "zone-c", ip(1, 2, 3, 4)) // none in its zone: all
	}
	distribute("PreferSameNode")
	hints(true, true)
	expect("hint-3", "zone-b", ip(3, 4))
	expect("other", "zone-b", ip(2, 3, 4)) // none on it: those of its zone
	// An endpoint on a node without a zone gets no hint, so nodes heed none.
	c.pod("web-4", "web", 8080)
	c.status("web-4", "10.244.9.5", corev1.PodRunning, true, metav1.Now().Time)
	distribute("PreferSameZone")
	c.eventually(func() string {
		if got := routed("hint-1", "zone-a"); !slices.Equal(got, ip(1, 2, 3, 4, 5)) {
			return fmt.Sprintf("routes to %v", got)
		}
		return c.disagreement("web")
	})
	c.must(client.CoreV1().Pods(c.ns).Delete(t.Context(), "web-4", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	hints(true, false)
	distribute("")
	hints(false, false)
}
