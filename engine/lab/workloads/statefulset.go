package workloads

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// statefulSetController keeps pods with names and an order, by the rules of
// k8s.io/kubernetes pkg/controller/statefulset/stateful_set_control.go. There is
// no storage and no maxUnavailable.
type statefulSetController struct {
	controller
}

func newStatefulSetController(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *statefulSetController {
	c := &statefulSetController{}
	c.controller = newController("statefulset", client, clk, caches, events, c.sync)
	follow[*appsv1.StatefulSet](&c.controller, caches.statefulSets)
	c.followPods(statefulSetKind.Kind, func(p *corev1.Pod) {
		wakeOwnersOf(&c.controller, p, statefulSetKind.Kind, caches.statefulSetLister.GetPodStatefulSets)
	})
	return c
}

func (c *statefulSetController) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	set, err := c.caches.statefulSetLister.StatefulSets(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return nil
	}
	pods, err := c.claimed(ctx, set)
	if err != nil {
		return err
	}
	h := &history{client: c.client, caches: c.caches, owner: set, kind: statefulSetKind, template: &set.Spec.Template, limit: set.Spec.RevisionHistoryLimit}
	update, all, err := h.current(ctx)
	if err != nil {
		return err
	}
	u := &setUpdate{c: c, set: set, update: update, current: update}
	for _, r := range all {
		if r.Name == set.Status.CurrentRevision {
			u.current = r
		}
	}
	u.sort(pods)
	manageErr := u.manage(ctx)
	if err := u.writeStatus(ctx, pods); err != nil {
		return errors.Join(manageErr, err)
	}
	if manageErr != nil {
		return manageErr
	}
	if d, ok := nextAvailability(pods, set.Spec.MinReadySeconds, c.clock.Now()); ok {
		c.queue.AddAfter(key, d)
	}
	return h.truncate(ctx, all, func(r *appsv1.ControllerRevision) bool {
		if r.Name == u.update.Name || r.Name == u.current.Name {
			return true
		}
		for _, p := range pods {
			if p.Labels[appsv1.ControllerRevisionHashLabelKey] == r.Name {
				return true
			}
		}
		return false
	})
}

// claimed are the pods of the set, by name too.
func (c *statefulSetController) claimed(ctx context.Context, set *appsv1.StatefulSet) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, err
	}
	all, err := controlledBy[*corev1.Pod](c.caches.pods, set.UID, set.Namespace, true)
	if err != nil {
		return nil, err
	}
	var mine []*corev1.Pod
	for _, p := range all {
		if _, ok := ordinal(set, p.Name); ok {
			mine = append(mine, p)
		}
	}
	return claim(ctx, &claimer{
		owner: set, kind: statefulSetKind, selector: selector,
		fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().StatefulSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, name string, data []byte) error {
			_, err := c.client.CoreV1().Pods(set.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
			return err
		},
	}, mine)
}

// ordinal reads the number at the end of a pod's name.
func ordinal(set *appsv1.StatefulSet, pod string) (int, bool) {
	s, ok := strings.CutPrefix(pod, set.Name+"-")
	n, err := strconv.Atoi(s)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == s
}

// createPod makes the pod of one ordinal from a revision.
func (c *statefulSetController) createPod(ctx context.Context, set *appsv1.StatefulSet, n int, rev *appsv1.ControllerRevision) error {
	t, err := templateOf(rev)
	if err != nil {
		return err
	}
	p := podOf(t, set, statefulSetKind)
	p.Name = fmt.Sprintf("%s-%d", set.Name, n)
	p.Labels[appsv1.StatefulSetPodNameLabel] = p.Name
	p.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = rev.Name
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, set.Spec.ServiceName
	_, err = c.client.CoreV1().Pods(set.Namespace).Create(ctx, p, metav1.CreateOptions{})
	switch {
	case err == nil:
		c.events.Eventf(set, corev1.EventTypeNormal, "SuccessfulCreate", "create Pod %s in StatefulSet %s successful", p.Name, set.Name)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsAlreadyExists(err):
		// The cache is behind, or somebody else's pod has the name.
		return err
	default:
		c.events.Eventf(set, corev1.EventTypeWarning, "FailedCreate", "create Pod %s in StatefulSet %s failed error: %v", p.Name, set.Name, err)
	}
	return err
}

func (c *statefulSetController) deletePod(ctx context.Context, set *appsv1.StatefulSet, p *corev1.Pod) error {
	err := c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	if err == nil {
		c.events.Eventf(set, corev1.EventTypeNormal, "SuccessfulDelete", "delete Pod %s in StatefulSet %s successful", p.Name, set.Name)
	}
	return ignoreNotFound(err)
}

// available reports that a pod is ready, and has been for long enough.
func (c *statefulSetController) available(set *appsv1.StatefulSet, p *corev1.Pod, now time.Time) bool {
	return runningReady(p) && untilAvailable(p, set.Spec.MinReadySeconds, now) <= 0
}

func runningReady(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && podReady(p) }
