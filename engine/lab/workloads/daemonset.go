package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

var daemonSetKind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// daemonSetController keeps one pod on each node that it fits, by the rules of
// k8s.io/kubernetes pkg/controller/daemon. There is no maxSurge.
type daemonSetController struct {
	controller
}

func newDaemonSetController(client kubernetes.Interface, clk clock.WithTicker, caches *sharedCaches, events record.EventRecorder) *daemonSetController {
	c := &daemonSetController{}
	c.controller = newController("daemonset", client, clk, caches, events, c.sync)
	follow[*appsv1.DaemonSet](&c.controller, caches.daemonSets)
	c.followPods(daemonSetKind.Kind, func(p *corev1.Pod) {
		wakeOwnersOf(&c.controller, p, daemonSetKind.Kind, caches.daemonSetLister.GetPodDaemonSets)
	})
	on(caches, caches.nodes,
		func(*corev1.Node) { c.all() },
		func(old, cur *corev1.Node) {
			if !sameForScheduling(old, cur) {
				c.all()
			}
		},
		func(*corev1.Node) { c.all() })
	return c
}

// all wakes every DaemonSet: the nodes changed.
func (c *daemonSetController) all() {
	sets, err := c.caches.daemonSetLister.List(labels.Everything())
	if err != nil {
		return // a lister over a cache that is being filled; each set is added then
	}
	for _, d := range sets {
		c.queue.add(d)
	}
}

func (c *daemonSetController) sync(ctx context.Context, key string) error {
	namespace, name := splitKey(key)
	d, err := c.caches.daemonSetLister.DaemonSets(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.expectations.forget(key)
		return nil
	}
	if err != nil {
		return err
	}
	if d.DeletionTimestamp != nil {
		return nil
	}
	mayManage := c.expectations.satisfied(key)
	pods, err := c.claimed(ctx, d)
	if err != nil {
		return err
	}
	h := &history{client: c.client, caches: c.caches, owner: d, kind: daemonSetKind, template: &d.Spec.Template, limit: d.Spec.RevisionHistoryLimit}
	update, all, err := h.current(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.caches.nodeLister.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	look := &daemonLook{c: c, key: key, d: d, hash: revisionHash(update), nodes: nodes, on: map[string][]*corev1.Pod{}}
	for _, p := range pods {
		n := targetNode(p)
		look.on[n] = append(look.on[n], p)
	}
	var manageErr error
	if mayManage {
		if manageErr = look.manage(ctx); manageErr == nil && c.expectations.satisfied(key) && d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			manageErr = look.update(ctx)
		}
	}
	if err := look.writeStatus(ctx); err != nil {
		return errors.Join(manageErr, err)
	}
	if manageErr != nil {
		return manageErr
	}
	if wait, ok := nextAvailability(pods, d.Spec.MinReadySeconds, c.clock.Now()); ok {
		c.queue.AddAfter(key, wait)
	}
	return h.truncate(ctx, all, func(r *appsv1.ControllerRevision) bool {
		return r.Name == update.Name || slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Labels[appsv1.ControllerRevisionHashLabelKey] == revisionHash(r)
		})
	})
}

func (c *daemonSetController) claimed(ctx context.Context, d *appsv1.DaemonSet) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	all, err := controlledBy[*corev1.Pod](c.caches.pods, d.UID, d.Namespace, true)
	if err != nil {
		return nil, err
	}
	return claim(ctx, &claimer{
		owner: d, kind: daemonSetKind, selector: selector,
		fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().DaemonSets(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, name string, data []byte) error {
			_, err := c.client.CoreV1().Pods(d.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
			return err
		},
	}, all)
}

// daemonLook is one look at a DaemonSet and the nodes.
type daemonLook struct {
	c     *daemonSetController
	key   string
	d     *appsv1.DaemonSet
	hash  string
	nodes []*corev1.Node
	on    map[string][]*corev1.Pod
}

// fits says whether a node should get a pod, and whether it may keep one
// (nodeShouldRunDaemonPod).
func (l *daemonLook) fits(n *corev1.Node) (run, keep bool) {
	p := &corev1.Pod{Spec: *l.d.Spec.Template.Spec.DeepCopy()}
	tolerateAsDaemon(&p.Spec)
	if !selectsNode(p, n) {
		return false, false
	}
	if untolerated(p.Spec.Tolerations, n.Spec.Taints, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) == nil {
		return true, true
	}
	return false, untolerated(p.Spec.Tolerations, n.Spec.Taints, corev1.TaintEffectNoExecute) == nil
}

