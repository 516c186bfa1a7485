package kube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// request builds a GET of the feed's collection. Retries are the reflector's
// and ours: the client's own would hide that the server does not answer.
func (f *feed) request(opts *metav1.ListOptions) *rest.Request {
	return f.client.Get().
		NamespaceIfScoped(f.ns, f.res.namespaced && f.ns != "").
		Resource(f.res.gvr.Resource).
		VersionedParams(opts, scheme.ParameterCodec).
		MaxRetries(0)
}

// beginList notes that what the store holds is about to be replaced.
func (f *feed) beginList() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed, f.watching = false, false
	f.listBegan = f.clock.Now()
}

// list is the reflector's plain list. It always lists what is there now: an
// older state from the server's cache could not be vouched for.
func (f *feed) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	f.waitGate(ctx)
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	if opts.Continue == "" {
		f.beginList()
	}
	stop := f.sayWhenSilent()
	defer stop()
	list, err := f.request(&opts).Do(ctx).Get()
	if err != nil {
		f.failed(ctx, "list", err, false)
		return nil, err
	}
	return f.trimList(list)
}

// trimList turns a typed list into one of items.
func (f *feed) trimList(list runtime.Object) (runtime.Object, error) {
	lm, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w", f.where(), err)
	}
	out := &metainternal.List{ListMeta: metav1.ListMeta{
		ResourceVersion: lm.GetResourceVersion(), Continue: lm.GetContinue(), RemainingItemCount: lm.GetRemainingItemCount(),
	}}
	at := f.clock.Now()
	err = meta.EachListItem(list, func(o runtime.Object) error {
		it, err := f.res.newItem(o, at, false)
		if err != nil {
			return err
		}
		f.alike.share(it.payload)
		out.Items = append(out.Items, it)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w", f.where(), err)
	}
	return out, nil
}

// watch opens the reflector's watch, or a streamed list that goes on as a
// watch.
func (f *feed) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	f.waitGate(ctx)
	list := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if list {
		opts.ResourceVersion = "" // what is there now, see list
		f.beginList()
	} else if err := f.prepareCatchUp(ctx); err != nil {
		f.failed(ctx, "watch", err, false)
		return nil, continuable(err, false)
	}
	opts.Watch = true
	stop := f.sayWhenSilent()
	w, err := f.request(&opts).Watch(ctx)
	stop()
	if err == nil && endedAtOnce(w) {
		err = errDropped
	}
	if err != nil {
		f.failed(ctx, "watch", err, list)
		return nil, continuable(err, list)
	}
	f.opened(list)
	s := &stream{feed: f, inner: w, list: list, out: make(chan watch.Event), done: make(chan struct{})}
	if opts.TimeoutSeconds != nil {
		s.regularEnd = f.clock.Now().Add(time.Duration(*opts.TimeoutSeconds)*time.Second - 2*time.Second)
	}
	go s.run(ctx)
	return s, nil
}

// errDropped stands for the empty watch that client-go returns when the server
// closes the connection instead of answering.
var errDropped = errors.New("the server closed the connection without an answer")

// endedAtOnce recognises that empty watch. Any other is served by a goroutine
// whose channel is open as long as there is something to deliver.
func endedAtOnce(w watch.Interface) bool {
	return reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}

// continuable makes the reflector go on trying to continue the watch where it
// broke off when the server could not be asked at all. It does so for refused
// connections only, and lists anew after any other failure, which would turn
// events with an order into a mere difference.
func continuable(err error, list bool) error {
	if list || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, syscall.ECONNREFUSED)
}

