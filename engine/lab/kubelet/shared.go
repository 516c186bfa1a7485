package kubelet

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

const byNode = "node"

// Shared is what all kubelets of a lab have in common: one watch of the pods and
// one writer of Events. With it, fifty nodes cost one watch and not fifty. Its
// Run must be running while a kubelet's is.
type Shared struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
	pods    cache.SharedIndexInformer
	events  record.EventBroadcaster
	wiring  error
	once    sync.Once

	mu    sync.Mutex
	nodes map[string]*Kubelet
}

// NewShared makes a Shared that watches the pods of all nodes.
func NewShared(client kubernetes.Interface) *Shared { return newShared(client, "") }

// newShared watches the pods of one node when node is not empty.
func newShared(client kubernetes.Interface, node string) *Shared {
	s := &Shared{client: client, events: record.NewBroadcaster(), nodes: map[string]*Kubelet{}}
	s.factory = informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			if node != "" {
				o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
			}
		}),
		informers.WithTransform(withoutManagedFields))
	s.pods = s.factory.Core().V1().Pods().Informer()
	_, err := s.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.seen(obj, false) },
		UpdateFunc: func(_, obj any) { s.seen(obj, false) },
		DeleteFunc: func(obj any) {
			if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = t.Obj
			}
			s.seen(obj, true)
		},
	})
	s.wiring = errors.Join(err, s.pods.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}}))
	return s
}

// withoutManagedFields takes away what is most of an object's memory and what no
// kubelet reads; an update that leaves it out keeps the server's.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// Run watches until ctx ends and returns nil then. It can be called once.
func (s *Shared) Run(ctx context.Context) error {
	err := errors.New("the kubelets' shared part was started before: make a new one")
	s.once.Do(func() { err = s.run(ctx) })
	return err
}

func (s *Shared) run(ctx context.Context) error {
	if s.wiring != nil {
		return s.wiring
	}
	s.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	defer s.events.Shutdown()
	s.factory.StartWithContext(ctx)
	defer s.factory.Shutdown()
	<-ctx.Done()
	return nil
}

func (s *Shared) seen(obj any, gone bool) {
	p, ok := obj.(*corev1.Pod)
	if !ok || p.Spec.NodeName == "" {
		return
	}
	s.mu.Lock()
	k := s.nodes[p.Spec.NodeName]
	s.mu.Unlock()
	if k != nil {
		k.deliver(p, gone)
	}
}

// join makes a kubelet hear of its pods, those that are known already included.
// It waits for the first list.
func (s *Shared) join(ctx context.Context, k *Kubelet) error {
	if !cache.WaitFor(ctx, "", s.pods.HasSyncedChecker()) {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[k.o.Node] != nil {
		return errors.New("node " + k.o.Node + " has a running kubelet already")
	}
	s.nodes[k.o.Node] = k
	pods, err := s.pods.GetIndexer().ByIndex(byNode, k.o.Node)
	if err != nil {
		return err
	}
	for _, obj := range pods {
		if p, ok := obj.(*corev1.Pod); ok {
			k.deliver(p, false)
		}
	}
	return nil
}

func (s *Shared) leave(k *Kubelet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[k.o.Node] == k {
		delete(s.nodes, k.o.Node)
	}
}

func (s *Shared) recorder(node string) record.EventRecorder {
	return s.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: node})
}
