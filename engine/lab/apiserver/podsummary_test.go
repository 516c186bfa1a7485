package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTheStatusOfAPodIsThatOfItsInitContainersUntilTheyAreDone(t *testing.T) {
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	loops := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for want, states := range map[string][3]corev1.ContainerState{
		"Init:0/2":              {runs, waits, waits},
		"Init:1/2":              {done, waits, waits},
		"Init:CrashLoopBackOff": {done, loops, waits},
		"Init:Error":            {failed, waits, waits},
		"CrashLoopBackOff":      {done, done, loops},
		"PodInitializing":       {done, done, waits},
		"Running":               {done, done, runs},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 2)}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		if want == "Running" {
			p.Status.Phase = corev1.PodRunning
		}
		for i, s := range states {
			c := corev1.ContainerStatus{State: s, RestartCount: int32(i + 1)}
			if i < 2 {
				p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, c)
			} else {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, c)
			}
		}
		// Counted are the restarts up to the container that the pod is at.
		restarts := 3
		if want == "Init:0/2" || want == "Init:Error" {
			restarts = 1
		}
		if got := summarize(p); got.status != want || got.restarts != restarts {
			t.Errorf("got %q with %d restarts, want %q with %d", got.status, got.restarts, want, restarts)
		}
	}
}
