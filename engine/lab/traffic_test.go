package lab_test

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/timeline"
)

// TestTrafficGoesThroughTheRulesOfNodePortsToo opens connections to a Service at both of
// its kinds of address, until nobody is behind it.
func TestTrafficGoesThroughTheRulesOfNodePortsToo(t *testing.T) {
	w := start(t, 2)
	if w.lab.Refused() != nil {
		t.Skipf("no packets flow: %v", w.lab.Refused())
	}
	w.deploy(2, "200ms")
	w.patchService(`{"spec":{"type":"NodePort"}}`)
	w.settled()
	svc, err := w.client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(svc.Spec.Ports[0].NodePort)
	if port == 0 {
		t.Fatal("the Service has no NodePort")
	}
	of := map[string]netip.Addr{}
	for _, n := range w.lab.Nodes() {
		of[n.Name()] = n.Addresses()[0]
	}
	if err := w.lab.SetTraffic(t.Context(), "test", 10); err != nil {
		t.Fatal(err)
	}
	w.until("answers at both addresses on both nodes", func(s *timeline.Snapshot) bool {
		answered := map[string]bool{}
		for _, c := range w.service(s, "web").Connections {
			switch {
			case c.OK == 0:
			case c.Address == netip.AddrPortFrom(of[c.Node], port):
				answered[c.Node+" NodePort"] = true
			case c.Address.Addr().String() == svc.Spec.ClusterIP:
				answered[c.Node+" ClusterIP"] = true
			default:
				t.Errorf("%s connected to %s", c.Node, c.Address)
			}
		}
		return len(answered) == 4
	})
	w.scale(0)
	w.until("a refusal at the NodePort, and why", func(s *timeline.Snapshot) bool {
		svc := w.service(s, "web")
		for i := range svc.Failures {
			f := &svc.Failures[i]
			if f.Address.Port() == port && svc.ExplainFailure(f, s.Nodes).Kind == timeline.FailureNoEndpoints {
				return true
			}
		}
		return false
	})
}
