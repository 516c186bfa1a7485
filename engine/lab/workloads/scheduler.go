package workloads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// schedulerName is the spec.schedulerName the stand-in answers to; empty counts
// as well, for API servers that do not fill it in.
const schedulerName = "default-scheduler"

// scheduler binds pending pods to nodes. It is a stand-in: it looks at
// readiness, spec.unschedulable, taints, nodeSelector, required node affinity,
// host ports and the pods a node may hold, not at resources or other affinity,
// and prefers the node with the fewest pods,
// then the one with the fewest of the same owner. It has one worker, as
// kube-scheduler decides for one pod at a time too.
type scheduler struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	caches *sharedCaches
	events record.EventRecorder
	queue  *queue

	mu sync.Mutex
	// assumed are pods that were bound but not yet seen bound by the cache.
	assumed map[types.UID]string
	// waiting are the keys of pods that no node could take.
	waiting map[string]bool
}

func newScheduler(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *scheduler {
	s := &scheduler{client: client, clock: clk, caches: caches, events: events, assumed: map[types.UID]string{}, waiting: map[string]bool{}}
	s.queue = newQueue("scheduler", clk, s.sync)
	on(caches, caches.pods,
		s.podSeen,
		func(old, cur *corev1.Pod) {
			s.podSeen(cur)
			if podTerminal(cur) && !podTerminal(old) {
				s.roomMade()
			}
		},
		func(p *corev1.Pod) {
			s.forget(p)
			s.roomMade()
		})
	on(caches, caches.nodes,
		func(*corev1.Node) { s.roomMade() },
		func(old, cur *corev1.Node) {
			if !sameForScheduling(old, cur) {
				s.roomMade()
			}
		},
		func(*corev1.Node) {})
	return s
}

func (s *scheduler) podSeen(p *corev1.Pod) {
	if p.Spec.NodeName != "" {
		s.forget(p)
		return
	}
	if schedulable(p) {
		s.mu.Lock()
		waits := s.waiting[keyOf(p)]
		s.mu.Unlock()
		// A waiting pod's own status update is no reason to try again.
		if !waits {
			s.queue.add(p)
		}
	}
}

func schedulable(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !podTerminal(p) && len(p.Spec.SchedulingGates) == 0 &&
		(p.Spec.SchedulerName == "" || p.Spec.SchedulerName == schedulerName)
}

func (s *scheduler) forget(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.assumed, p.UID)
	delete(s.waiting, keyOf(p))
}

// roomMade tries the waiting pods again.
func (s *scheduler) roomMade() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.waiting {
		s.queue.Add(k)
	}
	clear(s.waiting)
}

// sameForScheduling leaves heartbeats out.
func sameForScheduling(a, b *corev1.Node) bool {
	return nodeReady(a) == nodeReady(b) && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(x, y corev1.Taint) bool { return x.MatchTaint(&y) && x.Value == y.Value }) &&
		labels.Equals(a.Labels, b.Labels) && a.Status.Allocatable.Pods().Equal(*b.Status.Allocatable.Pods())
}

func (s *scheduler) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	p, err := s.caches.podLister.Pods(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	s.mu.Lock()
	_, done := s.assumed[p.UID]
	s.mu.Unlock()
	if done || !schedulable(p) {
		return nil
	}
	node, why, err := s.choose(p)
	if err != nil {
		return err
	}
	if node == "" {
		return s.unschedulable(ctx, p, why)
	}
	s.mu.Lock()
	s.assumed[p.UID] = node
	s.mu.Unlock()
	err = s.client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		s.forget(p)
		return ignoreNotFound(fmt.Errorf("bind pod %s to %s: %w", key, node, err))
	}
	s.events.Eventf(p, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s to %s", key, node)
	return nil
}

// candidate is a node that may take the pod.
type candidate struct {
	name            string
	pods, sameOwner int
	capacity        int
	portTaken       bool // a host port that the pod wants
}

