package desired

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go.
func TestEndpointsV1FollowTheLegacyController(t *testing.T) {
	show := func(as []collect.EndpointsAddress) (out []string) {
		for _, a := range as {
			r := "not-ready"
			if a.Ready {
				r = "ready"
			}
			out = append(out, fmt.Sprintf("%s %s %s%s", a.PodName, a.IP, r, portText(a.Ports)))
		}
		return out
	}
	for _, tt := range []struct {
		name string
		svc  *collect.Service
		pods []PodRef
		want []string
	}{
		{"terminating pods are left out", service(), []PodRef{pod("a", "10.0.0.1"), pod("b", "10.0.0.2", terminating)}, []string{"a 10.0.0.1 ready /TCP/8080"}},
		{"unless publishNotReadyAddresses", service(publish), []PodRef{pod("b", "10.0.0.2", terminating, unready)}, []string{"b 10.0.0.2 ready /TCP/8080"}},
		{"unready pods are not-ready addresses", service(), []PodRef{pod("a", "10.0.0.1", unready)}, []string{"a 10.0.0.1 not-ready /TCP/8080"}},
		{"only the first family", service(dual), []PodRef{pod("a", "fd01::1 10.0.0.1"), pod("b", "fd01::2")}, []string{"a 10.0.0.1 ready /TCP/8080"}},
		{"a pod without any of the ports is left out", service(func(s *collect.Service) { s.Ports[0].TargetName = "web" }), []PodRef{pod("a", "10.0.0.1")}, nil},
		{"headless without ports keeps its addresses", service(headless, func(s *collect.Service) { s.Ports = nil }), []PodRef{pod("a", "10.0.0.1")}, []string{"a 10.0.0.1 ready"}},
		{"terminal phases are left out", service(), []PodRef{pod("a", "10.0.0.1", failed)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := show(EndpointsV1(tt.svc, tt.pods)); !slices.Equal(got, tt.want) {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestEndpointsV1AreCutAtAThousandReadyOnesFirst(t *testing.T) {
	var pods []PodRef
	for i := range 1200 {
		p := pod(fmt.Sprint(i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
		if i < 300 {
			unready(&p)
		}
		pods = append(pods, p)
	}
	got := EndpointsV1(service(), pods)
	ready := 0
	for _, a := range got {
		if a.Ready {
			ready++
		}
	}
	if len(got) != 1000 || ready != 900 {
		t.Errorf("got %d addresses, %d of them ready; want 1000 and 900", len(got), ready)
	}
}
