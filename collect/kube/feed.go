package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/collect"
)

// timing are the waits of a feed; tests shorten them.
type timing struct {
	retryMin, retryMax time.Duration // between attempts, doubling
	slowRetry          time.Duration // after 403 and 404
	silence            time.Duration // without an answer until that is said
	grace              time.Duration // for the watch to deliver anything of what a list showed
	checkTimeout       time.Duration
}

var defaultTiming = timing{
	retryMin: 200 * time.Millisecond, retryMax: 30 * time.Second,
	slowRetry: 30 * time.Second, silence: 10 * time.Second,
	grace: 2 * time.Second, checkTimeout: 10 * time.Second,
}

// shortPause is how long a watch may be down between its regular end (the
// server ends every watch after some minutes) and its continuation without
// being called a gap. What is delivered late is marked in any case.
const shortPause = 100 * time.Millisecond

// feed keeps up one watch: of one resource in one namespace (or all of them).
// It is the store and the list-watcher of its reflector. Its methods are called
// by the reflector's goroutine, by the goroutine of the open stream and by the
// checker; mu guards all state.
type feed struct {
	res    *resource
	ns     string // "" for all
	server string
	client rest.Interface
	meta   metadata.ResourceInterface
	group  *group
	clock  collect.Clock
	timing timing
	alike  sharer

	mu      sync.Mutex
	entries map[objectName]entry
	// seen is the highest resourceVersion that the watch or a list brought:
	// a watch delivers one resource in order.
	seen uint64
	// first is true until the first list is complete.
	first bool
	// listed and watching together mean synced. listBegan is when the
	// current list was asked for.
	listed, watching bool
	listBegan        time.Time
	// alive is the last moment for which everything is known to have been
	// delivered; vouched the last one confirmed by the server.
	alive, vouched time.Time
	// down is since when events may be missing, zero while all is well; pause
	// is how long no watch was open then, and broken tells that it was said.
	down   time.Time
	why    string
	pause  time.Duration
	broken bool
	// catchUpTo: events up to this resourceVersion happened while the watch
	// was down, at some time after catchUpFrom. Until they are there the feed
	// is not synced again.
	catchUpTo   uint64
	catchUpFrom time.Time
	// epoch grows with each interruption; a check that spans one is void.
	epoch   int
	changed chan struct{} // closed and replaced whenever the content moves
	gate    time.Time     // no request before
	restart context.CancelFunc

	// asked takes the time up to which a check should vouch; wanted is what
	// could not be checked because the feed was interrupted.
	asked  chan time.Time
	wanted time.Time
	// unconfirmed is why the last check could not be done, or empty.
	unconfirmed string
	checkCost   time.Duration
	checkEnd    time.Time
}

// newFeed completes a feed whose fields above mu are set.
func newFeed(f *feed) *feed {
	f.entries = map[objectName]entry{}
	f.first = true
	f.changed = make(chan struct{})
	f.asked = make(chan time.Time, 1)
	return f
}

// where names the feed for people: `pods in namespace "shop"`.
func (f *feed) where() string {
	switch {
	case !f.res.namespaced:
		return f.res.plural()
	case f.ns == "":
		return f.res.plural() + " in all namespaces"
	}
	return fmt.Sprintf("%s in namespace %q", f.res.plural(), f.ns)
}

