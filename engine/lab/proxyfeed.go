package lab

import (
	"context"
	"sync"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// proxyFeed is what one node's rule sync watches with: the watch that all share, until
// it is to have one of its own.
type proxyFeed struct {
	services, slices *handOver
}

func newProxyFeed(shared *rulesFeed) *proxyFeed {
	return &proxyFeed{&handOver{SharedIndexInformer: shared.services}, &handOver{SharedIndexInformer: shared.slices}}
}

// separate gives the node a watch of its own, and returns when it was listed and has
// taken over. The watch goes on until ctx ends.
func (p *proxyFeed) separate(ctx context.Context, client kubernetes.Interface, running *sync.WaitGroup) bool {
	own := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	services, slices := own.Core().V1().Services().Informer(), own.Discovery().V1().EndpointSlices().Informer()
	own.StartWithContext(ctx)
	running.Go(func() {
		<-ctx.Done()
		own.Shutdown()
	})
	return p.services.to(ctx, services) && p.slices.to(ctx, slices)
}

// handOver is an informer whose handlers can be given to another one. It has the one
// handler of one rule sync.
type handOver struct {
	cache.SharedIndexInformer // the shared one

	mu      sync.Mutex
	handler cache.ResourceEventHandler
	own     cache.SharedIndexInformer // nil while the shared one is heard
}

// AddEventHandler implements cache.SharedIndexInformer.
func (h *handOver) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.mu.Lock()
	h.handler = handler
	own := h.own
	h.mu.Unlock()
	if own != nil {
		return own.AddEventHandler(handler)
	}
	return h.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			h.unless(func() { handler.OnAdd(obj, first) })
		},
		UpdateFunc: func(old, obj any) {
			h.unless(func() { handler.OnUpdate(old, obj) })
		},
		DeleteFunc: func(obj any) {
			h.mu.Lock()
			defer h.mu.Unlock()
			// What the own watch listed without is not told by it.
			if h.own == nil || !has(h.own, obj) {
				handler.OnDelete(obj)
			}
		},
	})
}

// RemoveEventHandler implements cache.SharedIndexInformer.
func (h *handOver) RemoveEventHandler(r cache.ResourceEventHandlerRegistration) error {
	// The one informer that does not know the registration leaves it alone.
	h.mu.Lock()
	own := h.own
	h.mu.Unlock()
	if own != nil {
		if err := own.RemoveEventHandler(r); err != nil {
			return err
		}
	}
	return h.SharedIndexInformer.RemoveEventHandler(r)
}

// unless does something while the shared informer is heard.
func (h *handOver) unless(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own == nil {
		f()
	}
}

func has(informer cache.SharedIndexInformer, obj any) bool {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return false
	}
	_, there, err := informer.GetStore().GetByKey(key)
	return err == nil && there
}

// to hears another informer from now on, once it was listed. Everything that it has is
// told again, as changes: a rule sync takes no notice of what is not new. So is what it
// lacks, as deletions.
func (h *handOver) to(ctx context.Context, own cache.SharedIndexInformer) bool {
	if !cache.WaitFor(ctx, "", own.HasSyncedChecker()) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own = own
	for _, obj := range h.SharedIndexInformer.GetStore().List() {
		if !has(own, obj) {
			h.handler.OnDelete(obj)
		}
	}
	handler := h.handler
	_, err := own.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { handler.OnUpdate(obj, obj) },
		UpdateFunc: handler.OnUpdate,
		DeleteFunc: handler.OnDelete,
	})
	return err == nil
}
