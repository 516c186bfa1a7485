package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// garbageCollector deletes objects whose owners are gone, and finishes owners
// that are deleted in the foreground or as orphaning, by the rules of
// k8s.io/kubernetes pkg/controller/garbagecollector. It knows the kinds in
// gckinds.go; an owner of any other kind is taken to exist.
type garbageCollector struct {
	kinds map[string]*gcKind
	queue *queue
}

func newGarbageCollector(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches) *garbageCollector {
	g := &garbageCollector{kinds: gcKinds(client, caches)}
	g.queue = newQueue("garbage-collector", clk, g.sync)
	for _, k := range g.kinds {
		_, err := k.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { g.seen(k, nil, obj) },
			UpdateFunc: func(old, cur any) {
				g.seen(k, old, cur)
			},
			DeleteFunc: func(obj any) {
				if o, ok := deleted[metav1.Object](obj); ok {
					g.gone(o)
				}
			},
		})
		caches.wired(err)
	}
	return g
}

// gcKey names one object: its kind, namespace, name and UID.
func gcKey(k *gcKind, o metav1.Object) string {
	return strings.Join([]string{k.kind, o.GetNamespace(), o.GetName(), string(o.GetUID())}, "|")
}

// seen enqueues an object when something the collector acts on has changed.
func (g *garbageCollector) seen(k *gcKind, old, cur any) {
	o, err := meta.Accessor(cur)
	if err != nil {
		return
	}
	if old != nil {
		if was, err := meta.Accessor(old); err == nil {
			if was.GetUID() != o.GetUID() {
				g.gone(was)
			} else if slices.EqualFunc(was.GetOwnerReferences(), o.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) &&
				slices.Equal(was.GetFinalizers(), o.GetFinalizers()) && (was.GetDeletionTimestamp() == nil) == (o.GetDeletionTimestamp() == nil) {
				return
			}
		}
	}
	if len(o.GetOwnerReferences()) > 0 || o.GetDeletionTimestamp() != nil {
		g.queue.Add(gcKey(k, o))
	}
}

// gone enqueues what a deleted object owned, and the owners that may have been
// waiting for it.
func (g *garbageCollector) gone(o metav1.Object) {
	g.eachDependent(o.GetUID(), func(k *gcKind, d metav1.Object) { g.queue.Add(gcKey(k, d)) })
	for _, ref := range o.GetOwnerReferences() {
		if k := g.kinds[ref.Kind]; k != nil {
			if owner := k.cached(o.GetNamespace(), ref.Name); owner != nil && owner.GetDeletionTimestamp() != nil {
				g.queue.Add(gcKey(k, owner))
			}
		}
	}
}

func (g *garbageCollector) eachDependent(owner types.UID, f func(k *gcKind, d metav1.Object)) {
	for _, k := range g.kinds {
		objs, err := k.informer.GetIndexer().ByIndex(byOwner, string(owner))
		if err != nil {
			continue // only an index that was never added fails
		}
		for _, obj := range objs {
			if d, err := meta.Accessor(obj); err == nil {
				f(k, d)
			}
		}
	}
}

func (g *garbageCollector) sync(ctx context.Context, key string) error {
	parts := strings.SplitN(key, "|", 4)
	if len(parts) != 4 || g.kinds[parts[0]] == nil {
		return nil
	}
	k := g.kinds[parts[0]]
	o := k.cached(parts[1], parts[2])
	if o == nil || string(o.GetUID()) != parts[3] {
		return nil
	}
	if o.GetDeletionTimestamp() != nil {
		switch {
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
			return g.orphan(ctx, k, o)
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
			return g.finishForeground(ctx, k, o)
		}
		return nil
	}
	return g.collect(ctx, k, o)
}

