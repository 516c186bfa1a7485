package reconcile

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// write carries out a plan. An address that moves from one slice to another
// may be in both for a moment, and is never in none. Nothing is created for
// Endpoints that are being deleted. What is already gone needs no deleting.
func (c *mirrorController) write(ctx context.Context, client *recorder, e *corev1.Endpoints, plan mirrorPlan) error { //nolint:staticcheck // what is mirrored
	api := client.DiscoveryV1().EndpointSlices
	if len(plan.create) > 0 && e.DeletionTimestamp == nil {
		for _, s := range plan.create {
			created, err := api(s.Namespace).Create(ctx, s, metav1.CreateOptions{})
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil // nothing can be created there any more
			}
			if err != nil {
				return fmt.Errorf("create a slice that mirrors Endpoints %s/%s: %w", e.Namespace, e.Name, err)
			}
			c.tracker.Update(created)
		}
	}
	for _, s := range plan.update {
		updated, err := api(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update slice %s/%s: %w", s.Namespace, s.Name, err)
		}
		c.tracker.Update(updated)
	}
	var errs []error
	for _, s := range plan.remove {
		err := api(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete slice %s/%s: %w", s.Namespace, s.Name, err))
			continue
		}
		if c.tracker.Has(s) {
			c.tracker.ExpectDeletion(s)
		}
	}
	return errors.Join(errs...)
}
