package kubelet

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
)

// Kubelet runs the pods of one node. Make one with New.
type Kubelet struct {
	o      Options
	wiring error
	shared *Shared
	// registered is closed when the Node is there.
	registered chan struct{}
	once       sync.Once
	own        bool // shared belongs to this kubelet alone
	events     record.EventRecorder

	mu     sync.Mutex
	ctx    context.Context // of Run; nil when it is not running
	pods   map[types.UID]*pod
	ended  sets.Set[types.UID] // ran to their end; their objects are still there
	images sets.Set[string]    // pulled before
	wg     sync.WaitGroup
}

// New makes a kubelet; nothing happens before Run. What is wrong with the
// options is returned by Run.
func New(opts Options) *Kubelet {
	k := &Kubelet{registered: make(chan struct{}), pods: map[types.UID]*pod{}, ended: sets.New[types.UID](), images: sets.New[string]()}
	k.o, k.wiring = opts.withDefaults()
	if k.wiring != nil {
		return k
	}
	k.shared = k.o.Shared
	if k.shared == nil {
		k.shared, k.own = newShared(k.o.Client, k.o.Node), true
	}
	k.events = k.shared.recorder(k.o.Node)
	return k
}

// Run registers the node and runs its pods until ctx ends; it returns nil then,
// and an error when the node cannot be registered. All its goroutines have ended
// when it returns. The containers keep what they hold of the sandbox, as
// containers outlive a kubelet: another Run, of this kubelet or of a new one on
// the same sandbox, takes them over.
//
// A kubelet without Options.Shared can be run once only.
func (k *Kubelet) Run(ctx context.Context) (err error) {
	if k.wiring != nil {
		return k.wiring
	}
	ctx, cancel := context.WithCancel(ctx)
	var own sync.WaitGroup
	var ownErr error
	defer func() {
		cancel()
		own.Wait()
		err = errors.Join(err, ownErr)
	}()
	if k.own {
		own.Go(func() {
			ownErr = k.shared.Run(ctx)
			cancel()
		})
	}
	if err := k.register(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	k.once.Do(func() { close(k.registered) })
	if err := k.open(ctx); err != nil {
		return err
	}
	defer k.wg.Wait()
	defer k.close()
	if err := k.shared.join(ctx, k); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer k.shared.leave(k)
	k.heartbeats(ctx)
	return nil
}

// Registered is closed once the node has been registered, ready for pods. Who
// creates pods before that of all nodes finds them on the first ones.
func (k *Kubelet) Registered() <-chan struct{} { return k.registered }

func (k *Kubelet) open(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx != nil {
		return errors.New("the kubelet of " + k.o.Node + " is running already")
	}
	k.ctx = ctx
	return nil
}

// close makes deliver start nothing more, so that the WaitGroup can be waited
// for.
func (k *Kubelet) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ctx = nil
}

// deliver tells the pod's goroutine what the API server says, and starts it for
// a new pod. It never blocks.
func (k *Kubelet) deliver(obj *corev1.Pod, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx == nil {
		return
	}
	p := k.pods[obj.UID]
	if p == nil && k.ended.Has(obj.UID) {
		// The watch may still show what was before the end.
		if gone {
			k.ended.Delete(obj.UID)
		}
		if gone || obj.DeletionTimestamp == nil {
			return
		}
	}
	if p == nil {
		if gone || finished(obj) && obj.DeletionTimestamp == nil {
			return
		}
		p = newPod(k, obj)
		k.pods[obj.UID] = p
		ctx := k.ctx
		k.wg.Go(func() {
			ended := p.run(ctx)
			k.mu.Lock()
			defer k.mu.Unlock()
			if _, gone := p.object(); ended && !gone {
				k.ended.Insert(obj.UID)
			}
			delete(k.pods, obj.UID)
		})
	}
	p.deliver(obj, gone)
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// hasImage reports whether the node has pulled an image.
func (k *Kubelet) hasImage(image string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.images.Has(image)
}

func (k *Kubelet) keepImage(image string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.images.Insert(image)
}
