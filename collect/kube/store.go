package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// objectName is the key of an object within its resource.
type objectName struct{ namespace, name string }

// entry is what is kept of an object.
type entry struct {
	uid             types.UID
	resourceVersion string
	payload         collect.Payload
}

func (f *feed) object(n objectName) collect.ObjectKey {
	return collect.ObjectKey{Kind: f.res.kind, Namespace: n.namespace, Name: n.name}
}

// emitLocked emits one change. Objects without a payload are known, not told.
func (f *feed) emitLocked(op collect.Op, n objectName, e entry, rv uint64, at, notBefore time.Time) {
	if e.payload == nil {
		return
	}
	f.group.emit(collect.Event{
		At: at, NotBefore: notBefore, Op: op, Object: f.object(n),
		UID: string(e.uid), ResourceVersion: rv, Payload: e.payload,
	})
}

func toItem(obj any) (*item, error) {
	it, ok := obj.(*item)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in a watch", obj)
	}
	return it, nil
}

// Add implements cache.ReflectorStore for what the watch delivers.
func (f *feed) Add(obj any) error { return f.upsert(obj) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.upsert(obj) }

func (f *feed) upsert(obj any) error {
	it, err := toItem(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, rv := objectName{it.Namespace, it.Name}, parseResourceVersion(it.ResourceVersion)
	notBefore := f.deliveredLocked(rv, it.at)
	defer f.progressLocked()
	old, known := f.entries[n]
	if known && old.resourceVersion == it.ResourceVersion {
		return nil
	}
	e := entry{it.UID, it.ResourceVersion, it.payload}
	f.entries[n] = e
	op := collect.OpModified
	switch {
	case !known:
		op = collect.OpAdded
	case old.uid != it.UID:
		// The deletion in between was not delivered.
		f.emitLocked(collect.OpGone, n, old, rv, it.at, notBefore)
		op = collect.OpAdded
	}
	f.emitLocked(op, n, e, rv, it.at, notBefore)
	return nil
}

// Delete implements cache.ReflectorStore. The event's resourceVersion is that
// of the deletion, its payload the last state.
func (f *feed) Delete(obj any) error {
	it, err := toItem(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, rv := objectName{it.Namespace, it.Name}, parseResourceVersion(it.ResourceVersion)
	notBefore := f.deliveredLocked(rv, it.at)
	defer f.progressLocked()
	old, known := f.entries[n]
	if !known {
		return nil
	}
	delete(f.entries, n)
	e := entry{it.UID, it.ResourceVersion, it.payload}
	op := collect.OpDeleted
	if old.uid != it.UID {
		e, op = old, collect.OpGone
	}
	f.emitLocked(op, n, e, rv, it.at, notBefore)
	return nil
}

// deliveredLocked notes progress of the watch. It returns the earliest time at
// which the event can have happened when it was delivered late, else zero.
func (f *feed) deliveredLocked(rv uint64, at time.Time) (notBefore time.Time) {
	f.seen = max(f.seen, rv)
	f.notifyLocked()
	if f.catchUpTo != 0 && rv <= f.catchUpTo {
		return f.catchUpFrom
	}
	f.alive = later(f.alive, at)
	return time.Time{}
}

// progressLocked is called when an event has been emitted: it may have been the
// last of those that were late.
func (f *feed) progressLocked() {
	if f.catchUpTo != 0 && f.seen >= f.catchUpTo && f.listed && f.watching {
		f.caughtUpLocked()
	}
}

// Bookmark implements cache.ReflectorBookmarkStore: the server says that it has
// sent everything up to the resourceVersion. It is as good as the server's own
// watch cache.
func (f *feed) Bookmark(resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.clock.Now()
	late := !f.deliveredLocked(parseResourceVersion(resourceVersion), at).IsZero()
	f.progressLocked()
	if !late && f.listed && f.watching {
		f.vouchLocked(at, "bookmark")
	}
	return nil
}

// Resync implements cache.ReflectorStore; it is never asked for.
func (f *feed) Resync() error { return nil }

// Replace implements cache.ReflectorStore: a list is complete. The first is a
// baseline; a later one is compared with what was known.
func (f *feed) Replace(objs []any, resourceVersion string) error {
	items := make([]*item, 0, len(objs))
	for _, o := range objs {
		it, err := toItem(o)
		if err != nil {
			return err
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b *item) int {
		return cmp.Or(
			cmp.Compare(parseResourceVersion(a.ResourceVersion), parseResourceVersion(b.ResourceVersion)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	now, rv := f.clock.Now(), parseResourceVersion(resourceVersion)
	f.catchUpTo = 0
	if f.first {
		f.first = false
		for _, it := range items {
			n, e := objectName{it.Namespace, it.Name}, entry{it.UID, it.ResourceVersion, it.payload}
			f.entries[n] = e
			f.emitLocked(collect.OpListed, n, e, parseResourceVersion(it.ResourceVersion), now, time.Time{})
		}
	} else {
		f.relistLocked(items, rv, now)
	}
	// Not the higher of both: a server may have been set up anew.
	f.seen = rv
	f.listed = true
	f.notifyLocked()
	if f.watching { // a streamed list goes on as a watch
		f.syncedLocked()
	}
	return nil
}

// relistLocked emits what a list after an interruption shows to have changed.
// When it did is known only to lie after the interruption's start.
func (f *feed) relistLocked(items []*item, rv uint64, now time.Time) {
	if f.down.IsZero() {
		f.down, f.why, f.epoch = f.alive, "the watch could not be continued", f.epoch+1
	}
	from := f.down
	f.group.gap(gapOf(from, now, f.why+"; listed anew"))
	f.down, f.why = time.Time{}, ""
	listed := make(map[objectName]types.UID, len(items))
	for _, it := range items {
		listed[objectName{it.Namespace, it.Name}] = it.UID
	}
	var gone []objectName
	for n, e := range f.entries {
		if uid, ok := listed[n]; !ok || uid != e.uid {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, func(a, b objectName) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, n := range gone {
		f.emitLocked(collect.OpGone, n, f.entries[n], rv, now, from)
		delete(f.entries, n)
	}
	for _, it := range items {
		n := objectName{it.Namespace, it.Name}
		old, known := f.entries[n]
		if known && old.resourceVersion == it.ResourceVersion {
			continue
		}
		e := entry{it.UID, it.ResourceVersion, it.payload}
		f.entries[n] = e
		op := collect.OpModified
		if !known {
			op = collect.OpAdded
		}
		f.emitLocked(op, n, e, parseResourceVersion(it.ResourceVersion), now, from)
	}
}

// gapOf keeps the bounds in order: a clock may have been set back.
func gapOf(from, to time.Time, why string) collect.Gap {
	if from.After(to) {
		from = to
	}
	return collect.Gap{From: from, To: to, Why: why}
}
