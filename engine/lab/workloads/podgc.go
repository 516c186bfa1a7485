package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// quarantine is how long a node is missing before its pods count as orphaned
// (quarantineTime in pkg/controller/podgc). The real one looks every 20 s only,
// so there it takes up to twice as long.
const quarantine = 40 * time.Second

// podCollector deletes the pods of nodes that do not exist any more, by the
// rules of k8s.io/kubernetes pkg/controller/podgc: nobody else would, since only
// a node's kubelet ends its pods. Its queue's keys are names of nodes.
type podCollector struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	caches *sharedCaches
	queue  *queue

	mu sync.Mutex
	// missing is since when a node that has pods is not there. A pod can be
	// seen before its node is, so an entry goes when the node comes.
	missing map[string]time.Time
}

func newPodCollector(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches) *podCollector {
	c := &podCollector{client: client, clock: clk, caches: caches, missing: map[string]time.Time{}}
	c.queue = newQueue("pod-garbage-collector", clk, c.sync)
	on(caches, caches.nodes,
		func(n *corev1.Node) { c.found(n.Name) },
		func(_, _ *corev1.Node) {},
		func(n *corev1.Node) { c.missed(n.Name) })
	on(caches, caches.pods,
		c.podSeen,
		func(old, cur *corev1.Pod) {
			if old.Spec.NodeName != cur.Spec.NodeName {
				c.podSeen(cur)
			}
		},
		func(*corev1.Pod) {})
	return c
}

// podSeen looks after a pod that was put on a node that nobody knows.
func (c *podCollector) podSeen(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		return
	}
	if _, err := c.caches.nodeLister.Get(p.Spec.NodeName); err != nil {
		c.missed(p.Spec.NodeName)
	}
}

// missed starts a node's quarantine, unless it has begun already.
func (c *podCollector) missed(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.missing[node]; !ok {
		c.missing[node] = c.clock.Now()
	}
	c.queue.AddAfter(node, quarantine)
}

func (c *podCollector) found(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, node)
}

// quarantineLeft is how long the node's pods have to be left alone yet.
func (c *podCollector) quarantineLeft(node string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.missing[node]
	if !ok {
		return 0
	}
	return quarantine - c.clock.Since(since)
}

func (c *podCollector) sync(ctx context.Context, node string) error {
	if _, err := c.caches.nodeLister.Get(node); err == nil {
		return nil
	}
	if left := c.quarantineLeft(node); left > 0 {
		c.queue.AddAfter(node, left)
		return nil
	}
	// The cache may be behind, and the pods of a node that is there must stay.
	_, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	pods, err := c.caches.podLister.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if p.Spec.NodeName == node {
			errs = append(errs, c.collect(ctx, p))
		}
	}
	err = errors.Join(errs...)
	if err == nil {
		c.found(node) // nothing is left to wait for
	}
	return err
}

// collect deletes one pod at once. It is marked as failed first: the kubelet that
// would tell how it ended is gone.
func (c *podCollector) collect(ctx context.Context, p *corev1.Pod) error {
	pods := c.client.CoreV1().Pods(p.Namespace)
	if !podTerminal(p) {
		data, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": p.UID},
			"status": map[string]any{"phase": corev1.PodFailed, "conditions": []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
				LastTransitionTime: metav1.NewTime(c.clock.Now()),
			}}},
		})
		if err != nil {
			return err
		}
		if _, err := pods.Patch(ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status"); err != nil {
			return ignoreNotFound(fmt.Errorf("mark pod %s of the missing node %s as failed: %w", keyOf(p), p.Spec.NodeName, err))
		}
	}
	o := *metav1.NewDeleteOptions(0)
	o.Preconditions = metav1.NewUIDPreconditions(string(p.UID))
	if err := pods.Delete(ctx, p.Name, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s of the missing node %s: %w", keyOf(p), p.Spec.NodeName, err)
	}
	return nil
}
