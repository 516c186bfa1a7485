package kubelet_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

// running gives the pod a command and lets it use an image that is there after
// its first start.
func running(command ...string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Command = command
		p.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	}
}

func policy(r corev1.RestartPolicy) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = r }
}

func script(text string) func(p *corev1.Pod) { return running("sh", "-c", text) }

// state is the first container's state in a few words.
func state(s corev1.ContainerStatus) string {
	out := ""
	switch {
	case s.State.Waiting != nil:
		out = s.State.Waiting.Reason
	case s.State.Running != nil:
		out = "running"
	case s.State.Terminated != nil:
		out = fmt.Sprintf("%s %d", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
	}
	return fmt.Sprintf("%s, %d restarts", out, s.RestartCount)
}

func (b *bench) wantState(pod, want string) {
	b.t.Helper()
	if got := state(b.get(pod).Status.ContainerStatuses[0]); got != want {
		b.t.Errorf("after %v container is %q, want %q", time.Since(b.begin), got, want)
	}
}

func TestAContainerThatCrashesIsRestartedWithBackOffThatDoubles(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", script("sleep 1; exit 3")))
		// Pulled after 300 ms, started after 500, seen after 700, over after
		// 1500 and seen to be after 1700. The first restart is immediate.
		for _, s := range []struct {
			at    time.Duration
			state string
		}{
			{1600 * time.Millisecond, "running, 0 restarts"},
			{1750 * time.Millisecond, "Error 3, 0 restarts"},
			{2200 * time.Millisecond, "running, 1 restarts"}, // since 1900
			{3200 * time.Millisecond, "CrashLoopBackOff, 1 restarts"},
			{12800 * time.Millisecond, "CrashLoopBackOff, 1 restarts"}, // until 2900 + 10 s
			{13400 * time.Millisecond, "running, 2 restarts"},          // since 13.1
			{14400 * time.Millisecond, "CrashLoopBackOff, 2 restarts"},
			{34 * time.Second, "CrashLoopBackOff, 2 restarts"}, // until 14.1 + 20 s
			{34600 * time.Millisecond, "running, 3 restarts"},
		} {
			b.pass(s.at - time.Since(b.begin))
			b.wantState("a", s.state)
		}
		p := b.get("a")
		if p.Status.Phase != corev1.PodRunning {
			t.Errorf("phase %s", p.Status.Phase)
		}
		if last := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
			t.Errorf("last state %+v", last)
		}
		b.wantReason("a", "BackOff: Back-off restarting failed container app in pod a_default(uid-a)")
		b.pass(30 * time.Minute)
		p = b.get("a")
		if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || !strings.HasPrefix(w.Message, "back-off 5m0s restarting") {
			t.Errorf("the back-off must end at five minutes: %+v", w)
		}
	})
}

func TestACrashTakesThePodOutAndItsRestartBringsItBack(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", script("sleep 5; exit 1")))
		b.pass(8 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 ready",
			"5.7s modified running 10.244.1.2 unready",
			"6.1s modified running 10.244.1.2 ready",
		)
	})
}

func TestAPodEndsByItsCommandAndItsRestartPolicy(t *testing.T) {
	for _, tc := range []struct {
		command string
		policy  corev1.RestartPolicy
		phase   corev1.PodPhase
		state   string
	}{
		{"sleep 2", corev1.RestartPolicyNever, corev1.PodSucceeded, "Completed 0, 0 restarts"},
		{"echo hello", corev1.RestartPolicyNever, corev1.PodSucceeded, "Completed 0, 0 restarts"},
		{"sleep 2; exit 7", corev1.RestartPolicyNever, corev1.PodFailed, "Error 7, 0 restarts"},
		{"false && sleep 100", corev1.RestartPolicyNever, corev1.PodFailed, "Error 1, 0 restarts"},
		{"sleep 2", corev1.RestartPolicyOnFailure, corev1.PodSucceeded, "Completed 0, 0 restarts"},
		{"sleep 2; false", corev1.RestartPolicyOnFailure, corev1.PodRunning, "CrashLoopBackOff, 1 restarts"},
		{"sleep 2", corev1.RestartPolicyAlways, corev1.PodRunning, "CrashLoopBackOff, 1 restarts"},
		{"sleep infinity", corev1.RestartPolicyNever, corev1.PodRunning, "running, 0 restarts"},
		{"nginx -g daemon", corev1.RestartPolicyNever, corev1.PodRunning, "running, 0 restarts"},
	} {
		t.Run(tc.command+" "+string(tc.policy), func(t *testing.T) {
			inBubble(t, kubelet.Options{}, func(b *bench) {
				b.create(boundPod("a", script(tc.command), policy(tc.policy)))
				b.pass(10 * time.Second)
				b.wantState("a", tc.state)
				if got := b.get("a").Status.Phase; got != tc.phase {
					t.Errorf("phase %s, want %s", got, tc.phase)
				}
				if ended := tc.phase != corev1.PodRunning; ended != slices.Contains(b.net.Log(), "release uid-a") {
					t.Errorf("its address must be free when it ended, and only then: %v", b.net.Log())
				}
			})
		})
	}
}

func TestAPodThatCompletedIsUnreadyAndItsObjectStays(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", script("sleep 2"), policy(corev1.RestartPolicyNever)))
		b.pass(time.Hour)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 ready",
			"2.7s modified succeeded 10.244.1.2 unready",
		)
		for _, c := range b.get("a").Status.Conditions {
			if c.Type == corev1.PodReady && c.Reason != "PodCompleted" {
				t.Errorf("condition %+v", c)
			}
		}
	})
}

