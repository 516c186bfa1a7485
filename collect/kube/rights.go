package kube

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kconverge/kconverge/collect"
)

// Right is one resource that a Source reads: with get, list and watch.
type Right struct {
	Source   collect.SourceID
	Resource schema.GroupVersionResource
	// Namespaced resources are read in the chosen namespaces only.
	Namespaced bool
}

// Rights lists what a Source reads when it is told nothing else, in the order in
// which it starts to.
func Rights() []Right {
	out := make([]Right, len(resources))
	for i, r := range resources {
		out[i] = Right{r.id, r.gvr, r.namespaced}
	}
	return out
}
