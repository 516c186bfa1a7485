package lab_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/timeline"
)

// hand writes the Endpoints of "web" with the first n of its addresses.
func (w *world) hand(n int) {
	w.Helper()
	api := w.client.CoreV1().Endpoints("default")
	e, err := api.Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	e.Subsets[0].Addresses = e.Subsets[0].Addresses[:n]
	if _, err := api.Update(w.Context(), e, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func TestHintsAndMirroredEndpointsReachEveryKernel(t *testing.T) {
	w := start(t, 3)
	w.deploy(6, "1s")
	w.settledOn("without hints", 6)

	// Two pods on each node, each node in a zone of its own.
	for _, d := range []string{"PreferSameZone", "PreferSameNode"} {
		w.patchService(`{"spec":{"trafficDistribution":"` + d + `"}}`)
		w.until("the zone's own endpoints", func(s *timeline.Snapshot) bool { return have(s, 2, 3) })
		w.settledOn(d, 2)
		w.patchService(`{"spec":{"trafficDistribution":null}}`)
		w.until("all endpoints", func(s *timeline.Snapshot) bool { return have(s, 6, 3) })
	}

	// Without a selector, what the controllers left stays: the slice, and the
	// Endpoints, which are mirrored now. Without the slice, they alone count.
	w.patchService(`{"spec":{"selector":null}}`)
	w.settledOn("without selector", 6)
	w.hand(4)
	w.settledOn("the controller's slice beside four mirrored addresses", 6)
	err := w.client.DiscoveryV1().EndpointSlices("default").DeleteCollection(w.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web," + discoveryv1.LabelManagedBy + "=endpointslice-controller.k8s.io"})
	if err != nil {
		t.Fatal(err)
	}
	w.until("the mirrored endpoints", func(s *timeline.Snapshot) bool { return have(s, 4, 3) })
	w.settledOn("mirrored alone", 4)

	w.hand(3)
	s := w.until("three mirrored addresses", func(s *timeline.Snapshot) bool { return have(s, 3, 3) })
	w.settledOn("edited by hand", 3)
	found := false
	for _, p := range w.service(s, "web").Paths {
		if p.Cause == timeline.CauseEndpointsEdited && p.Op == timeline.OpRemove && len(p.Rules) > 0 {
			found = true
			whole(t, p, 3)
		}
	}
	if !found {
		t.Error("no path begins with the edited Endpoints")
	}

	w.patchService(`{"spec":{"selector":{"app":"web"}}}`)
	w.settledOn("the selector takes over", 6)
	list, err := w.client.DiscoveryV1().EndpointSlices("default").List(w.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if by := s.Labels[discoveryv1.LabelManagedBy]; by != "endpointslice-controller.k8s.io" {
			t.Errorf("slice %s of %s is left", s.Name, by)
		}
	}
	node, err := w.client.CoreV1().Nodes().Get(w.Context(), "node-2", metav1.GetOptions{})
	if err != nil || node.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("node-2 is labelled %v: %v", node.Labels, err)
	}
}