func TestACrashLoopThatIsDeletedEndsAtOnceAsFailed(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", script("exit 1")))
		b.pass(5 * time.Second)
		b.wantState("a", "CrashLoopBackOff, 1 restarts")
		b.delete("a", 30)
		h := b.history("a")
		if got := h[len(h)-1]; got != "5s deleted failed 10.244.1.2 unready terminating" {
			t.Errorf("last: %s", got)
		}
	})
}

func TestAFailedLivenessProbeRestartsTheContainer(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		var sick atomic.Bool
		b.net.SetStatus(func(string) int {
			if sick.Load() {
				return 500
			}
			return 200
		})
		b.create(boundPod("a", running(), func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2, FailureThreshold: 2}
		}))
		b.pass(9 * time.Second)
		b.wantState("a", "running, 0 restarts")
		sick.Store(true)
		b.pass(3500 * time.Millisecond) // the probes at 10 and 12 s fail
		sick.Store(false)
		b.pass(time.Minute)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 ready",
			"13s modified running 10.244.1.2 unready", // stopped within StopDelay
			"13.4s modified running 10.244.1.2 ready",
		)
		b.wantState("a", "running, 1 restarts")
		b.wantReason("a", "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500")
		b.wantReason("a", "Killing: Container app failed liveness probe, will be restarted")
		if got, want := strings.Join(b.net.Log(), ","), "allocate uid-a,listen uid-a,close uid-a,listen uid-a"; got != want {
			t.Errorf("sandbox: %s, want %s", got, want)
		}
	})
}

func TestAStartupProbeHoldsTheOtherProbesBack(t *testing.T) {
	inBubble(t, kubelet.Options{AppWarmup: kubelet.Exactly(7 * time.Second)}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 1}), func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 1, FailureThreshold: 1}
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 5, FailureThreshold: 3}
		}))
		b.pass(9 * time.Second)
		if s := b.get("a").Status.ContainerStatuses[0]; *s.Started || s.Ready || s.RestartCount != 0 {
			t.Errorf("status %+v before the startup probe succeeded", s)
		}
		b.pass(20 * time.Second) // probes at 0.7, 5.7 and 10.7 s; it listens after 7.5 s
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 unready",
			"10.7s modified running 10.244.1.2 unready", // started
			"10.7s modified running 10.244.1.2 ready",
		)
		b.wantState("a", "running, 0 restarts")
	})
}

func TestAStartupProbeThatNeverSucceedsRestartsTheContainer(t *testing.T) {
	inBubble(t, kubelet.Options{AppWarmup: kubelet.Exactly(time.Hour)}, func(b *bench) {
		b.create(boundPod("a", running(), func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 2, FailureThreshold: 2}
		}))
		b.pass(4500 * time.Millisecond)
		b.wantState("a", "running, 1 restarts")
		b.wantReason("a", "Killing: Container app failed startup probe, will be restarted")
	})
}

func TestAnExecProbeOfASimpleCommandIsRun(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		exec := func(command ...string) func(p *corev1.Pod) {
			return probed(corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}, PeriodSeconds: 1})
		}
		b.create(boundPod("good", exec("true")))
		b.create(boundPod("bad", exec("sh", "-c", "exit 4")))
		b.create(boundPod("slow", exec("sleep", "5")))
		b.pass(10 * time.Second)
		for name, want := range map[string]bool{"good": true, "bad": false, "slow": false} {
			if got := b.get(name).Status.ContainerStatuses[0].Ready; got != want {
				t.Errorf("%s ready: %v", name, got)
			}
		}
		b.wantReason("bad", `Unhealthy: Readiness probe failed: command "sh -c exit 4" exited with 4`)
		b.wantReason("slow", `Unhealthy: Readiness probe failed: command timed out`)
	})
}

func TestAPodListensOnThePortsOfAllItsServers(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", running(), func(p *corev1.Pod) {
			second := *p.Spec.Containers[0].DeepCopy()
			second.Name, second.Ports = "side", []corev1.ContainerPort{{Name: "alt", ContainerPort: 9090}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}}
			second.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9090)}}}
			p.Spec.Containers = append(p.Spec.Containers, second)
		}))
		b.pass(2 * time.Second)
		for i, s := range b.get("a").Status.ContainerStatuses {
			if !s.Ready {
				t.Errorf("container %d is not ready: %+v", i, s)
			}
		}
		for port, want := range map[string]bool{"8080": true, "9090": true, "53": false} {
			c, err := b.net.Dial(b.ctx, "tcp", "10.244.1.2:"+port)
			if (err == nil) != want {
				t.Errorf("port %s: %v", port, err)
			}
			if err == nil {
				_ = c.Close()
			}
		}
	})
}

func TestOneContainerThatCrashesLeavesTheOthersRunning(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", running(), func(p *corev1.Pod) {
			bad := *p.Spec.Containers[0].DeepCopy()
			bad.Name, bad.Command = "bad", []string{"false"}
			p.Spec.Containers = append(p.Spec.Containers, bad)
		}))
		b.pass(5 * time.Second)
		s := b.get("a").Status.ContainerStatuses
		if got := state(s[0]) + "; " + state(s[1]); got != "running, 0 restarts; CrashLoopBackOff, 1 restarts" {
			t.Error(got)
		}
		if slices.Contains(b.net.Log(), "close uid-a") {
			t.Errorf("the server was cut off: %v", b.net.Log())
		}
	})
}
