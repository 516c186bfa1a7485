package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minStop is what containers are left with after a preStop hook that took all
// of the grace period (minimumGracePeriodInSeconds).
const minStop = 2 * time.Second

// ending is the termination of a pod: it begins when the pod is told to stop,
// and is over when its containers have ended.
type ending struct {
	since  time.Time // zero: not yet
	at     time.Time // when the containers have ended at the latest
	killed bool
	gone   bool // the object was deleted without grace
}

func (e *ending) began() bool { return !e.since.IsZero() }

// update begins the termination when the pod was told to stop, and follows a
// second request with a shorter grace.
func (e *ending) update(p *pod, now time.Time) {
	obj, gone := p.object()
	if !gone && obj.DeletionTimestamp == nil {
		return
	}
	e.gone = gone
	if !e.began() {
		e.since = now
		for i := range p.containers {
			p.toldToStop(&p.containers[i], now)
		}
	}
	hook := time.Duration(0)
	for i := range p.containers {
		if c := &p.containers[i]; c.alive {
			hook = max(hook, preStop(c.spec))
		}
	}
	hook, own := p.k.o.Hooks.stop(refOf(obj), hook, p.stopDelay(obj))
	after, killed := stopTime(hook, own, grace(obj))
	e.at, e.killed = e.since.Add(after), killed
}

// toldToStop: a container that is alive ends with the pod, or before it when its
// program does; no other is started any more.
func (p *pod) toldToStop(c *container, now time.Time) {
	if !c.alive {
		c.see()
		if c.end != nil {
			c.seen = terminated
		}
		c.idle()
		return
	}
	p.event(c.spec, corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
	if c.seen != running {
		p.noticed(c, now)
	}
}

// over reports that the containers have ended, and notes how.
func (e *ending) over(p *pod, now time.Time) bool {
	if !e.began() {
		return false
	}
	alive := false
	for i := range p.containers {
		alive = alive || p.containers[i].alive
	}
	if alive && now.Before(e.at) {
		return false
	}
	for i := range p.containers {
		c := &p.containers[i]
		if c.alive {
			p.exit(c, now, exitCode(e.killed))
		}
		c.see()
		if c.end != nil {
			c.seen = terminated
		}
		c.stopProbes()
		c.idle()
	}
	return true
}

// grace is how long the containers may take: what the deletion says, else the
// pod's own, and one second at least.
func grace(obj *corev1.Pod) time.Duration {
	if s := obj.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(max(1, *s)) * time.Second
	}
	return max(time.Second, podGrace(obj))
}

func podGrace(obj *corev1.Pod) time.Duration {
	if s := obj.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// stopDelay is how long the pod's containers go on after they were told to stop.
func (p *pod) stopDelay(obj *corev1.Pod) time.Duration {
	if d, err := time.ParseDuration(obj.Annotations[StopAfterAnnotation]); err == nil && d >= 0 {
		return d
	}
	return p.k.o.StopDelay.pick(string(p.uid), "stop")
}

// stopTime is when, after the termination began, a container ends, and whether
// it was killed. First the preStop hook runs, within the grace period; then the
// program has its own time, until the grace period is over but no less than
// minStop.
func stopTime(hook, own, grace time.Duration) (after time.Duration, killed bool) {
	hook = min(hook, grace)
	left := grace - hook
	if hook > 0 {
		left = max(left, minStop)
	}
	if own > left {
		return hook + left, true
	}
	return hook + own, false
}

// preStop is how long a container's preStop hook takes: the sleep action, or a
// command that can be followed. Other hooks take no time here.
func preStop(c *corev1.Container) time.Duration {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return 0
	}
	h := c.Lifecycle.PreStop
	if h.Sleep != nil {
		return time.Duration(h.Sleep.Seconds) * time.Second
	}
	if h.Exec == nil {
		return 0
	}
	if pr, ok := script(h.Exec.Command); ok {
		return pr.after
	}
	return 0
}
