package apiserver

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podSummary is what one line of `kubectl get pods` says of the containers.
type podSummary struct {
	ready, restarts int
	lastRestart     time.Time
	status          string
}

// summarize follows printPod in pkg/printers/internalversion/printers.go.
func summarize(p *corev1.Pod) podSummary {
	s := podSummary{status: string(p.Status.Phase)}
	if p.Status.Reason != "" {
		s.status = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}
	if !s.ofInit(p) {
		s.ofContainers(p)
	}
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == "NodeLost":
			s.status = "Unknown"
		case !terminal(p):
			s.status = "Terminating"
		}
	}
	return s
}

// ofInit says what the init containers are at, and reports whether that is what
// the pod is at.
func (s *podSummary) ofInit(p *corev1.Pod) bool {
	for i, c := range p.Status.InitContainerStatuses {
		s.note(c)
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
			continue
		case c.State.Terminated != nil:
			s.status = "Init:" + terminatedReason(c.State.Terminated)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.status = "Init:" + c.State.Waiting.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

func (s *podSummary) ofContainers(p *corev1.Pod) {
	running, podReady := false, false
	for _, c := range p.Status.Conditions {
		podReady = podReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	// The restarts of the init containers do not count any more.
	s.restarts, s.lastRestart = 0, time.Time{}
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := p.Status.ContainerStatuses[i]
		s.note(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.status = terminatedReason(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.status == "Completed" && running {
		s.status = "NotReady"
		if podReady {
			s.status = "Running"
		}
	}
}

// note counts the restarts of a container.
func (s *podSummary) note(c corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(s.lastRestart) {
		s.lastRestart = t.FinishedAt.Time
	}
}

func terminatedReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
}

func (s podSummary) restartsCell(now time.Time) string {
	if s.restarts == 0 || s.lastRestart.IsZero() {
		return strconv.Itoa(s.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", s.restarts, since(s.lastRestart, now))
}
