package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestEndpointsAndSlicesAreRefusedForWhatTheRealOnesAre(t *testing.T) {
	_, client := startClient(t)
	subset := func(ip string, change func(*corev1.EndpointSubset)) corev1.EndpointSubset {
		s := corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: ip}}, Ports: []corev1.EndpointPort{{Port: 80}}}
		if change != nil {
			change(&s)
		}
		return s
	}
	for want, s := range map[string]corev1.EndpointSubset{
		"must specify `addresses` or `notReadyAddresses`": {},
		"loopback":                         subset("127.0.0.1", nil),
		"link-local range":                 subset("169.254.169.254", nil),
		"unspecified":                      subset("::", nil),
		"link-local multicast":             subset("224.0.0.1", nil),
		"must be a valid IP address":       subset("db.example.com", nil),
		"subsets[0].ports[0].name":         subset("192.0.2.1", func(s *corev1.EndpointSubset) { s.Ports = append(s.Ports, corev1.EndpointPort{Name: "b", Port: 81}) }),
		"between 1 and 65535":              subset("192.0.2.1", func(s *corev1.EndpointSubset) { s.Ports[0].Port = 0 }),
		"subsets[0].ports[0].protocol":     subset("192.0.2.1", func(s *corev1.EndpointSubset) { s.Ports[0].Protocol = "ICMP" }),
		"subsets[0].addresses[0].nodeName": subset("192.0.2.1", func(s *corev1.EndpointSubset) { s.Addresses[0].NodeName = ptr.To("No Node") }),
		"subsets[0].addresses[0].hostname": subset("192.0.2.1", func(s *corev1.EndpointSubset) { s.Addresses[0].Hostname = "a.b" }),
	} {
		_, err := client.CoreV1().Endpoints("default").Create(t.Context(), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Subsets: []corev1.EndpointSubset{s}}, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a refusal that says %q", err, want)
		}
	}
	zones := make([]discoveryv1.ForZone, 9)
	for i := range zones {
		zones[i].Name = "z" + string(rune('a'+i))
	}
	good := discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}}
	for want, change := range map[string]func(*discoveryv1.EndpointSlice){
		"loopback":                         func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "127.0.0.1" },
		"endpoints[0].nodeName":            func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].NodeName = ptr.To("No Node") },
		"endpoints[0].hostname":            func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hostname = ptr.To("a.b") },
		"endpoints[0].hints.forZones: Too": func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: zones} },
		"forNodes[0].name": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: "-"}}}
		},
		"forZones[1].name: Duplicate value": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}, {Name: "z"}}}
		},
		"ports[1].name: Duplicate value": func(s *discoveryv1.EndpointSlice) { s.Ports = make([]discoveryv1.EndpointPort, 2) },
	} {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{*good.DeepCopy()}}
		change(s)
		_, err := client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), s, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a refusal that says %q", err, want)
		}
	}
	for d, ok := range map[string]bool{"PreferSameZone": true, "PreferClose": true, "PreferSameNode": true, "PreferFar": false} {
		s := service("d"+strings.ToLower(d), corev1.ServiceSpec{TrafficDistribution: &d})
		_, err := client.CoreV1().Services("default").Create(t.Context(), s, metav1.CreateOptions{})
		if ok && err != nil || !ok && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "PreferSameZone")) {
			t.Errorf("trafficDistribution %s: %v", d, err)
		}
	}
}
