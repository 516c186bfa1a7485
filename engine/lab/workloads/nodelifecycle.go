package workloads

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
)

// defaultNodeGrace is kube-controller-manager's node-monitor-grace-period.
const defaultNodeGrace = 50 * time.Second

// nodeLifecycle notices nodes that went silent: their Ready condition becomes
// Unknown, their pods unready, and they get the taints by which pods are evicted
// after the time that they tolerate. The rules are those of k8s.io/kubernetes
// pkg/controller/{nodelifecycle,tainteviction}. Not copied: that evictions
// are spread over time, and stop where all nodes of a zone are silent.
type nodeLifecycle struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	caches *sharedCaches
	events record.EventRecorder
	grace  atomic.Int64 // nanoseconds
	usual  time.Duration
	queue  *queue

	mu   sync.Mutex
	seen map[string]*nodeSign
}

// nodeSign is the last sign of life of a node, and when it was seen here: the
// node's own clock does not count.
type nodeSign struct {
	lease, status time.Time
	at            time.Time
}

func newNodeLifecycle(o Options, caches *sharedCaches, events record.EventRecorder) *nodeLifecycle {
	c := &nodeLifecycle{client: o.Client, clock: o.Clock, caches: caches, events: events, usual: o.NodeGrace, seen: map[string]*nodeSign{}}
	if c.usual <= 0 {
		c.usual = defaultNodeGrace
	}
	c.grace.Store(int64(c.usual))
	c.queue = newQueue("node-lifecycle", o.Clock, c.sync)
	on(caches, caches.nodes,
		func(n *corev1.Node) { c.queue.Add(n.Name) },
		func(_, n *corev1.Node) { c.queue.Add(n.Name) },
		func(n *corev1.Node) { c.queue.Add(n.Name) })
	lease := func(l *coordinationv1.Lease) {
		if l.Namespace == corev1.NamespaceNodeLease {
			c.queue.Add(l.Name)
		}
	}
	on(caches, caches.leases, lease, func(_, l *coordinationv1.Lease) { lease(l) }, lease)
	on(caches, caches.pods, c.podSeen, func(old, p *corev1.Pod) {
		if old.Spec.NodeName != p.Spec.NodeName || podReady(old) != podReady(p) {
			c.podSeen(p)
		}
	}, func(*corev1.Pod) {})
	return c
}

// podSeen wakes the node of a pod where something may be to be done about it.
func (c *nodeLifecycle) podSeen(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		return
	}
	n, err := c.caches.nodeLister.Get(p.Spec.NodeName)
	if err != nil || !nodeReady(n) || len(n.Spec.Taints) > 0 {
		c.queue.Add(p.Spec.NodeName)
	}
}

// setGrace changes for how long nodes may be silent; 0 is the usual time.
func (c *nodeLifecycle) setGrace(d time.Duration) {
	if d <= 0 {
		d = c.usual
	}
	if c.grace.Swap(int64(d)) == int64(d) {
		return
	}
	nodes, err := c.caches.nodeLister.List(labels.Everything())
	if err != nil {
		return // a cache in memory
	}
	for _, n := range nodes {
		c.queue.Add(n.Name)
	}
}

func (c *nodeLifecycle) sync(ctx context.Context, name string) error {
	n, err := c.caches.nodeLister.Get(name)
	if apierrors.IsNotFound(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.seen, name)
		return nil
	}
	if err != nil {
		return err
	}
	if left := c.patience(n); left > 0 {
		c.queue.AddAfter(name, left)
	} else if err := c.silent(ctx, n); err != nil {
		return err
	}
	if err := c.taint(ctx, n); err != nil {
		return err
	}
	pods, err := c.podsOn(name)
	if err != nil {
		return err
	}
	return errors.Join(c.unreadyPods(ctx, n, pods), c.evict(ctx, n, pods))
}

// patience is how long the node may still stay silent.
func (c *nodeLifecycle) patience(n *corev1.Node) time.Duration {
	now := c.clock.Now()
	var lease, status time.Time
	if l, err := c.caches.leaseLister.Leases(corev1.NamespaceNodeLease).Get(n.Name); err == nil && l.Spec.RenewTime != nil {
		lease = l.Spec.RenewTime.Time
	}
	if r := readyCondition(n); r != nil {
		status = r.LastHeartbeatTime.Time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[n.Name]
	if s == nil {
		s = &nodeSign{at: now}
		c.seen[n.Name] = s
	}
	if lease.After(s.lease) || status.After(s.status) {
		s.at = now
	}
	s.lease, s.status = latest(s.lease, lease), latest(s.status, status)
	return s.at.Add(time.Duration(c.grace.Load())).Sub(now)
}

func readyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// silent writes that nothing is known of the node any more.
func (c *nodeLifecycle) silent(ctx context.Context, n *corev1.Node) error {
	if r := readyCondition(n); r != nil && r.Status == corev1.ConditionUnknown {
		return nil
	}
	now := metav1.NewTime(c.clock.Now())
	err := c.change(ctx, n, true, func(n *corev1.Node) bool {
		known := []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}
		if readyCondition(n) == nil {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, LastHeartbeatTime: n.CreationTimestamp})
		}
		for i := range n.Status.Conditions {
			if x := &n.Status.Conditions[i]; slices.Contains(known, x.Type) && x.Status != corev1.ConditionUnknown {
				x.Status, x.Reason, x.Message, x.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", now
			}
		}
		return true
	})
	if err == nil {
		c.events.Eventf(nodeReference(n), corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", n.Name)
	}
	return err
}

func nodeReference(n *corev1.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: n.Name, UID: n.UID}
}

// taint brings the taints for readiness in line with the Ready condition.
func (c *nodeLifecycle) taint(ctx context.Context, n *corev1.Node) error {
	want := ""
	switch r := readyCondition(n); {
	case r == nil || r.Status == corev1.ConditionTrue:
	case r.Status == corev1.ConditionFalse:
		want = corev1.TaintNodeNotReady
	default:
		want = corev1.TaintNodeUnreachable
	}
	now := metav1.NewTime(c.clock.Now())
	adjust := func(n *corev1.Node) bool {
		before := len(n.Spec.Taints)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key != want && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
		})
		changed := len(n.Spec.Taints) != before
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			if want == "" || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == want && t.Effect == effect }) {
				continue
			}
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: want, Effect: effect, TimeAdded: &now})
			changed = true
		}
		return changed
	}
	if !adjust(n.DeepCopy()) {
		return nil
	}
	return c.change(ctx, n, false, adjust)
}

// change applies f to the fresh object until it is written. The node's own
// update wakes this controller again.
func (c *nodeLifecycle) change(ctx context.Context, n *corev1.Node, status bool, f func(*corev1.Node) bool) error {
	nodes := c.client.CoreV1().Nodes()
	return ignoreNotFound(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || fresh.UID != n.UID || !f(fresh) {
			return err
		}
		if status {
			_, err = nodes.UpdateStatus(ctx, fresh, metav1.UpdateOptions{})
		} else {
			_, err = nodes.Update(ctx, fresh, metav1.UpdateOptions{})
		}
		return err
	}))
}
