package apiserver

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// maxLate is how many events a watch may be behind before it is ended.
const maxLate = 50_000

// patientStorage is the watch cache with watches that wait for late readers.
//
// By itself the cache ends a watch that is some twenty events behind when it has
// used up the time for which all watches of a resource together may hold it up,
// 50 ms in each second (k8s.io/apiserver, pkg/storage/cacher/time_budget.go).
// That is meant for a machine of its own. Where the whole cluster shares two
// processors every burst makes some reader that late, and each ended watch is a
// gap in what is observed. So events are taken off at once and kept until they are
// read, and a watch that the cache ended all the same goes on from its last event.
func patientStorage() generic.StorageDecorator {
	cached := genericregistry.StorageWithCacher()
	return func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := cached(config, prefix, key, newObject, newList, attributes, triggers, indexers)
		if err != nil {
			return nil, destroy, err
		}
		return patient{s}, destroy, nil
	}
}

type patient struct{ storage.Interface }

// Watch implements storage.Interface.
func (p patient) Watch(ctx context.Context, key string, o storage.ListOptions) (watch.Interface, error) {
	w, err := p.Interface.Watch(ctx, key, o)
	if err != nil {
		return nil, err
	}
	l := &lateWatch{out: make(chan watch.Event), done: make(chan struct{})}
	// What begins with the state as it is can be continued once that has come.
	if rv, err := p.Versioner().ParseResourceVersion(o.ResourceVersion); err == nil && rv > 0 && !asksInitialEvents(o) {
		l.last = o.ResourceVersion
	}
	l.again = func(from string) (watch.Interface, error) {
		o := o
		o.ResourceVersion, o.ResourceVersionMatch, o.SendInitialEvents = from, "", nil
		return p.Interface.Watch(ctx, key, o)
	}
	go l.run(ctx, w)
	return l, nil
}

func asksInitialEvents(o storage.ListOptions) bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents
}

// lateWatch takes events off a watch as soon as they come and keeps them until
// they are read. They share their objects with the watch cache.
type lateWatch struct {
	out  chan watch.Event
	done chan struct{}
	once sync.Once

	// Of the goroutine that runs: the version from which the watch can be
	// continued, empty while it cannot be, and how.
	last  string
	again func(from string) (watch.Interface, error)
}

// ResultChan implements watch.Interface.
func (l *lateWatch) ResultChan() <-chan watch.Event { return l.out }

// Stop implements watch.Interface.
func (l *lateWatch) Stop() { l.once.Do(func() { close(l.done) }) }

func (l *lateWatch) run(ctx context.Context, inner watch.Interface) {
	defer close(l.out)
	defer func() {
		if inner != nil {
			inner.Stop()
		}
	}()
	var kept []watch.Event
	for inner != nil || len(kept) > 0 {
		var from <-chan watch.Event
		if inner != nil && len(kept) < maxLate {
			from = inner.ResultChan()
		}
		var to chan watch.Event
		var first watch.Event
		if len(kept) > 0 {
			to, first = l.out, kept[0]
		}
		select {
		case e, ok := <-from:
			if ok {
				l.note(e)
				kept = append(kept, e)
				continue
			}
			inner.Stop()
			inner = l.goOn(ctx)
		case to <- first:
			kept[0] = watch.Event{} // for the garbage collector
			kept = kept[1:]
		case <-l.done:
			return
		}
	}
}

// note keeps from where the watch could be continued after the event.
func (l *lateWatch) note(e watch.Event) {
	m, err := meta.Accessor(e.Object)
	switch {
	case e.Type == watch.Error || err != nil:
		l.last = ""
	case l.last != "", e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		l.last = m.GetResourceVersion()
	}
}

// goOn continues the watch after the cache ended it, or returns nil: its time is
// over, or its reader has to list anew.
func (l *lateWatch) goOn(ctx context.Context) watch.Interface {
	from := l.last
	if from == "" || ctx.Err() != nil {
		return nil
	}
	w, err := l.again(from)
	if err != nil {
		return nil
	}
	return w
}
