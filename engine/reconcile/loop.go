package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	endpointsliceutil "k8s.io/endpointslice/util"

	"github.com/kconverge/kconverge/collect"
)

// maxRetries is how often a Service is tried again before it is dropped until
// something about it changes (pkg/controller/endpointslice, maxRetries).
const maxRetries = 15

// syncFunc brings one Service's objects up to date, as worker n (from 0), and
// tells what it wrote, also when it failed.
type syncFunc func(ctx context.Context, worker int, key string) (writes []string, err error)

// loop carries keys ("namespace/name" of a Service) from changes to syncs.
// Keys that wait are merged, and one key is never worked on twice at a time.
type loop struct {
	controller string
	o          *Options
	services   corelisters.ServiceLister
	sync       syncFunc

	order  *order
	places *places
	queue  workqueue.TypedRateLimitingInterface[string]
	// ended: a sync was left without an outcome, because all ends. What is queued
	// from then on is no step: nobody will start it.
	ended atomic.Bool
	// pods finds the Services of changed pods, apart from the changes'
	// delivery: it compares with every selector of the namespace.
	pods workqueue.TypedRateLimitingInterface[*endpointsliceutil.PodProjectionKey]
}

func newLoop(controller string, o *Options, services corelisters.ServiceLister, limiter workqueue.TypedRateLimiter[string]) *loop {
	l := &loop{controller: controller, o: o, services: services, places: newPlaces(max(o.Workers, 1))}
	l.order = &order{clock: o.Clock, since: map[string]waiting{}, queued: func(key string, depth int) {
		if !l.ended.Load() {
			l.emit(key, collect.ReconcileStep{Step: "queued", Queue: depth})
		}
	}}
	line := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Clock: o.Clock, Queue: l.order})
	l.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{
		Clock: o.Clock,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
			Clock: o.Clock, Queue: line,
		}),
	})
	l.pods = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[*endpointsliceutil.PodProjectionKey]())
	return l
}

// run works until ctx ends and the workers have stopped.
func (l *loop) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { l.dispatch(ctx) })
	for range l.o.Workers {
		wg.Go(func() {
			for l.findServices() {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	l.pods.ShutDown()
	wg.Wait()
}

// dispatch gives each key to a worker that is free, until the queue is shut down and
// the workers are done. Keys wait in the queue while all are busy.
func (l *loop) dispatch(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		l.places.await()
		key, quit := l.queue.Get()
		if quit {
			return
		}
		n := l.places.take()
		wg.Go(func() {
			defer l.places.give(n)
			l.work(ctx, n, key)
		})
	}
}

// work does one sync as worker n.
func (l *loop) work(ctx context.Context, n int, key string) {
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return // what still waits is left to the next run
	}
	w := l.order.take(key)
	began := l.o.Clock.Now()
	step := collect.ReconcileStep{Step: "started", Worker: n + 1, Queue: l.queue.Len(), Took: began.Sub(w.from), Tries: l.queue.NumRequeues(key)}
	if w.changes > 1 {
		step.Detail = fmt.Sprintf("%d changes at once", w.changes)
	}
	l.emit(key, step)
	var writes []string
	var err error
	if l.o.Before != nil {
		err = l.o.Before(ctx, l.controller, key)
	}
	if err == nil {
		writes, err = l.sync(ctx, n, key)
	}
	if err != nil && ctx.Err() != nil {
		l.ended.Store(true)
		return
	}
	l.finish(key, n, l.o.Clock.Now().Sub(began), writes, err)
}

// finish tells the outcome and sees to retries.
func (l *loop) finish(key string, n int, took time.Duration, writes []string, err error) {
	step := collect.ReconcileStep{
		Worker: n + 1, Queue: l.queue.Len(), Took: took, Writes: len(writes), Detail: strings.Join(writes, ", "),
		Tries: l.queue.NumRequeues(key),
	}
	switch {
	case err == nil && len(writes) > 0:
		step.Step = "wrote"
	case err == nil:
		step.Step = "unchanged"
	case step.Tries >= maxRetries:
		step.Step, step.Detail = "dropped", fmt.Sprintf("given up after %d retries: %v", step.Tries, err)
	case errors.Is(err, errConflict):
		step.Step, step.Detail, step.Tries = "conflict", err.Error(), step.Tries+1
	default:
		step.Step, step.Detail, step.Tries = "retry", err.Error(), step.Tries+1
	}
	l.emit(key, step)
	switch step.Step {
	case "conflict", "retry":
		l.queue.AddRateLimited(key)
	default:
		l.queue.Forget(key)
	}
}

// findServices queues the Services of one changed pod; false at shut down.
func (l *loop) findServices() bool {
	pod, quit := l.pods.Get()
	if quit {
		return false
	}
	defer l.pods.Done(pod)
	keys, err := endpointsliceutil.GetServicesToUpdate(l.services, pod)
	if err != nil {
		if l.pods.NumRequeues(pod) < maxRetries {
			l.pods.AddRateLimited(pod)
		} else {
			l.pods.Forget(pod)
		}
		return true
	}
	l.pods.Forget(pod)
	for key := range keys {
		if l.o.Lost != nil && l.o.Lost(l.controller, key) {
			continue
		}
		l.queue.AddAfter(key, l.o.BatchPeriod)
	}
	return true
}

// emit tells a step about the Service of a key.
func (l *loop) emit(key string, step collect.ReconcileStep) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		name = key
	}
	step.Controller = l.controller
	e := collect.Event{
		At: l.o.Clock.Now(), Source: collect.SourceReconciler,
		Object: collect.ObjectKey{Kind: "Service", Namespace: namespace, Name: name}, Payload: &step,
	}
	if s, err := l.services.Services(namespace).Get(name); err == nil {
		e.UID = string(s.UID)
	}
	l.o.Sink.Emit(e)
}

// onService and onPod are the handlers of both controllers.
func (l *loop) onService() cache.ResourceEventHandler {
	add := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			l.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add}
}

func (l *loop) onPod() cache.ResourceEventHandler {
	changed := func(old, cur any) {
		if key := endpointsliceutil.GetPodUpdateProjectionKey(old, cur); key != nil {
			l.pods.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(nil, obj) },
		UpdateFunc: changed,
		DeleteFunc: func(obj any) { changed(obj, nil) },
	}
}
