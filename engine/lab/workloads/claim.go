package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// claimer decides which objects belong to a controller, by the rules of
// k8s.io/kubernetes pkg/controller ControllerRefManager: what it controls and
// selects is kept, what it controls and no longer selects is released, what
// nothing controls and it selects is adopted.
type claimer struct {
	owner    metav1.Object
	kind     schema.GroupVersionKind
	selector labels.Selector
	// fresh reads the owner from the API server, to not adopt on behalf of one
	// that the cache does not yet know to be deleted.
	fresh func(ctx context.Context) (metav1.Object, error)
	// patch applies a strategic merge patch to one of the objects.
	patch func(ctx context.Context, name string, data []byte) error
}

// claim returns those of objs that belong to the owner now. It goes on after a
// failure, and returns all failures together.
func claim[T metav1.Object](ctx context.Context, c *claimer, objs []T) ([]T, error) {
	var out []T
	var errs []error
	var mayAdopt error
	checked := false
	for _, o := range objs {
		matches := c.selector.Matches(labels.Set(o.GetLabels()))
		ref := metav1.GetControllerOfNoCopy(o)
		switch {
		case ref != nil && ref.UID != c.owner.GetUID():
		case ref != nil && matches:
			out = append(out, o)
		case c.owner.GetDeletionTimestamp() != nil:
		case ref != nil:
			errs = append(errs, c.release(ctx, o))
		case matches && o.GetDeletionTimestamp() == nil:
			if !checked {
				checked, mayAdopt = true, c.checkOwner(ctx)
			}
			if mayAdopt != nil {
				errs = append(errs, mayAdopt)
				continue
			}
			err := c.adopt(ctx, o)
			if err == nil {
				out = append(out, o)
			} else if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return out, errors.Join(errs...)
}

func (c *claimer) checkOwner(ctx context.Context) error {
	o, err := c.fresh(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("adopt for %s %s: %w", c.kind.Kind, c.owner.GetName(), err)
	case o.GetUID() != c.owner.GetUID():
		return fmt.Errorf("adopt for %s %s: it was replaced by another of that name", c.kind.Kind, c.owner.GetName())
	case o.GetDeletionTimestamp() != nil:
		return fmt.Errorf("adopt for %s %s: it is being deleted", c.kind.Kind, c.owner.GetName())
	}
	return nil
}

func (c *claimer) adopt(ctx context.Context, o metav1.Object) error {
	return c.apply(ctx, o, []any{metav1.NewControllerRef(c.owner, c.kind)})
}

// release takes the ownerReference away. An object that is gone, or is another
// one of the same name by now, needs no release.
func (c *claimer) release(ctx context.Context, o metav1.Object) error {
	err := c.apply(ctx, o, []any{map[string]any{"$patch": "delete", "uid": c.owner.GetUID()}})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func (c *claimer) apply(ctx context.Context, o metav1.Object, refs []any) error {
	// The UID makes the patch fail on another object of the same name.
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "ownerReferences": refs}})
	if err != nil {
		return err
	}
	return c.patch(ctx, o.GetName(), data)
}
