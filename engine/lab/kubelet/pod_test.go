package kubelet_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

func TestAPodWithoutProbeIsReadyAsSoonAsItsContainersRun(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(10 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 ready",
		)
		p := b.get("a")
		for _, typ := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.ContainersReady} {
			if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == typ && c.Status == corev1.ConditionTrue }) {
				t.Errorf("condition %s is not True", typ)
			}
		}
		if s := p.Status.ContainerStatuses; len(s) != 1 || s[0].State.Running == nil || !s[0].Ready || !*s[0].Started || s[0].Image != "img" || s[0].RestartCount != 0 {
			t.Errorf("container status %+v", s)
		}
		if p.Status.HostIP != nodeAddr.String() || p.Status.StartTime == nil {
			t.Errorf("hostIP %q, startTime %v", p.Status.HostIP, p.Status.StartTime)
		}
		for _, r := range []string{"Pulling: ", "Pulled: Successfully pulled image \"img\" in 300ms", "Created: ", "Started: "} {
			b.wantReason("a", r)
		}
	})
}

func TestAProgramListensSomeTimeAfterItsContainerStarted(t *testing.T) {
	inBubble(t, kubelet.Options{AppWarmup: kubelet.Exactly(700 * time.Millisecond)}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(1199 * time.Millisecond) // 300 pull, 200 start, 700 warm-up
		if slices.Contains(b.net.Log(), "listen uid-a") {
			t.Error("it listens before its warm-up is over")
		}
		b.pass(time.Millisecond)
		if !slices.Contains(b.net.Log(), "listen uid-a") {
			t.Error("it does not listen after its warm-up")
		}
	})
}

func TestAnImageThatIsThereIsNotPulledAgain(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		ifAbsent := func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent }
		b.create(boundPod("a", ifAbsent))
		b.pass(time.Second)
		b.create(boundPod("b", ifAbsent))
		b.pass(time.Second)
		b.wantHistory("b", "1s added pending", "1s modified pending unready", "1.4s modified running 10.244.1.3 ready")
		b.wantReason("b", "Pulled: Container image \"img\" already present on machine")
	})
}

func TestTerminationWritesTheTerminalPhaseBeforeTheObjectGoes(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(10 * time.Second)
		b.delete("a", 30)
		if !slices.Contains(b.net.Log(), "listen uid-a") || slices.Contains(b.net.Log(), "close uid-a") {
			t.Errorf("it must go on serving while it terminates: %v", b.net.Log())
		}
		b.pass(10 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 ready",
			"10s modified running 10.244.1.2 ready terminating",
			"11s modified succeeded 10.244.1.2 unready terminating",
			"11s deleted succeeded 10.244.1.2 unready terminating",
		)
		if got, want := strings.Join(b.net.Log(), ","), "allocate uid-a,listen uid-a,close uid-a,release uid-a"; got != want {
			t.Errorf("sandbox: %s, want %s", got, want)
		}
		b.wantReason("a", "Killing: Stopping container app")
	})
}

func TestTerminationKeepsProbingReadiness(t *testing.T) {
	inBubble(t, kubelet.Options{StopDelay: kubelet.Exactly(10 * time.Second)}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2, SuccessThreshold: 1, FailureThreshold: 1, TimeoutSeconds: 1})))
		b.pass(5 * time.Second)
		b.delete("a", 30)
		b.net.SetStatus(func(string) int { return 503 })
		b.pass(20 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 unready",
			"700ms modified running 10.244.1.2 ready",
			"5s modified running 10.244.1.2 ready terminating",
			"6.7s modified running 10.244.1.2 unready terminating",
			"15s modified succeeded 10.244.1.2 unready terminating",
			"15s deleted succeeded 10.244.1.2 unready terminating",
		)
	})
}

