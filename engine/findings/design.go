package findings

import (
	"time"
)

var (
	noRules = code(Code{
		ID: "KC601", Severity: Info, Title: "nodes have no rules for the Service, by design",
		Means: "kube-proxy leaves the Service alone: it is headless or an ExternalName (clients resolve it by DNS), or another proxy is responsible for it.",
		Seen:  "spec.clusterIP: None, type ExternalName, or the label service.kubernetes.io/service-proxy-name.",
		Do:    "Nothing: only its slices are judged.",
	})
	publishes = code(Code{
		ID: "KC602", Severity: Info, Title: "pods that are not ready are published",
		Means: "With publishNotReadyAddresses each pod with an address is an endpoint, ready or not, also while it terminates.",
		Seen:  "spec.publishNotReadyAddresses.",
		Do:    "Nothing, if that is meant, as for the peers of a StatefulSet.",
	})
)

// design tells of what is as it should be and may surprise.
func (j *judge) design() {
	if !j.svc.RoutedByProxy {
		j.add(noRules, time.Time{}, j.svc.WhyNot, "nothing to do: its slices are judged, nodes have no rules for it")
	}
	if j.svc.Spec.PublishNotReadyAddresses {
		j.add(publishes, time.Time{}, "pods are endpoints whether they are ready or not (publishNotReadyAddresses)", "nothing to do if that is meant")
	}
}
