package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// byNode is the index of pods by the node they are bound to.
const byNode = "node"

func nodeIndex(obj any) ([]string, error) {
	if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}, nil
	}
	return nil, nil
}

func (c *nodeLifecycle) podsOn(node string) (out []*corev1.Pod, err error) {
	objs, err := c.caches.pods.GetIndexer().ByIndex(byNode, node)
	for _, o := range objs {
		if p, ok := o.(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out, err
}

// unreadyPods takes the pods of a silent node out of their Services
// (MarkPodsNotReady in pkg/controller/util/node).
func (c *nodeLifecycle) unreadyPods(ctx context.Context, n *corev1.Node, pods []*corev1.Pod) error {
	if r := readyCondition(n); r == nil || r.Status != corev1.ConditionUnknown {
		return nil
	}
	now := metav1.NewTime(c.clock.Now()).Rfc3339Copy()
	return errors.Join(inParallel(len(pods), func(i int) error {
		p := pods[i]
		cond := podCondition(p, corev1.PodReady)
		if cond == nil || cond.Status != corev1.ConditionTrue {
			return nil
		}
		data, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": p.UID},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": corev1.PodReady, "status": corev1.ConditionFalse, "lastTransitionTime": now}}},
		})
		if err != nil {
			return err
		}
		_, err = c.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
		if err == nil {
			c.events.Event(p, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
		}
		return ignoreOther(err)
	})...)
}

// ignoreOther takes errors away that mean that the pod is not there any more,
// or is another one of the same name.
func ignoreOther(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// evict deletes the pods that do not tolerate the node's NoExecute taints, or
// not any longer.
func (c *nodeLifecycle) evict(ctx context.Context, n *corev1.Node, pods []*corev1.Pod) error {
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
	if len(taints) == 0 {
		return nil
	}
	now := c.clock.Now()
	return errors.Join(inParallel(len(pods), func(i int) error {
		p := pods[i]
		at, ok := evictionTime(p, taints, now)
		switch {
		case !ok || p.DeletionTimestamp != nil || podTerminal(p):
			return nil
		case at.After(now):
			c.queue.AddAfter(n.Name, at.Sub(now))
			return nil
		}
		err := c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err == nil {
			c.events.Eventf(p, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s", keyOf(p))
		}
		return ignoreOther(err)
	})...)
}

// evictionTime is when a pod must leave: at once for a taint that it does not
// tolerate, else when the shortest toleration runs out; ok is false for never.
func evictionTime(p *corev1.Pod, taints []corev1.Taint, now time.Time) (at time.Time, ok bool) {
	for i := range taints {
		t := &taints[i]
		tolerated := false
		for j := range p.Spec.Tolerations {
			tol := &p.Spec.Tolerations[j]
			if !tolerates(tol, t) {
				continue
			}
			tolerated = true
			if tol.TolerationSeconds == nil {
				continue
			}
			since := now
			if t.TimeAdded != nil {
				since = t.TimeAdded.Time
			}
			end := since.Add(time.Duration(max(0, *tol.TolerationSeconds)) * time.Second)
			if !ok || end.Before(at) {
				at, ok = end, true
			}
		}
		if !tolerated {
			return now, true
		}
	}
	return at, ok
}