func TestTheEndOfAPodFollowsGraceAnnotationAndPreStop(t *testing.T) {
	stopAfter := func(d string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{kubelet.StopAfterAnnotation: d} }
	}
	preStop := func(h corev1.LifecycleHandler) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &h} }
	}
	sleep5 := corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}
	shell5 := corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 5"}}}
	for _, tc := range []struct {
		name   string
		change []func(*corev1.Pod)
		grace  int64
		after  time.Duration
		phase  corev1.PodPhase
		exit   int32
	}{
		{"the default", nil, 30, time.Second, corev1.PodSucceeded, 0},
		{"an annotation takes the place of the option", []func(*corev1.Pod){stopAfter("15s")}, 30, 15 * time.Second, corev1.PodSucceeded, 0},
		{"killed when the grace period is over", []func(*corev1.Pod){stopAfter("15s")}, 10, 10 * time.Second, corev1.PodFailed, 137},
		{"an annotation that is no duration does not count", []func(*corev1.Pod){stopAfter("soon")}, 30, time.Second, corev1.PodSucceeded, 0},
		{"a preStop sleep comes first", []func(*corev1.Pod){preStop(sleep5)}, 30, 6 * time.Second, corev1.PodSucceeded, 0},
		{"a preStop command that sleeps counts as well", []func(*corev1.Pod){preStop(shell5)}, 30, 6 * time.Second, corev1.PodSucceeded, 0},
		{"a preStop sleep beyond the grace period leaves two seconds", []func(*corev1.Pod){preStop(sleep5)}, 3, 4 * time.Second, corev1.PodSucceeded, 0},
		{"and no more", []func(*corev1.Pod){preStop(sleep5), stopAfter("15s")}, 3, 5 * time.Second, corev1.PodFailed, 137},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, kubelet.Options{}, func(b *bench) {
				b.create(boundPod("a", tc.change...))
				b.pass(10 * time.Second)
				b.delete("a", tc.grace)
				var last atomic.Pointer[corev1.Pod]
				b.reactTo("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					obj, err := b.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "default", "a")
					if err != nil {
						return true, nil, err
					}
					last.Store(obj.(*corev1.Pod).DeepCopy())
					return false, nil, nil
				})
				b.pass(tc.after - time.Millisecond)
				if got := b.get("a"); got.Status.Phase != corev1.PodRunning {
					t.Errorf("%s before the end", got.Status.Phase)
				}
				b.pass(time.Millisecond)
				end := last.Load()
				if end == nil {
					t.Fatalf("it has not ended after %v: %v", tc.after, b.history("a"))
				}
				exit := end.Status.ContainerStatuses[0].State.Terminated
				if end.Status.Phase != tc.phase || exit == nil || exit.ExitCode != tc.exit {
					t.Errorf("%s with exit %+v, want %s with %d", end.Status.Phase, exit, tc.phase, tc.exit)
				}
			})
		})
	}
}

func TestASecondDeletionWithLessGraceCutsTheFirstShort(t *testing.T) {
	inBubble(t, kubelet.Options{StopDelay: kubelet.Exactly(20 * time.Second)}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(10 * time.Second)
		b.delete("a", 30)
		b.pass(2 * time.Second)
		b.delete("a", 5)
		b.pass(3*time.Second - time.Millisecond)
		if got := b.get("a").Status.Phase; got != corev1.PodRunning {
			t.Errorf("phase %s before the shorter grace is over", got)
		}
		b.pass(time.Millisecond)
		h := b.history("a")
		if last := h[len(h)-1]; last != "15s deleted failed 10.244.1.2 unready terminating" {
			t.Errorf("last: %s", last)
		}
	})
}

func TestAPodDeletedBeforeItRanCountsAsFailed(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(100 * time.Millisecond)
		b.delete("a", 30)
		b.pass(time.Second)
		h := b.history("a")
		if len(h) != 5 || h[3] != "100ms modified failed 10.244.1.2 unready terminating" || !strings.Contains(h[4], "deleted") {
			t.Errorf("history: %q", h)
		}
		if got := b.net.Log(); !slices.Equal(got, []string{"allocate uid-a", "release uid-a"}) {
			t.Errorf("sandbox: %v", got)
		}
	})
}

func TestAPodDeletedBeforeTheKubeletNoticedItsStartEndsAsARunningOne(t *testing.T) {
	inBubble(t, kubelet.Options{NoticeDelay: kubelet.Exactly(10 * time.Second)}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(time.Second)
		b.delete("a", 30)
		b.pass(10 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"1s modified pending unready terminating",
			"1s modified running 10.244.1.2 ready terminating",
			"2s modified succeeded 10.244.1.2 unready terminating",
			"2s deleted succeeded 10.244.1.2 unready terminating",
		)
	})
}

func TestAPodDeletedByForceIsStoppedAllTheSame(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(10 * time.Second)
		if err := b.client.CoreV1().Pods("default").Delete(b.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Second - time.Millisecond)
		if slices.Contains(b.net.Log(), "close uid-a") {
			t.Error("it was cut off before its program had stopped")
		}
		b.pass(time.Millisecond)
		if got := b.net.Log(); !slices.Equal(got, []string{"allocate uid-a", "listen uid-a", "close uid-a", "release uid-a"}) {
			t.Errorf("sandbox: %v", got)
		}
	})
}

func TestAnAddressIsFreeOnlyAfterTheContainersEnded(t *testing.T) {
	inBubble(t, kubelet.Options{StopDelay: kubelet.Exactly(5 * time.Second)}, func(b *bench) {
		// The range has three addresses.
		for _, n := range []string{"a", "b", "c", "d"} {
			b.create(boundPod(n))
			b.pass(time.Second)
		}
		b.wantReason("d", "FailedCreatePodSandBox: ")
		b.delete("b", 30)
		b.pass(4 * time.Second)
		if ip := b.get("d").Status.PodIP; ip != "" {
			t.Errorf("d got %s while b still runs", ip)
		}
		b.pass(20 * time.Second)
		if ip := b.get("d").Status.PodIP; ip != "10.244.1.3" {
			t.Errorf("d has %q, want b's address", ip)
		}
	})
}