// run lists and watches until ctx ends.
func (f *feed) run(ctx context.Context) {
	// client-go logs to the logger in the context: nothing may reach the
	// terminal, and what matters is emitted as states.
	quiet := klog.Logger{}
	ctx = klog.NewContext(ctx, quiet)
	f.group.setState(f, collect.SourceState{State: collect.SourceListing, Detail: f.where()})
	lw := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	r := cache.NewReflectorWithOptions(lw, &item{}, f, cache.ReflectorOptions{
		Logger: &quiet, Name: string(f.res.id), TypeDescription: f.res.plural(),
		Backoff: &wait.Backoff{Duration: f.timing.retryMin, Cap: f.timing.retryMax, Steps: 1000, Factor: 2, Jitter: 0.5},
	})
	failures := 0
	for ctx.Err() == nil {
		actx, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		f.restart = cancel
		f.mu.Unlock()
		err := r.ListAndWatchWithContext(actx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if f.attemptEnded(err) {
			failures = 0
		}
		sleep(ctx, backoff(f.timing.retryMin, f.timing.retryMax, failures))
		failures++
	}
}

// attemptEnded notes that the reflector gave up for now, and reports whether
// it had been synced.
func (f *feed) attemptEnded(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	synced := f.listed && f.watching || f.listed && !f.down.IsZero()
	f.watching = false
	if err != nil && f.down.IsZero() && !f.first {
		f.interruptLocked(f.alive, describe(err, f.server))
	}
	f.listed = false
	return synced
}

// interruptLocked begins an interruption unless one is open: events after since
// may be missing. The state is emitted either way, as reasons change.
func (f *feed) interruptLocked(since time.Time, why string) {
	if !f.first {
		f.epoch++
		if f.down.IsZero() {
			f.down = since
		}
		f.broken = true
		f.notifyLocked()
	}
	f.why = why
	f.setStateLocked(collect.SourceBroken, why)
}

// failed records an error of a request. A streamed list that the server refuses
// with a status is followed by a plain list at once, so only that one counts.
func (f *feed) failed(ctx context.Context, verb string, err error, streamedList bool) {
	if ctx.Err() != nil {
		return
	}
	status := apierrors.ReasonForError(err) != "" && !apierrors.IsTooManyRequests(err)
	if streamedList && status && !utilnet.IsConnectionRefused(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		f.gate = time.Now().Add(f.timing.slowRetry)
		f.interruptLocked(f.alive, "")
		f.setStateLocked(collect.SourceForbidden, f.forbidden(verb, err))
	case apierrors.IsNotFound(err):
		f.gate = time.Now().Add(f.timing.slowRetry)
		f.interruptLocked(f.alive, fmt.Sprintf("%s does not serve %s; asking again every %v", f.server, f.res.plural(), f.timing.slowRetry))
	default:
		f.interruptLocked(f.alive, fmt.Sprintf("cannot %s %s: %s; retrying", verb, f.where(), describe(err, f.server)))
	}
}

func (f *feed) setStateLocked(s collect.SourceStateName, detail string) {
	f.group.setState(f, collect.SourceState{State: s, Detail: detail, Count: len(f.entries)})
}

// syncedLocked says that the content is complete and watched again.
func (f *feed) syncedLocked() {
	f.broken = false
	f.setStateLocked(collect.SourceSynced, f.unconfirmed)
	if !f.listBegan.IsZero() {
		f.vouchLocked(f.listBegan, "list")
		f.listBegan = time.Time{}
	}
	if f.vouched.Before(f.wanted) {
		f.ask(f.wanted)
	}
}

func (f *feed) vouchLocked(until time.Time, how string) {
	f.vouched = later(f.vouched, until)
	f.alive = later(f.alive, until)
	f.group.vouch(f, until, how)
}

// notifyLocked wakes a waiting check.
func (f *feed) notifyLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// sayWhenSilent emits a broken state when no answer came for a while. The
// returned func ends the waiting.
func (f *feed) sayWhenSilent() (stop func() bool) {
	t := time.AfterFunc(f.timing.silence, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.interruptLocked(f.alive, fmt.Sprintf("no answer from %s for %v; still trying", f.server, f.timing.silence))
	})
	return t.Stop
}

// waitGate delays a request after a refusal that will hardly change soon.
func (f *feed) waitGate(ctx context.Context) {
	f.mu.Lock()
	d := time.Until(f.gate)
	f.mu.Unlock()
	sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// backoff doubles from least to most, with up to a quarter taken off at random
// so that the feeds do not all return at once.
func backoff(least, most time.Duration, failures int) time.Duration {
	d := most
	if failures < 20 {
		d = min(most, least<<failures)
	}
	return d - rand.N(d/4+1)
}
