package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// apiRetry is the wait after a write that the API server did not take.
const apiRetry = time.Second

var (
	// errGone: the object is not there any more; nothing is left to report to.
	errGone = errors.New("the pod's object is gone")
	// errTerminating: the pod was told to stop before its containers ran.
	errTerminating = errors.New("the pod is being deleted")
)

// pod is the life of one pod, in a goroutine of its own: start, serve, end. The
// API server's view of it comes in by deliver.
type pod struct {
	k    *Kubelet
	uid  types.UID
	kick chan struct{} // something was delivered

	mu     sync.Mutex
	latest *corev1.Pod
	gone   bool

	// What follows belongs to run's goroutine.
	admitted    time.Time
	clock       clock.WithTicker
	ips         []netip.Addr // one of each family, the primary one first; nil before it has them
	phase       corev1.PodPhase
	inits       []container
	containers  []container
	conditions  map[corev1.PodConditionType]corev1.PodCondition
	adopted     bool // its containers were started by a kubelet before
	initialized bool // its init containers have succeeded
	reporting   bool // there is more to say than that it was admitted
	decided     bool // phase is final
	ending      ending

	listenAgain time.Time // not before

	// Of serve.
	probing    context.Context
	results    chan probeResult
	startProbe func(*probe)
}

func newPod(k *Kubelet, obj *corev1.Pod) *pod {
	p := &pod{
		k: k, uid: obj.UID, kick: make(chan struct{}, 1), latest: obj, clock: k.o.Clock, admitted: k.o.Clock.Now(),
		phase: corev1.PodPending, conditions: map[corev1.PodConditionType]corev1.PodCondition{},
	}
	why := "ContainerCreating"
	for i := range obj.Spec.InitContainers {
		why = "PodInitializing"
		c := &obj.Spec.InitContainers[i]
		p.inits = append(p.inits, container{spec: c, program: initProgram(c), reason: why})
	}
	for i := range obj.Spec.Containers {
		c := &obj.Spec.Containers[i]
		p.containers = append(p.containers, container{spec: c, program: containerProgram(c), reason: why})
	}
	return p
}

// deliver takes a newer state of the object, or that it is gone, and wakes the
// pod.
func (p *pod) deliver(obj *corev1.Pod, gone bool) {
	p.store(obj, gone)
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *pod) store(obj *corev1.Pod, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Our own write may be back before the watch shows what came before it.
	if n, err := resourceversion.CompareResourceVersion(obj.ResourceVersion, p.latest.ResourceVersion); err != nil || n >= 0 {
		p.latest = obj
	}
	p.gone = p.gone || gone
}

func (p *pod) object() (obj *corev1.Pod, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest, p.gone
}

// state says whether the pod may go on: nil, errTerminating or errGone.
func (p *pod) state() error {
	switch obj, gone := p.object(); {
	case gone:
		return errGone
	case obj.DeletionTimestamp != nil:
		return errTerminating
	}
	return nil
}

// sleep waits, but not beyond the moment the pod is told to stop.
func (p *pod) sleep(ctx context.Context, d time.Duration) error {
	t := p.clock.NewTimer(d)
	defer t.Stop()
	for {
		if err := p.state(); err != nil {
			return err
		}
		if d <= 0 {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C():
			return p.state()
		case <-p.kick:
		}
	}
}

// run is the pod's life; at its end it takes the pod's addresses away, and the
// object of one that was deleted.
// When ctx ends it leaves everything as it is. It reports whether the pod ran to
// its end and its object stays.
func (p *pod) run(ctx context.Context) (ended bool) {
	if obj, _ := p.object(); !finished(obj) {
		err := p.start(ctx)
		if err == nil {
			err = p.serve(ctx)
		}
		if ctx.Err() != nil {
			return false
		}
		p.k.o.Sandbox.Close(string(p.uid))
		p.k.o.Sandbox.Release(string(p.uid))
		if errors.Is(err, errGone) {
			return false
		}
		p.finish()
		if !p.insist(ctx, "write the last status of", p.write) {
			return false
		}
	}
	if obj, _ := p.object(); obj.DeletionTimestamp == nil {
		// It ran to its end; the object stays as the record of that.
		return true
	}
	p.insist(ctx, "delete", p.remove)
	return false
}

// start brings the pod up to where its containers run; serve reports that.
func (p *pod) start(ctx context.Context) error {
	if p.adopt() {
		return nil
	}
	if err := p.state(); err != nil {
		return err
	}
	// Should this first status not get through, the next one carries it.
	if err := p.write(ctx); errors.Is(err, errGone) {
		return err
	}
	if err := p.allocate(ctx); err != nil {
		return err
	}
	if err := p.initialize(ctx); err != nil {
		return err
	}
	for i := range p.containers {
		if err := p.pull(ctx, p.containers[i].spec); err != nil {
			return err
		}
	}
	for i := range p.containers {
		p.event(p.containers[i].spec, corev1.EventTypeNormal, "Created", "Container created")
	}
	if err := p.sleep(ctx, p.k.o.StartDelay.pick(string(p.uid), "start")+p.k.o.Hooks.slower(p.ref(), StartStep)); err != nil {
		return err
	}
	now := p.clock.Now()
	for i := range p.containers {
		c := &p.containers[i]
		p.begin(c, now)
		p.event(c.spec, corev1.EventTypeNormal, "Started", "Container started")
		p.launched(c, p.unnoticed())
	}
	return nil
}

