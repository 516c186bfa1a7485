package workloads

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// deletePods deletes an owner's pods at once, each only if it still is the one
// that the cache showed. What fails is an Event of the owner's.
func (c *controller) deletePods(ctx context.Context, key string, owner runtime.Object, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	uids := make([]types.UID, len(pods))
	for i, p := range pods {
		uids[i] = p.UID
	}
	c.expectations.expectDeletes(key, uids...)
	return errors.Join(inParallel(len(pods), func(i int) error {
		p := pods[i]
		err := c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err == nil {
			c.events.Eventf(owner, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", p.Name)
			return nil
		}
		c.expectations.deleted(key, p.UID)
		if apierrors.IsNotFound(err) {
			return nil
		}
		c.events.Eventf(owner, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
	})...)
}

// inParallel calls f for 0..n-1 at once and returns the failures.
func inParallel(n int, f func(i int) error) []error {
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(i); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errs
}
