package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen is what the kubelet knows of a container, which follows what happens to
// it by up to a second.
type seen int

const (
	waiting seen = iota
	running
	terminated
)

// container is one container: what it does, and what the kubelet knows of it. It
// belongs to the goroutine of its pod.
type container struct {
	spec    *corev1.Container
	program program

	alive     bool                             // its program runs
	listening bool                             // and listens
	began     time.Time                        // when the newest run started
	stamped   time.Time                        // the same, by the node's clock
	warmup    time.Duration                    // until its program listens
	ended     time.Time                        // and ended
	run       int                              // counts the runs
	exited    *corev1.ContainerStateTerminated // how the newest run ended, until the kubelet sees that
	doomed    bool                             // its liveness or startup probe failed: it is being stopped

	seen           seen
	reason         string // of waiting
	message        string
	seenRun        int                              // the newest run the kubelet has seen
	end            *corev1.ContainerStateTerminated // of the newest run that is seen to have ended
	last           *corev1.ContainerStateTerminated // of the one before what is seen
	ready, started bool
	restarts       int32
	backOff        backOff

	// What happens to it next by itself, and when.
	due  time.Time
	next func(now time.Time)

	probes context.CancelFunc // ends those of the newest run; nil when none run
}

// at says what happens next.
func (c *container) at(t time.Time, next func(now time.Time)) { c.due, c.next = t, next }

// idle says that nothing happens by itself.
func (c *container) idle() { c.due, c.next = time.Time{}, nil }

// begin starts the program; stamp is now by the node's clock.
func (c *container) begin(now, stamp time.Time) {
	c.alive, c.listening, c.began, c.stamped, c.doomed = true, false, now, stamp, false
	c.run++
}

// exit notes that the program ended; stamp is now by the node's clock.
func (c *container) exit(now, stamp time.Time, code int32) {
	c.alive, c.listening, c.ended = false, false, now
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.exited = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason,
		StartedAt: metav1.NewTime(c.stamped).Rfc3339Copy(), FinishedAt: metav1.NewTime(stamp).Rfc3339Copy(),
	}
}

// see lets the kubelet catch up with the runs of the container.
func (c *container) see() {
	if c.seenRun != c.run {
		if c.seenRun > 0 {
			c.last = c.end
			c.restarts++
		}
		c.seenRun = c.run
	}
	if c.exited != nil {
		c.end, c.exited = c.exited, nil
	}
}

// stopProbes ends the probes of the newest run.
func (c *container) stopProbes() {
	if c.probes != nil {
		c.probes()
		c.probes = nil
	}
}

// lose notes the end of a container that never ran.
func (c *container) lose(stamp time.Time) {
	c.end = &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", FinishedAt: metav1.NewTime(stamp).Rfc3339Copy(),
		Message: "The container could not be located when the pod was terminated",
	}
}

// status is the container's part of the pod's status.
func (c *container) status(p *pod) corev1.ContainerStatus {
	isRunning := c.seen == running
	started := isRunning && c.started
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, Ready: isRunning && c.ready, Started: &started, RestartCount: c.restarts,
	}
	id := fmt.Sprintf("kconverge://%s/%s/%d", p.uid, c.spec.Name, c.restarts)
	if c.seenRun > 0 && (c.seen != waiting || c.last != nil) {
		s.ContainerID, s.ImageID = id, c.spec.Image
	}
	if c.last != nil {
		s.LastTerminationState.Terminated = c.last.DeepCopy()
	}
	switch {
	case c.seen == terminated && c.end != nil:
		s.State.Terminated = c.end.DeepCopy()
		s.State.Terminated.ContainerID = s.ContainerID
	case isRunning:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.stamped).Rfc3339Copy()}
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
	}
	return s
}