// choose returns the best node, or none and why not.
func (s *scheduler) choose(p *corev1.Pod) (node, why string, err error) {
	nodes, err := s.caches.nodeLister.List(labels.Everything())
	if err != nil {
		return "", "", err
	}
	byName := map[string]*candidate{}
	refused := map[string]int{}
	for _, n := range nodes {
		if reason := unfit(p, n); reason != "" {
			refused[reason]++
			continue
		}
		byName[n.Name] = &candidate{name: n.Name, capacity: int(n.Status.Allocatable.Pods().Value())}
	}
	if err := s.count(p, byName); err != nil {
		return "", "", err
	}
	var best *candidate
	for _, c := range byName {
		if c.capacity > 0 && c.pods >= c.capacity {
			refused["Too many pods"]++
			continue
		}
		if c.portTaken {
			refused["node(s) didn't have free ports for the requested pod ports"]++
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(c.pods, best.pods), cmp.Compare(c.sameOwner, best.sameOwner), cmp.Compare(c.name, best.name)) < 0 {
			best = c
		}
	}
	if best != nil {
		return best.name, "", nil
	}
	return "", unfitMessage(len(nodes), refused), nil
}

// count fills in how many pods each candidate has, the assumed ones included.
func (s *scheduler) count(p *corev1.Pod, byName map[string]*candidate) error {
	pods, err := s.caches.podLister.List(labels.Everything())
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range pods {
		on := q.Spec.NodeName
		if on == "" {
			on = s.assumed[q.UID]
		}
		c := byName[on]
		if c == nil || podTerminal(q) {
			continue
		}
		c.pods++
		c.portTaken = c.portTaken || hostPortsClash(p, q)
		if ref := metav1.GetControllerOfNoCopy(q); ref != nil && owner != nil && ref.UID == owner.UID {
			c.sameOwner++
		}
	}
	return nil
}

// hostPortsClash reports that two pods cannot be on one node.
func hostPortsClash(a, b *corev1.Pod) bool {
	for i := range a.Spec.Containers {
		for _, x := range a.Spec.Containers[i].Ports {
			if x.HostPort == 0 {
				continue
			}
			for j := range b.Spec.Containers {
				for _, y := range b.Spec.Containers[j].Ports {
					if x.HostPort == y.HostPort && x.Protocol == y.Protocol && (x.HostIP == y.HostIP || anyAddress(x.HostIP) || anyAddress(y.HostIP)) {
						return true
					}
				}
			}
		}
	}
	return false
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" }

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unfit says why a node cannot take the pod, in kube-scheduler's words.
func unfit(p *corev1.Pod, n *corev1.Node) string {
	switch {
	case n.DeletionTimestamp != nil:
		return "node(s) were being deleted"
	case n.Spec.Unschedulable && !toleratesKey(p, corev1.TaintNodeUnschedulable):
		return "node(s) were unschedulable"
	case !nodeReady(n) && !toleratesKey(p, corev1.TaintNodeNotReady):
		return "node(s) were not ready"
	case !selectsNode(p, n):
		return "node(s) didn't match Pod's node affinity/selector"
	}
	if t := untolerated(p.Spec.Tolerations, n.Spec.Taints, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); t != nil {
		return fmt.Sprintf("node(s) had untolerated taint(s) {%s: %s}", t.Key, t.Value)
	}
	return ""
}

func unfitMessage(nodes int, refused map[string]int) string {
	if nodes == 0 {
		return "no nodes available to schedule pods"
	}
	var parts []string
	for reason, n := range refused {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}

// unschedulable notes why the pod waits; it is tried again when a node or the
// room on one changes.
func (s *scheduler) unschedulable(ctx context.Context, p *corev1.Pod, why string) error {
	s.mu.Lock()
	s.waiting[keyOf(p)] = true
	s.mu.Unlock()
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Message == why {
		return nil
	}
	s.events.Event(p, corev1.EventTypeWarning, "FailedScheduling", why)
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
			LastTransitionTime: metav1.NewTime(s.clock.Now()),
		}}},
	})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	return ignoreNotFound(err)
}