// adopt takes over a pod whose containers run already, started by a kubelet
// before this one on the same sandbox.
func (p *pod) adopt() bool {
	obj, _ := p.object()
	if obj.Status.Phase != corev1.PodRunning || len(obj.Status.ContainerStatuses) != len(p.containers) {
		return false
	}
	ips := p.k.o.Addresses
	if !obj.Spec.HostNetwork {
		var err error
		if ips, err = p.k.o.Sandbox.Allocate(string(p.uid)); err != nil {
			return false
		}
	}
	same := ips[0].String() == obj.Status.PodIP
	for i := range p.containers {
		c, s := &p.containers[i], obj.Status.ContainerStatuses[i]
		if s.Name != c.spec.Name || s.State.Running == nil || !same {
			// It ran, but not here: what runs from now on is a restart.
			c.restarts = s.RestartCount + 1
			same = false
		}
	}
	if !same {
		return false
	}
	p.ips, p.adopted, p.initialized = ips, true, true
	for i := range p.inits {
		p.inits[i].seen, p.inits[i].end = terminated, &corev1.ContainerStateTerminated{Reason: "Completed"}
		if i < len(obj.Status.InitContainerStatuses) {
			s := obj.Status.InitContainerStatuses[i]
			p.inits[i].restarts, p.inits[i].run, p.inits[i].seenRun = s.RestartCount, 1, 1
			if s.State.Terminated != nil {
				p.inits[i].end = s.State.Terminated.DeepCopy()
			}
		}
	}
	for i := range p.containers {
		c, s := &p.containers[i], obj.Status.ContainerStatuses[i]
		c.begin(s.State.Running.StartedAt.Time, s.State.Running.StartedAt.Time)
		c.warmup = p.k.o.AppWarmup.pick(string(p.uid), "warmup")
		c.ready, c.started = s.Ready, s.Started == nil || *s.Started
		c.restarts, c.last = s.RestartCount, s.LastTerminationState.Terminated
		p.launched(c, 0)
	}
	for _, c := range obj.Status.Conditions {
		p.conditions[c.Type] = c
	}
	return true
}

// allocate gets the pod its addresses, and waits as long as the node has none.
func (p *pod) allocate(ctx context.Context) error {
	obj, _ := p.object()
	if obj.Spec.HostNetwork {
		p.ips = p.k.o.Addresses
		return nil
	}
	for wait := time.Second; ; wait = min(2*wait, 10*time.Second) {
		ips, err := p.k.o.Sandbox.Allocate(string(p.uid))
		if err == nil {
			p.ips = ips
			return nil
		}
		p.event(nil, corev1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", err))
		if err := p.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (p *pod) pull(ctx context.Context, c *corev1.Container) error {
	if c.ImagePullPolicy == corev1.PullNever || c.ImagePullPolicy != corev1.PullAlways && p.k.hasImage(c.Image) {
		p.event(c, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", c.Image))
		return nil
	}
	p.event(c, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.Image))
	d := p.k.o.PullDelay.pick(string(p.uid), "pull "+c.Name)
	if err := p.sleep(ctx, d); err != nil {
		return err
	}
	p.k.keepImage(c.Image)
	p.event(c, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v", c.Image, d.Round(time.Millisecond)))
	return nil
}

// remove deletes the object, this very one and without grace: what the API
// server waits for since the deletion was asked for.
func (p *pod) remove(ctx context.Context) error {
	obj, _ := p.object()
	now, uid := int64(0), string(p.uid)
	err := p.k.o.Client.CoreV1().Pods(obj.Namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(uid),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// Gone, or another pod of that name by now.
		return nil
	}
	return err
}

// insist does something until it succeeds. It returns false when the object is
// gone or ctx ended.
func (p *pod) insist(ctx context.Context, what string, f func(context.Context) error) bool {
	for {
		err := f(ctx)
		switch {
		case err == nil:
			return true
		case errors.Is(err, errGone) || ctx.Err() != nil:
			return false
		}
		obj, _ := p.object()
		klog.FromContext(ctx).Error(err, "Will "+what+" the pod again", "pod", obj.Namespace+"/"+obj.Name)
		select {
		case <-ctx.Done():
			return false
		case <-p.clock.After(apiRetry):
		}
	}
}

// event records an Event about the pod, or about one container of it.
func (p *pod) event(c *corev1.Container, kind, reason, msg string) {
	obj, _ := p.object()
	ref := &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion,
	}
	if c != nil {
		ref.FieldPath = fmt.Sprintf("spec.containers{%s}", c.Name)
	}
	p.k.events.Event(ref, kind, reason, msg)
}
