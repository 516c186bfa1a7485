package kube

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect"
)

// rareEvents is how many times rarer the watch of Events is checked when nobody
// asks: they are most of the objects of a busy cluster, and no plane is computed
// from them.
const rareEvents = 10

// ask requests a check that confirms everything up to at. It never blocks;
// requests that wait are merged.
func (f *feed) ask(at time.Time) {
	for {
		select {
		case f.asked <- at:
			return
		default:
		}
		select {
		case <-f.asked: // at is later than what waited
		default:
		}
	}
}

// runChecks does the checks that are asked for and, when every is set, one
// whenever nothing vouched for that long.
func (f *feed) runChecks(ctx context.Context, every time.Duration) {
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-f.asked:
			f.check(ctx, at)
		case <-tick:
			f.check(ctx, f.clock.Now().Add(-every))
		}
	}
}

// check lists the metadata of everything there is now and compares it with what
// the watch has brought. When all of it is there, the feed vouches up to the
// time before the request; when the watch delivers nothing for the grace although
// there is a difference, it is dead and is started anew.
func (f *feed) check(ctx context.Context, upTo time.Time) {
	f.mu.Lock()
	synced := f.listed && f.watching
	done := !f.vouched.Before(upTo)
	epoch := f.epoch
	// A large list must not load the server for more than a tenth of the time.
	pause := f.checkCost*10 - f.clock.Now().Sub(f.checkEnd)
	if !synced {
		f.wanted = later(f.wanted, upTo) // when synced again
	}
	f.mu.Unlock()
	if !synced || done {
		return
	}
	sleep(ctx, pause)
	before := f.clock.Now()
	rctx, cancel := context.WithTimeout(ctx, f.timing.checkTimeout)
	defer cancel()
	list, err := f.meta.List(rctx, metav1.ListOptions{})
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	f.checkEnd = f.clock.Now()
	f.checkCost = min(f.checkEnd.Sub(before), f.timing.checkTimeout)
	f.mu.Unlock()
	if err != nil {
		f.cannotConfirm("cannot confirm that nothing is missing: " + describe(err, f.server))
		return
	}
	if parseResourceVersion(list.ResourceVersion) == 0 {
		f.cannotConfirm(fmt.Sprintf("cannot confirm that nothing is missing: resourceVersion %q is no number", list.ResourceVersion))
		return
	}
	f.cannotConfirm("")
	f.awaitContent(ctx, epoch, before, list)
}

// cannotConfirm tells why checks fail, once for each reason.
func (f *feed) cannotConfirm(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.unconfirmed != why
	f.unconfirmed = why
	switch {
	case !f.listed || !f.watching:
	case f.catchUpTo != 0:
		if why != "" {
			f.caughtUpLocked() // as far as can be told
		}
	case changed:
		f.setStateLocked(collect.SourceSynced, why)
	}
}

// awaitContent waits until the watch has brought what the list shows, as long as
// it brings anything.
func (f *feed) awaitContent(ctx context.Context, epoch int, before time.Time, list *metav1.PartialObjectMetadataList) {
	timer := time.NewTimer(f.timing.grace)
	defer timer.Stop()
	for {
		f.mu.Lock()
		if f.epoch != epoch || !f.listed || !f.watching {
			f.wanted = later(f.wanted, before)
			f.mu.Unlock()
			return // void: once more when synced again
		}
		missing := f.missingLocked(list)
		if missing == "" {
			if f.catchUpTo != 0 {
				f.caughtUpLocked()
			}
			f.vouchLocked(before, "check")
			f.mu.Unlock()
			return
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			// It delivers, in order, so what is missing is yet to come: a burst
			// takes a busy reader longer than the grace.
			timer.Reset(f.timing.grace)
		case <-timer.C:
			f.hung(epoch, missing)
			return
		}
	}
}

// missingLocked names something that the list shows and the watch has not
// brought, or "" when there is nothing. A watch delivers in order, so having
// seen the list's resourceVersion is enough.
func (f *feed) missingLocked(list *metav1.PartialObjectMetadataList) string {
	rv := parseResourceVersion(list.ResourceVersion)
	if f.seen >= rv {
		return ""
	}
	known := 0
	for i := range list.Items {
		m := &list.Items[i]
		n := objectName{m.Namespace, m.Name}
		e, ok := f.entries[n]
		if ok {
			known++
		}
		if !ok || e.resourceVersion != m.ResourceVersion && parseResourceVersion(e.resourceVersion) < parseResourceVersion(m.ResourceVersion) {
			return fmt.Sprintf("%s at resourceVersion %s", n, m.ResourceVersion)
		}
	}
	if known == len(f.entries) {
		return ""
	}
	listed := make(map[objectName]bool, len(list.Items))
	for i := range list.Items {
		listed[objectName{list.Items[i].Namespace, list.Items[i].Name}] = true
	}
	for n, e := range f.entries {
		if !listed[n] && parseResourceVersion(e.resourceVersion) <= rv {
			return fmt.Sprintf("deletion of %s", n)
		}
	}
	return ""
}

// String gives "default/web".
func (n objectName) String() string {
	if n.namespace == "" {
		return n.name
	}
	return n.namespace + "/" + n.name
}

// hung starts the reflector anew.
func (f *feed) hung(epoch int, missing string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch {
		return
	}
	f.watching = false
	f.interruptLocked(f.alive, fmt.Sprintf("watch of %s hangs: the server has %s, not delivered within %v; reconnecting", f.where(), collect.Plain(missing), f.timing.grace))
	f.restart()
}
