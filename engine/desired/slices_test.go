package desired

import (
	"slices"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

func TestSelects(t *testing.T) {
	for _, tt := range []struct {
		name     string
		selector map[string]string
		kind     string
		labels   map[string]string
		want     bool
	}{
		{"every selector label must match", map[string]string{"a": "1", "b": "2"}, "", map[string]string{"a": "1"}, false},
		{"further labels do not matter", map[string]string{"a": "1"}, "", map[string]string{"a": "1", "b": "2"}, true},
		{"a value differs", map[string]string{"a": "1"}, "", map[string]string{"a": "2"}, false},
		{"an empty value is not an absent label", map[string]string{"a": ""}, "", map[string]string{}, false},
		{"no selector selects nothing", nil, "", map[string]string{"a": "1"}, false},
		{"ExternalName selects nothing", map[string]string{"a": "1"}, "ExternalName", map[string]string{"a": "1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Selects(&collect.Service{Selector: tt.selector, Kind: tt.kind}, tt.labels); got != tt.want {
				t.Errorf("Selects = %v, want %v", got, tt.want)
			}
		})
	}
}

// Sources: k8s.io/endpointslice v0.37.2, the function is named in each case.
func TestSlicesFollowTheEndpointSliceController(t *testing.T) {
	namedPort := func(s *collect.Service) {
		s.Ports = []collect.ServicePort{{Name: "http", Protocol: collect.TCP, Port: 80, TargetName: "web"}}
	}
	for _, tt := range []struct {
		name, source string
		svc          *collect.Service
		pods         []PodRef
		want         []string
	}{
		{"a ready pod is ready and serving", "utils.go podToEndpoint", service(), []PodRef{pod("a", "10.0.0.1")},
			[]string{"a 10.0.0.1 ready serving /TCP/8080"}},
		{"an unready pod is listed as neither", "utils.go podToEndpoint", service(), []PodRef{pod("a", "10.0.0.1", unready)},
			[]string{"a 10.0.0.1 /TCP/8080"}},
		{"a terminating ready pod serves but is not ready", "utils.go podToEndpoint", service(), []PodRef{pod("a", "10.0.0.1", terminating)},
			[]string{"a 10.0.0.1 serving terminating /TCP/8080"}},
		{"publishNotReadyAddresses keeps a terminating unready pod ready", "utils.go podToEndpoint", service(publish),
			[]PodRef{pod("a", "10.0.0.1", terminating, unready)}, []string{"a 10.0.0.1 ready terminating /TCP/8080"}},
		{"a pod in a terminal phase is left out", "util/controller_utils.go ShouldPodBeInEndpoints", service(publish),
			[]PodRef{pod("a", "10.0.0.1", failed), pod("b", "10.0.0.2", succeeded)}, nil},
		{"a pod without address is left out", "util/controller_utils.go ShouldPodBeInEndpoints", service(), []PodRef{pod("a", "")}, nil},
		{"a pod that is not selected is left out", "controller syncService", service(), []PodRef{pod("a", "10.0.0.1", unlabelled)}, nil},
		{"a pod of a node that does not exist is left out", "reconciler.go reconcileByAddressType", service(), []PodRef{pod("a", "10.0.0.1", nodeGone)}, nil},
		{"unless publishNotReadyAddresses", "reconciler.go reconcileByAddressType", service(publish), []PodRef{pod("a", "10.0.0.1", nodeGone)},
			[]string{"a 10.0.0.1 ready serving /TCP/8080"}},
		{"a named target port resolves per pod", "utils.go FindPort", service(namedPort),
			[]PodRef{pod("a", "10.0.0.1", named("web", 8080, collect.TCP)), pod("b", "10.0.0.2", named("web", 9090, collect.TCP))},
			[]string{"a 10.0.0.1 ready serving http/TCP/8080", "b 10.0.0.2 ready serving http/TCP/9090"}},
		{"a named target port that the pod lacks leaves the endpoint without it", "utils.go getEndpointPorts", service(namedPort),
			[]PodRef{pod("a", "10.0.0.1", named("web", 8080, collect.UDP))}, []string{"a 10.0.0.1 ready serving"}},
		{"dual stack publishes one endpoint in each family", "utils.go getEndpointAddresses", service(dual), []PodRef{pod("a", "10.0.0.1 fd01::1")},
			[]string{"a 10.0.0.1 ready serving /TCP/8080", "a fd01::1 ready serving /TCP/8080"}},
		{"a family that the pod lacks is skipped", "utils.go getEndpointAddresses", service(dual), []PodRef{pod("a", "fd01::1")},
			[]string{"a fd01::1 ready serving /TCP/8080"}},
		{"a family that the Service lacks is skipped", "utils.go getAddressTypesForService", service(), []PodRef{pod("a", "10.0.0.1 fd01::1")},
			[]string{"a 10.0.0.1 ready serving /TCP/8080"}},
		{"headless is published too, without ports when it has none", "utils.go getEndpointPorts",
			service(headless, func(s *collect.Service) { s.Ports = nil }), []PodRef{pod("a", "10.0.0.1")}, []string{"a 10.0.0.1 ready serving"}},
		{"two pods may share an address", "util/endpointset.go", service(), []PodRef{pod("b", "10.0.0.1"), pod("a", "10.0.0.1")},
			[]string{"a 10.0.0.1 ready serving /TCP/8080", "b 10.0.0.1 ready serving /TCP/8080"}},
		{"without selector nothing is published", "controller syncService", service(func(s *collect.Service) { s.Selector = nil }), []PodRef{pod("a", "10.0.0.1")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range Slices(tt.svc, tt.pods) {
				got = append(got, flags(e))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s\n got %q\nwant %q", tt.source, got, tt.want)
			}
		})
	}
}

func TestRoutableFallsBackToServingTerminatingPerFamily(t *testing.T) {
	for _, tt := range []struct {
		name string
		svc  *collect.Service
		pods []PodRef
		want []string
	}{
		{"ready ones only while there is one", service(), []PodRef{pod("a", "10.0.0.1"), pod("b", "10.0.0.2", terminating), pod("c", "10.0.0.3", unready)},
			[]string{"a 10.0.0.1 ready serving /TCP/8080"}},
		{"the serving terminating ones when none is ready", service(), []PodRef{pod("b", "10.0.0.2", terminating), pod("c", "10.0.0.3", terminating, unready)},
			[]string{"b 10.0.0.2 serving terminating /TCP/8080"}},
		{"each family decides for itself", service(dual), []PodRef{pod("a", "10.0.0.1"), pod("b", "10.0.0.2 fd01::2", terminating)},
			[]string{"a 10.0.0.1 ready serving /TCP/8080", "b fd01::2 serving terminating /TCP/8080"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range Routable(tt.svc, tt.pods) {
				got = append(got, flags(e))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}