func TestAHostNetworkPodHasTheNodesAddress(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", func(p *corev1.Pod) { p.Spec.HostNetwork = true }))
		b.pass(time.Second)
		if got := b.get("a").Status.PodIP; got != nodeAddr.String() {
			t.Errorf("podIP %s", got)
		}
		if got := b.net.Log(); !slices.Equal(got, []string{"listen uid-a"}) {
			t.Errorf("sandbox: %v", got)
		}
	})
}

func TestADualStackNodeGivesItselfAndItsPodsAnAddressOfEachFamily(t *testing.T) {
	node6, range6 := netip.MustParseAddr("2001:2::1"), netip.MustParsePrefix("fd00:10:244:1::/64")
	inBubble(t, kubelet.Options{Addresses: []netip.Addr{node6}, PodCIDRs: []netip.Prefix{range6}}, func(b *bench) {
		n, err := b.client.CoreV1().Nodes().Get(b.ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(n.Spec.PodCIDR, n.Spec.PodCIDRs); got != "10.244.1.0/24[10.244.1.0/24 fd00:10:244:1::/64]" {
			t.Errorf("pod ranges %s", got)
		}
		if got := fmt.Sprint(n.Status.Addresses); got != "[{InternalIP "+nodeAddr.String()+"} {InternalIP 2001:2::1} {Hostname node-1}]" {
			t.Errorf("addresses %s", got)
		}
		b.create(boundPod("a"))
		b.create(boundPod("host", func(p *corev1.Pod) { p.Spec.HostNetwork = true }))
		b.pass(time.Minute)
		for name, want := range map[string]string{
			"a":    "10.244.1.2 [{10.244.1.2} {fd00:10:244:1::2}]",
			"host": nodeAddr.String() + " [{" + nodeAddr.String() + "} {2001:2::1}]",
		} {
			s := b.get(name).Status
			if got := fmt.Sprint(s.PodIP, " ", s.PodIPs); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if got := fmt.Sprint(s.HostIP, " ", s.HostIPs); got != nodeAddr.String()+" [{"+nodeAddr.String()+"} {2001:2::1}]" {
				t.Errorf("%s: host %s", name, got)
			}
		}
		for _, ip := range []string{"10.244.1.2", "fd00:10:244:1::2", "2001:2::1"} {
			c, err := b.net.Dial(b.ctx, "tcp", net.JoinHostPort(ip, "8080"))
			if err != nil {
				t.Errorf("%s: %v", ip, err)
				continue
			}
			c.Close()
		}
	})
}

func TestPodsOfOtherNodesAndPodsThatFinishedAreLeftAlone(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }))
		b.create(boundPod("unbound", func(p *corev1.Pod) { p.Spec.NodeName = "" }))
		b.create(boundPod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		b.pass(time.Minute)
		b.wantHistory("elsewhere", "0s added pending")
		b.wantHistory("unbound", "0s added pending")
		b.wantHistory("done", "0s added succeeded")
		b.delete("done", 30)
		b.pass(time.Second)
		if h := b.history("done"); !strings.Contains(h[len(h)-1], "deleted") {
			t.Errorf("a finished pod that is deleted must go: %q", h)
		}
	})
}

func TestAStatusWriteThatConflictsIsPutOntoTheFreshObject(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		var conflicts atomic.Int32
		conflicts.Store(2)
		b.reactTo("update", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "status" || conflicts.Load() == 0 {
				return false, nil, nil
			}
			conflicts.Add(-1)
			return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "a", nil)
		})
		b.create(boundPod("a"))
		b.pass(time.Second)
		b.wantHistory("a", "0s added pending", "0s modified pending unready", "700ms modified running 10.244.1.2 ready")
		if conflicts.Load() != 0 {
			t.Error("the conflicts were not met")
		}
	})
}

func TestAStatusWriteThatFailsIsTriedAgain(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		var up atomic.Bool
		b.reactTo("update", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "status" || up.Load() {
				return false, nil, nil
			}
			return true, nil, apierrors.NewInternalError(errDown)
		})
		b.create(boundPod("a"))
		b.pass(5 * time.Second)
		up.Store(true)
		b.pass(2 * time.Second)
		h := b.history("a")
		if len(h) != 2 || !strings.HasSuffix(h[1], "modified running 10.244.1.2 ready") {
			t.Fatalf("history: %q", h)
		}
		// The transition keeps the moment at which it happened.
		for _, c := range b.get("a").Status.Conditions {
			if since := c.LastTransitionTime.Sub(b.begin); since > time.Second {
				t.Errorf("%s is dated %v after the start", c.Type, since)
			}
		}
	})
}
