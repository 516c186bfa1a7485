package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodRef names a pod for those who change what happens to it.
type PodRef struct{ Namespace, Name string }

// Step is a step of a pod's start that may take longer.
type Step string

const (
	// StartStep lasts until the containers run, ListenStep from then until their
	// programs listen.
	StartStep  Step = "start"
	ListenStep Step = "listen"
)

// Hooks may change how a kubelet treats its pods. They are meant for faults, are asked
// each time anew and by many goroutines at once; a nil one changes nothing.
type Hooks struct {
	// Slower is how much longer a step takes for the pod. It is asked when the step
	// begins.
	Slower func(PodRef, Step) time.Duration
	// ProbePeriod gives a probe's period in the place of the pod's own.
	ProbePeriod func(p PodRef, own time.Duration) time.Duration
	// ProbeFails gives why a readiness probe fails that has not been run; nil lets it
	// run.
	ProbeFails func(PodRef) error
	// Stop gives how long the preStop hook and then the program take, in the place of
	// the pod's own.
	Stop func(p PodRef, hook, own time.Duration) (time.Duration, time.Duration)
	// ClockOff is how far the node's clock is ahead, in what the kubelet writes.
	ClockOff func() time.Duration
}

func (h *Hooks) slower(p PodRef, s Step) time.Duration {
	if h.Slower == nil {
		return 0
	}
	return h.Slower(p, s)
}

func (h *Hooks) probePeriod(p PodRef, own time.Duration) time.Duration {
	if h.ProbePeriod == nil {
		return own
	}
	return h.ProbePeriod(p, own)
}

func (h *Hooks) probeFails(p PodRef) error {
	if h.ProbeFails == nil {
		return nil
	}
	return h.ProbeFails(p)
}

func (h *Hooks) stop(p PodRef, hook, own time.Duration) (time.Duration, time.Duration) {
	if h.Stop == nil {
		return hook, own
	}
	return h.Stop(p, hook, own)
}

// stamp is a moment as the node's clock shows it.
func (h *Hooks) stamp(t time.Time) time.Time {
	if h.ClockOff == nil {
		return t
	}
	return t.Add(h.ClockOff())
}

func refOf(obj *corev1.Pod) PodRef { return PodRef{obj.Namespace, obj.Name} }

// ref names the pod.
func (p *pod) ref() PodRef {
	obj, _ := p.object()
	return refOf(obj)
}

// begin starts the newest run of a container.
func (p *pod) begin(c *container, now time.Time) {
	c.begin(now, p.k.o.Hooks.stamp(now))
	c.warmup = p.k.o.AppWarmup.pick(string(p.uid), "warmup") + p.k.o.Hooks.slower(p.ref(), ListenStep)
}

// exit notes that a container's program ended.
func (p *pod) exit(c *container, now time.Time, code int32) {
	c.exit(now, p.k.o.Hooks.stamp(now), code)
}
