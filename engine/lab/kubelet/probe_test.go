package kubelet_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

var errDown = errors.New("down for the test")

func TestReadinessProbes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		probe corev1.Probe
		warm  time.Duration
		want  []string // after the first two lines
	}{
		{
			"the first comes when the kubelet notices the container",
			corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2}, 100 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "700ms modified running 10.244.1.2 ready"},
		},
		{
			"tcpSocket",
			corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 2}, 100 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "700ms modified running 10.244.1.2 ready"},
		},
		{
			"a first probe fails when the program does not listen yet",
			corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 1}, 900 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "1.7s modified running 10.244.1.2 ready"},
		},
		{
			"successThreshold",
			corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 1, SuccessThreshold: 3}, 100 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "2.7s modified running 10.244.1.2 ready"},
		},
		{
			"initialDelaySeconds counts from the container's start",
			corev1.Probe{ProbeHandler: tcpSocket(), PeriodSeconds: 2, InitialDelaySeconds: 4}, 100 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "4.7s modified running 10.244.1.2 ready"},
		},
		{
			"the default period is ten seconds",
			corev1.Probe{ProbeHandler: tcpSocket()}, 900 * time.Millisecond,
			[]string{"700ms modified running 10.244.1.2 unready", "10.7s modified running 10.244.1.2 ready"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, kubelet.Options{AppWarmup: kubelet.Exactly(tc.warm)}, func(b *bench) {
				b.create(boundPod("a", probed(tc.probe)))
				b.pass(30 * time.Second)
				b.wantHistory("a", append([]string{"0s added pending", "0s modified pending unready"}, tc.want...)...)
			})
		})
	}
}

func TestAPodBecomesUnreadyAfterFailureThresholdProbes(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		var status atomic.Int32
		status.Store(200)
		b.net.SetStatus(func(string) int { return int(status.Load()) })
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2, FailureThreshold: 3})))
		b.pass(9 * time.Second)
		status.Store(500)
		b.pass(4 * time.Second) // the probes at 10.7 and 12.7 s fail
		status.Store(200)
		b.pass(2 * time.Second) // the one at 14.7 s does not
		status.Store(500)
		b.pass(20 * time.Second) // 16.7, 18.7 and 20.7 s do
		status.Store(200)
		b.pass(10 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 unready",
			"700ms modified running 10.244.1.2 ready",
			"20.7s modified running 10.244.1.2 unready",
			"36.7s modified running 10.244.1.2 ready",
		)
		b.wantReason("a", "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500")
	})
}

func TestAContainerThatBecomesUnreadyIsProbedOnceMoreAtOnce(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 5, FailureThreshold: 1})))
		b.pass(time.Second)
		var asked atomic.Int32
		b.net.SetStatus(func(string) int {
			if asked.Add(1) == 1 {
				return 500
			}
			return 200
		})
		b.pass(9 * time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 unready",
			"700ms modified running 10.244.1.2 ready",
			"5.7s modified running 10.244.1.2 unready",
			"5.7s modified running 10.244.1.2 ready",
		)
		if got := asked.Load(); got != 2 {
			t.Errorf("it was probed %d times", got)
		}
	})
}

func TestARefusedProbeSaysWhatTheKubeletSays(t *testing.T) {
	inBubble(t, kubelet.Options{AppWarmup: kubelet.Exactly(5 * time.Second)}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2})))
		b.pass(3 * time.Second)
		b.wantReason("a", `Unhealthy: Readiness probe failed: Get "http://10.244.1.2:8080/healthz": dial tcp: connection refused`)
	})
}

func TestAProbeThatCannotBeRunLeavesThePodUnreadyAndSaysSo(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", "healthy"}}}, PeriodSeconds: 1})))
		b.pass(time.Minute)
		b.wantHistory("a", "0s added pending", "0s modified pending unready", "700ms modified running 10.244.1.2 unready")
		b.wantReason("a", "ProbeNotSupported: ")
	})
}

func TestAReadinessGateHoldsThePodBack(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}))
		b.pass(5 * time.Second)
		b.open("a", "example.com/gate")
		b.pass(time.Second)
		b.wantHistory("a",
			"0s added pending",
			"0s modified pending unready",
			"700ms modified running 10.244.1.2 unready",
			"5s modified running 10.244.1.2 unready",
			"5s modified running 10.244.1.2 ready",
		)
	})
}