// prepareCatchUp is called before a watch is continued where it broke off. All
// that happened up to now will be delivered at once, late: the newest
// resourceVersion tells these events from those that are on time.
func (f *feed) prepareCatchUp(ctx context.Context) error {
	f.mu.Lock()
	down, listed := f.down, f.listed
	f.mu.Unlock()
	if down.IsZero() || !listed {
		return nil
	}
	list, err := f.request(&metav1.ListOptions{Limit: 1}).Do(ctx).Get()
	if err != nil {
		return err
	}
	lm, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	to := parseResourceVersion(lm.GetResourceVersion())
	if to == 0 {
		to = math.MaxUint64 // not ordered: everything until the next list counts as late
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if to < f.seen {
		// It may accept the watch and never send anything.
		return apierrors.NewResourceExpired(fmt.Sprintf("the server is at resourceVersion %d, behind the %d it was at: it was set up anew", to, f.seen))
	}
	f.catchUpTo, f.catchUpFrom = to, down
	return nil
}

// opened notes that a watch is open.
func (f *feed) opened(list bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watching = true
	if list || !f.listed {
		return // Replace will tell
	}
	if f.down.IsZero() {
		f.syncedLocked()
		return
	}
	now := f.clock.Now()
	f.pause = now.Sub(f.down)
	if f.catchUpTo > f.seen {
		// An event or a bookmark may tell that the watch is there, but on a
		// quiet resource only a check does.
		f.ask(now)
		return
	}
	f.caughtUpLocked()
}

// caughtUpLocked ends an interruption in which nothing was lost.
func (f *feed) caughtUpLocked() {
	if f.broken || f.pause >= shortPause {
		f.group.gap(gapOf(f.down, f.clock.Now(), f.why+"; what happened meanwhile was delivered late"))
	}
	f.down, f.why, f.catchUpTo = time.Time{}, "", 0
	f.syncedLocked()
}

// stream passes a watch's events on as items, stamped when they were delivered.
type stream struct {
	feed       *feed
	inner      watch.Interface
	list       bool // it begins with a list
	out        chan watch.Event
	done       chan struct{}
	regularEnd time.Time
	stopped    bool // guarded by feed.mu
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.feed.mu.Lock()
	stopped := s.stopped
	s.stopped = true
	s.feed.mu.Unlock()
	if !stopped {
		close(s.done)
		s.inner.Stop()
	}
}

func (s *stream) run(ctx context.Context) {
	defer close(s.out)
	// A server that does not know streamed lists may ignore that one was
	// asked for and say nothing: then an error makes the reflector list
	// plainly. Any other sends at least the bookmark at the list's end.
	var silent <-chan time.Time
	if s.list {
		t := time.NewTimer(s.feed.timing.silence)
		defer t.Stop()
		silent = t.C
	}
	for {
		var ev watch.Event
		var open bool
		select {
		case ev, open = <-s.inner.ResultChan():
		case <-silent:
			st := apierrors.NewBadRequest("the server does not begin the streamed list").Status()
			ev, open = watch.Event{Type: watch.Error, Object: &st}, true
		}
		if !open {
			break
		}
		silent = nil
		select {
		case s.out <- s.trim(ctx, ev):
		case <-s.done:
			return
		}
	}
	s.feed.streamEnded(ctx, s, "the connection of the watch ended")
}

// trim turns an event's object into an item.
func (s *stream) trim(ctx context.Context, ev watch.Event) watch.Event {
	at := s.feed.clock.Now()
	if ev.Type == watch.Error {
		s.feed.streamEnded(ctx, s, describe(apierrors.FromObject(ev.Object), s.feed.server))
		return ev
	}
	it, err := s.feed.res.newItem(ev.Object, at, ev.Type == watch.Bookmark)
	if err != nil {
		s.feed.streamEnded(ctx, s, describe(err, s.feed.server))
		st := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &st}
	}
	s.feed.alike.share(it.payload)
	ev.Object = it
	return ev
}

// streamEnded notes that a stream is over. Its regular end, after the time that
// was asked for, loses nothing: the next watch continues there.
func (f *feed) streamEnded(ctx context.Context, s *stream, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.stopped || ctx.Err() != nil || !f.watching {
		return
	}
	f.watching = false
	now := f.clock.Now()
	if !s.regularEnd.IsZero() && !now.Before(s.regularEnd) {
		if f.down.IsZero() && f.listed {
			f.down, f.why, f.epoch = now, "the watch had ended", f.epoch+1
			f.notifyLocked()
		}
		return
	}
	f.interruptLocked(f.alive, fmt.Sprintf("watch of %s broke off: %s; reconnecting", f.where(), why))
}