// manage gives each node its pod and takes away what is too much.
func (l *daemonLook) manage(ctx context.Context) error {
	var missing []string
	var excess []*corev1.Pod
	for _, n := range l.nodes {
		run, keep := l.fits(n)
		var here []*corev1.Pod
		for _, p := range l.on[n.Name] {
			switch {
			case p.DeletionTimestamp != nil:
			case podTerminal(p):
				excess = append(excess, p) // and made again
			default:
				here = append(here, p)
			}
		}
		switch {
		case run && len(l.on[n.Name]) == 0:
			missing = append(missing, n.Name)
		case !keep:
			excess = append(excess, here...)
		case len(here) > 1:
			slices.SortFunc(here, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			excess = append(excess, here[1:]...)
		}
	}
	if err := l.c.deletePods(ctx, l.key, l.d, excess); err != nil {
		return err
	}
	return l.create(ctx, missing)
}

func (l *daemonLook) create(ctx context.Context, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	l.c.expectations.expectCreates(l.key, len(nodes))
	return errors.Join(inParallel(len(nodes), func(i int) error {
		p := podOf(&l.d.Spec.Template, l.d, daemonSetKind)
		p.GenerateName = namePrefix(l.d)
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = l.hash
		tolerateAsDaemon(&p.Spec)
		bindTo(&p.Spec, nodes[i])
		made, err := l.c.client.CoreV1().Pods(l.d.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			l.c.expectations.created(l.key)
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil
			}
			l.c.events.Eventf(l.d, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return fmt.Errorf("create a pod of DaemonSet %s: %w", l.key, err)
		}
		l.c.events.Eventf(l.d, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", made.Name)
		return nil
	})...)
}

// update deletes pods of older revisions, those first that serve nobody, as many
// as may be unavailable at a time (rollingUpdate in pkg/controller/daemon/update.go).
func (l *daemonLook) update(ctx context.Context) error {
	desired, unavailable := 0, 0
	var idle, serving []*corev1.Pod
	for _, n := range l.nodes {
		if run, _ := l.fits(n); !run {
			continue
		}
		desired++
		available := false
		for _, p := range l.on[n.Name] {
			if !podActive(p) {
				continue
			}
			up := l.available(p)
			available = available || up
			switch old := p.Labels[appsv1.ControllerRevisionHashLabelKey] != l.hash; {
			case old && up:
				serving = append(serving, p)
			case old:
				idle = append(idle, p)
			}
		}
		if !available {
			unavailable++
		}
	}
	limit := 1
	if r := l.d.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, desired, true)
		if err != nil {
			return err
		}
		limit = max(1, n)
	}
	room := max(0, limit-unavailable)
	return l.c.deletePods(ctx, l.key, l.d, append(idle, serving[:min(room, len(serving))]...))
}

func (l *daemonLook) available(p *corev1.Pod) bool {
	return podReady(p) && untilAvailable(p, l.d.Spec.MinReadySeconds, l.c.clock.Now()) <= 0
}

func (l *daemonLook) writeStatus(ctx context.Context) error {
	s := *l.d.Status.DeepCopy()
	s.ObservedGeneration = l.d.Generation
	s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberMisscheduled = 0, 0, 0
	s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable = 0, 0, 0
	for _, n := range l.nodes {
		run, _ := l.fits(n)
		pods := l.on[n.Name]
		switch {
		case !run && len(pods) > 0:
			s.NumberMisscheduled++
		case run:
			s.DesiredNumberScheduled++
		}
		if !run || len(pods) == 0 {
			continue
		}
		s.CurrentNumberScheduled++
		oldest := slices.MinFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		if podReady(oldest) {
			s.NumberReady++
			if l.available(oldest) {
				s.NumberAvailable++
			}
		}
		if oldest.Labels[appsv1.ControllerRevisionHashLabelKey] == l.hash {
			s.UpdatedNumberScheduled++
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	if equality.Semantic.DeepEqual(l.d.Status, s) {
		return nil
	}
	cp := l.d.DeepCopy()
	cp.Status = s
	_, err := l.c.client.AppsV1().DaemonSets(l.d.Namespace).UpdateStatus(ctx, cp, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // the newer object wakes this controller again
	}
	return ignoreNotFound(err)
}
