package kubelet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

// initialized gives the pod init containers with one command each.
func initialized(scripts ...string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		for i, s := range scripts {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
				Name: "init-" + string(rune('a'+i)), Image: "img", Command: []string{"sh", "-c", s}, ImagePullPolicy: corev1.PullIfNotPresent,
			})
		}
	}
}

func (b *bench) initStates(pod string) string {
	var out []string
	for _, s := range b.get(pod).Status.InitContainerStatuses {
		out = append(out, state(s))
	}
	return strings.Join(out, "; ")
}

func TestInitContainersRunOneAfterTheOtherBeforeTheRest(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", running(), initialized("sleep 2", "sleep 3", "something else")))
		b.pass(time.Second)
		if got := b.initStates("a"); got != "running, 0 restarts; PodInitializing, 0 restarts; PodInitializing, 0 restarts" {
			t.Error(got)
		}
		b.pass(3 * time.Second) // the second runs from 2.9 to 5.9 s
		if got := b.initStates("a"); got != "Completed 0, 0 restarts; running, 0 restarts; PodInitializing, 0 restarts" {
			t.Error(got)
		}
		p := b.get("a")
		if i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodInitialized }); p.Status.Conditions[i].Message != "containers with incomplete status: [init-b init-c]" {
			t.Errorf("condition %+v", p.Status.Conditions[i])
		}
		b.wantState("a", "PodInitializing, 0 restarts")
		b.pass(4 * time.Second)
		if got := b.initStates("a"); got != "Completed 0, 0 restarts; Completed 0, 0 restarts; Completed 0, 0 restarts" {
			t.Error(got)
		}
		b.wantState("a", "running, 0 restarts")
		h := b.history("a")
		if got := h[len(h)-1]; !strings.HasSuffix(got, "running 10.244.1.2 ready") {
			t.Error(got)
		}
	})
}

func TestAnInitContainerThatFailsIsTriedAgainWithBackOff(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", running(), initialized("false")))
		b.pass(5 * time.Second)
		if got := b.initStates("a"); got != "CrashLoopBackOff, 1 restarts" {
			t.Error(got)
		}
		if got := b.get("a").Status.Phase; got != corev1.PodPending {
			t.Errorf("phase %s", got)
		}
		b.pass(10 * time.Second)
		if got := b.initStates("a"); got != "CrashLoopBackOff, 2 restarts" {
			t.Error(got)
		}
		b.delete("a", 30)
		b.pass(time.Second)
		if h := b.history("a"); !strings.Contains(h[len(h)-1], "deleted failed") {
			t.Errorf("history %q", h)
		}
	})
}

func TestAFailedInitContainerFailsAPodThatIsNeverRestarted(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", running(), policy(corev1.RestartPolicyNever), initialized("exit 9")))
		b.pass(time.Minute)
		if got := b.initStates("a"); got != "Error 9, 0 restarts" {
			t.Error(got)
		}
		b.wantState("a", "PodInitializing, 0 restarts")
		if got := b.get("a").Status.Phase; got != corev1.PodFailed {
			t.Errorf("phase %s", got)
		}
	})
}
