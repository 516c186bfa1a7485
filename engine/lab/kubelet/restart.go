package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The way of a container from its start to its end and to its next start. Each
// step is called when it is due, and says which one follows.

// launched lets the way begin for a container that has just been started.
func (p *pod) launched(c *container, notice time.Duration) {
	seenAt := c.began.Add(notice)
	if c.program.after <= notice {
		// It ends before the kubelet has looked.
		c.at(c.began.Add(c.program.after), func(now time.Time) { p.exited(c, now, seenAt) })
		return
	}
	c.at(seenAt, func(now time.Time) { p.noticed(c, now) })
}

// noticed: the kubelet sees the container running.
func (p *pod) noticed(c *container, now time.Time) {
	p.reporting = true
	c.see()
	c.seen, c.reason, c.message = running, "", ""
	p.probe(c)
	if c.program.after == forever {
		c.idle()
		return
	}
	at := c.began.Add(c.program.after)
	c.at(at, func(now time.Time) { p.exited(c, now, now.Add(p.noticeDelay(c))) })
}

// exited: the program has ended by itself. The kubelet sees that at seenAt.
func (p *pod) exited(c *container, now, seenAt time.Time) {
	p.exit(c, now, c.program.code)
	p.relisten()
	c.at(seenAt, func(now time.Time) { p.sawEnd(c, now, false) })
}

// sawEnd: the kubelet sees that the container ended, and restarts it where the
// policy says so or it was the kubelet that stopped it.
func (p *pod) sawEnd(c *container, now time.Time, insist bool) {
	p.reporting = true
	c.stopProbes()
	c.see()
	c.seen, c.ready, c.started = terminated, false, false
	if !insist && !p.restarts(c) || p.ending.began() {
		c.idle()
		return
	}
	// The end is reported as such before what follows from it.
	c.at(now, func(now time.Time) { p.restart(c, now) })
}

// restarts applies the pod's restart policy.
func (p *pod) restarts(c *container) bool {
	obj, _ := p.object()
	switch obj.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return c.end.ExitCode != 0
	}
	return true
}

// restart starts the container anew, when its back-off is over.
func (p *pod) restart(c *container, now time.Time) {
	if left := c.ended.Add(c.backOff.wait(c.ended)).Sub(now); left > 0 {
		p.backsOff(c)
		c.at(now.Add(left), func(now time.Time) { p.restart(c, now) })
		return
	}
	c.backOff.next(c.ended, now)
	d := p.k.o.StartDelay.pick(string(p.uid), fmt.Sprintf("start %s %d", c.spec.Name, c.run)) + p.k.o.Hooks.slower(p.ref(), StartStep)
	if c.spec.ImagePullPolicy == corev1.PullAlways {
		d += p.k.o.PullDelay.pick(string(p.uid), fmt.Sprintf("pull %s %d", c.spec.Name, c.run))
	}
	c.at(now.Add(d), func(now time.Time) { p.restarted(c, now) })
}

// backsOff says that the container waits for its next start.
func (p *pod) backsOff(c *container) {
	obj, _ := p.object()
	c.seen, c.last, c.reason = waiting, c.end, "CrashLoopBackOff"
	c.message = fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)", c.backOff.delay, c.spec.Name, obj.Name, obj.Namespace, obj.UID)
	p.event(c.spec, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.spec.Name, obj.Name, obj.Namespace, obj.UID))
}

func (p *pod) restarted(c *container, now time.Time) {
	p.event(c.spec, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", c.spec.Image))
	p.event(c.spec, corev1.EventTypeNormal, "Created", "Container created")
	p.event(c.spec, corev1.EventTypeNormal, "Started", "Container started")
	p.begin(c, now)
	p.launched(c, p.noticeDelay(c))
}

// unhealthy stops a container whose liveness or startup probe failed; it is
// started again whatever it exits with, unless the policy is Never.
func (p *pod) unhealthy(c *container, kind probeKind, now time.Time) {
	if c.doomed || !c.alive || p.ending.began() {
		return
	}
	c.doomed = true
	c.stopProbes()
	obj, _ := p.object()
	verb := "will be restarted"
	insist := obj.Spec.RestartPolicy != corev1.RestartPolicyNever
	if !insist {
		verb = "will not be restarted"
	}
	p.event(c.spec, corev1.EventTypeNormal, "Killing", fmt.Sprintf("Container %s failed %s probe, %s", c.spec.Name, kind, verb))
	g := podGrace(obj)
	if pr := kind.of(c.spec); pr != nil && pr.TerminationGracePeriodSeconds != nil {
		g = time.Duration(*pr.TerminationGracePeriodSeconds) * time.Second
	}
	hook, own := p.k.o.Hooks.stop(refOf(obj), preStop(c.spec), p.stopDelay(obj))
	after, killed := stopTime(hook, own, max(time.Second, g))
	if c.program.after != forever {
		after = min(after, max(0, c.began.Add(c.program.after).Sub(now)))
	}
	c.at(now.Add(after), func(now time.Time) {
		p.exit(c, now, exitCode(killed))
		p.relisten()
		c.at(now, func(now time.Time) { p.sawEnd(c, now, insist) })
	})
}

func exitCode(killed bool) int32 {
	if killed {
		return 137
	}
	return 0
}

// noticeDelay is how long it takes until the kubelet notices what happened to a
// container after its first start.
func (p *pod) noticeDelay(c *container) time.Duration {
	return p.k.o.NoticeDelay.pick(string(p.uid), fmt.Sprintf("notice %s %d", c.spec.Name, c.run))
}