// collect deletes an object none of whose owners exists, or whose last owner
// waits for it in a foreground deletion.
func (g *garbageCollector) collect(ctx context.Context, k *gcKind, cached metav1.Object) error {
	if g.allOwnersCached(cached) {
		// What everything that is created passes through, so it asks nobody.
		// Should the cache be behind, the owner's deletion wakes us again.
		return nil
	}
	o, err := k.get(ctx, cached.GetNamespace(), cached.GetName())
	if err != nil {
		return ignoreNotFound(err)
	}
	if o.GetUID() != cached.GetUID() || o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) == 0 {
		return nil
	}
	var drop []types.UID
	solid, waiting := 0, 0
	for _, ref := range o.GetOwnerReferences() {
		state, err := g.owner(ctx, o.GetNamespace(), ref)
		switch {
		case err != nil:
			return err
		case state == ownerSolid:
			solid++
			continue
		case state == ownerWaiting:
			waiting++
		}
		drop = append(drop, ref.UID)
	}
	if solid > 0 {
		if len(drop) == 0 {
			return nil
		}
		return ignoreNotFound(g.dropOwners(ctx, k, o, drop))
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents), waiting > 0 && g.hasDependents(o.GetUID()):
		policy = metav1.DeletePropagationForeground
	}
	uid, rv := o.GetUID(), o.GetResourceVersion()
	err = k.delete(ctx, o.GetNamespace(), o.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &policy,
		// An object that got another owner meanwhile must stay.
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s/%s, whose owners are gone: %w", k.kind, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// allOwnersCached reports that the cache has every owner and none is being
// deleted.
func (g *garbageCollector) allOwnersCached(o metav1.Object) bool {
	for _, ref := range o.GetOwnerReferences() {
		k := g.kinds[ref.Kind]
		if k == nil {
			continue
		}
		if owner := k.cached(o.GetNamespace(), ref.Name); owner == nil || owner.GetUID() != ref.UID || owner.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return true
}

func (g *garbageCollector) hasDependents(uid types.UID) bool {
	found := false
	g.eachDependent(uid, func(*gcKind, metav1.Object) { found = true })
	return found
}

type ownerState int

const (
	ownerAbsent ownerState = iota
	ownerSolid
	ownerWaiting // being deleted in the foreground, blocked by this dependent
)

// owner looks in the cache first and asks the API server before it calls an
// owner absent.
func (g *garbageCollector) owner(ctx context.Context, namespace string, ref metav1.OwnerReference) (ownerState, error) {
	k := g.kinds[ref.Kind]
	if k == nil {
		return ownerSolid, nil
	}
	o := k.cached(namespace, ref.Name)
	if o == nil || o.GetUID() != ref.UID {
		live, err := k.get(ctx, namespace, ref.Name)
		switch {
		case apierrors.IsNotFound(err):
			return ownerAbsent, nil
		case err != nil:
			return 0, err
		case live.GetUID() != ref.UID:
			return ownerAbsent, nil
		}
		o = live
	}
	if o.GetDeletionTimestamp() != nil && blocks(ref) && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return ownerWaiting, nil
	}
	return ownerSolid, nil
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// finishForeground lets the owner go once no dependent blocks it.
func (g *garbageCollector) finishForeground(ctx context.Context, k *gcKind, o metav1.Object) error {
	blocked := false
	g.eachDependent(o.GetUID(), func(dk *gcKind, d metav1.Object) {
		for _, ref := range d.GetOwnerReferences() {
			if ref.UID == o.GetUID() && blocks(ref) {
				blocked = true
			}
		}
		g.queue.Add(gcKey(dk, d))
	})
	if blocked {
		return nil
	}
	return g.removeFinalizer(ctx, k, o, metav1.FinalizerDeleteDependents)
}

// orphan takes the owner off its dependents, then lets it go.
func (g *garbageCollector) orphan(ctx context.Context, k *gcKind, o metav1.Object) error {
	var errs []error
	g.eachDependent(o.GetUID(), func(dk *gcKind, d metav1.Object) {
		errs = append(errs, ignoreNotFound(g.dropOwners(ctx, dk, d, []types.UID{o.GetUID()})))
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return g.removeFinalizer(ctx, k, o, metav1.FinalizerOrphanDependents)
}

func (g *garbageCollector) dropOwners(ctx context.Context, k *gcKind, o metav1.Object, uids []types.UID) error {
	refs := make([]any, len(uids))
	for i, u := range uids {
		refs[i] = map[string]any{"$patch": "delete", "uid": u}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "ownerReferences": refs}})
	if err != nil {
		return err
	}
	return k.patch(ctx, o.GetNamespace(), o.GetName(), types.StrategicMergePatchType, data)
}

func (g *garbageCollector) removeFinalizer(ctx context.Context, k *gcKind, cached metav1.Object, name string) error {
	o, err := k.get(ctx, cached.GetNamespace(), cached.GetName())
	if err != nil || o.GetUID() != cached.GetUID() {
		return ignoreNotFound(err)
	}
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name })
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "finalizers": left,
	}})
	if err != nil {
		return err
	}
	return ignoreNotFound(k.patch(ctx, o.GetNamespace(), o.GetName(), types.MergePatchType, data))
}
