package lab

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// rulesFeed is the one watch of Services and EndpointSlices that the rule syncs
// of all nodes share. On a real cluster every kube-proxy has its own, on a
// machine of its own; here fifty would each hold and decode the same objects.
type rulesFeed struct {
	factory          informers.SharedInformerFactory
	services, slices cache.SharedIndexInformer
}

func newRulesFeed(client kubernetes.Interface) *rulesFeed {
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	return &rulesFeed{f, f.Core().V1().Services().Informer(), f.Discovery().V1().EndpointSlices().Informer()}
}

// run watches until ctx ends.
func (f *rulesFeed) run(ctx context.Context) error {
	f.factory.StartWithContext(ctx)
	defer f.factory.Shutdown()
	<-ctx.Done()
	return nil
}

// withoutManagedFields takes away what is most of an object's memory and what no
// rule follows from.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
