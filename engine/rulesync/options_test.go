package rulesync

import (
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/kconverge/kconverge/engine/desired"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no node":         {NetNS: 3, Client: fake.NewClientset()},
		"no namespace":    {Node: desired.NodeRef{Name: "n"}, Client: fake.NewClientset()},
		"no client":       {Node: desired.NodeRef{Name: "n"}, NetNS: 3},
		"negative period": {Node: desired.NodeRef{Name: "n"}, NetNS: 3, Client: fake.NewClientset(), RetryPeriod: -1},
		"full sync period shorter than the minimum": {Node: desired.NodeRef{Name: "n"}, NetNS: 3, Client: fake.NewClientset(), FullSyncPeriod: 1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
