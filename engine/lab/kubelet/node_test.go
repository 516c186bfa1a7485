package kubelet_test

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kconverge/kconverge/engine/lab/kubelet"
	"github.com/kconverge/kconverge/engine/lab/kubelet/fakenet"
)

// open sets a condition that is not the kubelet's.
func (b *bench) open(pod string, gate corev1.PodConditionType) {
	b.t.Helper()
	p := b.get(pod).DeepCopy()
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue})
	if _, err := b.client.CoreV1().Pods("default").UpdateStatus(b.ctx, p, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

func (b *bench) count(verb, resource, sub string) int {
	n := 0
	for _, a := range b.client.Actions() {
		if a.Matches(verb, resource) && a.GetSubresource() == sub {
			n++
		}
	}
	return n
}

func TestANodeIsRegisteredAsAKubeletDoes(t *testing.T) {
	release, err := exec.Command("uname", "-r").Output()
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, kubelet.Options{Labels: map[string]string{"disk": "fast"}}, func(b *bench) {
		n, err := b.client.CoreV1().Nodes().Get(b.ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range map[string]string{"kubernetes.io/hostname": "node-1", "topology.kubernetes.io/zone": "zone-a", "disk": "fast"} {
			if n.Labels[k] != want {
				t.Errorf("label %s is %q, want %q", k, n.Labels[k], want)
			}
		}
		if n.Spec.PodCIDR != "10.244.1.0/24" || n.Status.NodeInfo.KubeletVersion != "v1.37.2" || n.Status.Allocatable.Pods().Value() != 110 {
			t.Errorf("podCIDR %s, version %s, pods %v", n.Spec.PodCIDR, n.Status.NodeInfo.KubeletVersion, n.Status.Allocatable.Pods())
		}
		if got, want := n.Status.NodeInfo.KernelVersion, strings.TrimSpace(string(release)); got != want {
			t.Errorf("kernel %q, uname -r says %q", got, want)
		}
		if a := n.Status.Addresses; len(a) != 2 || a[0].Type != corev1.NodeInternalIP || a[0].Address != "198.18.0.1" {
			t.Errorf("addresses %v", a)
		}
		ready := n.Status.Conditions[len(n.Status.Conditions)-1]
		if ready.Type != corev1.NodeReady || ready.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v", ready)
		}
	})
}

func TestHeartbeatsAreOneSmallWriteEachTenSeconds(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.client.ClearActions()
		b.pass(10*time.Minute + time.Second)
		if got := b.count("update", "leases", ""); got != 60 {
			t.Errorf("%d lease renewals in ten minutes, want 60", got)
		}
		if got := b.count("update", "nodes", "status"); got != 2 {
			t.Errorf("%d node status writes in ten minutes, want 2", got)
		}
		if got := len(b.client.Actions()); got > 70 {
			t.Errorf("%d requests in ten minutes", got)
		}
	})
}

func TestALeaseThatWasDeletedIsMadeAgain(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		leases := b.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if err := leases.Delete(b.ctx, "node-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.pass(25 * time.Second)
		l, err := leases.Get(b.ctx, "node-1", metav1.GetOptions{})
		if err != nil || time.Since(l.Spec.RenewTime.Time) > 10*time.Second {
			t.Errorf("lease %+v, %v", l, err)
		}
	})
}

func TestWithoutLeasesTheNodeStatusIsTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &bench{t: t, ctx: ctx, client: fake.NewClientset(), net: fakenet.New(podCIDR, 3), begin: time.Now()}
		b.client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(corev1.Resource("leases"), "node-1")
		})
		stop := b.run(kubelet.Options{})
		b.client.ClearActions()
		b.pass(time.Minute + time.Second)
		if got := b.count("update", "nodes", "status"); got != 6 {
			t.Errorf("%d node status writes in a minute, want 6", got)
		}
		stop()
		cancel()
	})
}

func TestRegistrationGoesOnWhileTheServerIsAwayAndStopsWhenItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var refuses atomic.Bool
		client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if refuses.Load() {
				return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "node-1", errDown)
			}
			return true, nil, apierrors.NewInternalError(errDown)
		})
		done := make(chan error, 1)
		go func() {
			done <- kubelet.New(kubelet.Options{Client: client, Node: "node-1", Addresses: []netip.Addr{nodeAddr}, PodCIDRs: []netip.Prefix{podCIDR}, Sandbox: fakenet.New(podCIDR, 3)}).Run(t.Context())
		}()
		<-time.After(10 * time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("gave up with %v", err)
		default:
		}
		refuses.Store(true)
		if err := <-done; err == nil || !strings.Contains(err.Error(), "node-1") {
			t.Errorf("Run returned %v, want an error that names the node", err)
		}
	})
}

func TestOptionsThatCannotWorkAreRefusedByRun(t *testing.T) {
	good := kubelet.Options{Client: fake.NewClientset(), Node: "node-1", Addresses: []netip.Addr{nodeAddr}, PodCIDRs: []netip.Prefix{podCIDR}, Sandbox: fakenet.New(podCIDR, 1)}
	for name, spoil := range map[string]func(o *kubelet.Options){
		"client":  func(o *kubelet.Options) { o.Client = nil },
		"name":    func(o *kubelet.Options) { o.Node = "" },
		"sandbox": func(o *kubelet.Options) { o.Sandbox = nil },
		"address": func(o *kubelet.Options) { o.Addresses = nil },
		"range":   func(o *kubelet.Options) { o.PodCIDRs = nil },
	} {
		o := good
		spoil(&o)
		if err := kubelet.New(o).Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s Run returned %v, want an error that names it", name, err)
		}
	}
}

func TestFiftyNodesShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset()
		shared := kubelet.NewShared(client)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := shared.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		for i := range 50 {
			cidr := netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1))
			k := kubelet.New(kubelet.Options{Client: client, Shared: shared, Node: fmt.Sprintf("node-%d", i+1), Addresses: []netip.Addr{nodeAddr}, PodCIDRs: []netip.Prefix{cidr}, Sandbox: fakenet.New(cidr, 3)})
			wg.Go(func() {
				if err := k.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		pod := boundPod("a", func(p *corev1.Pod) { p.Spec.NodeName = "node-33" })
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		synctest.Wait()
		p, err := client.CoreV1().Pods("default").Get(ctx, "a", metav1.GetOptions{})
		if err != nil || p.Status.PodIP != "10.244.33.2" {
			t.Errorf("podIP %s, %v", p.Status.PodIP, err)
		}
		watches := 0
		for _, a := range client.Actions() {
			if a.Matches("watch", "pods") {
				watches++
			}
		}
		if watches != 1 {
			t.Errorf("%d pod watches", watches)
		}
		cancel()
		wg.Wait()
	})
}

func TestARestartedKubeletTakesItsPodsOver(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a", probed(corev1.Probe{ProbeHandler: httpGet(), PeriodSeconds: 2})))
		b.pass(5 * time.Second)
		before := b.history("a")
		b.stop()
		b.pass(30 * time.Second)
		stop := b.run(kubelet.Options{})
		b.pass(30 * time.Second)
		if after := b.history("a"); len(after) != len(before) {
			t.Errorf("the pod changed: %q", after[len(before):])
		}
		b.net.SetStatus(func(string) int { return 500 })
		b.pass(10 * time.Second)
		if h := b.history("a"); !strings.HasSuffix(h[len(h)-1], "running 10.244.1.2 unready") {
			t.Errorf("it is not probed any more: %q", h)
		}
		b.delete("a", 30)
		b.pass(2 * time.Second)
		if h := b.history("a"); !strings.Contains(h[len(h)-1], "deleted succeeded") {
			t.Errorf("it does not end: %q", h)
		}
		stop()
	})
}

func TestAKubeletThatSharesCanBeRunAgain(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.stop()
		shared := kubelet.NewShared(b.client)
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 2)
		go func() { done <- shared.Run(ctx) }()
		k := kubelet.New(kubelet.Options{Client: b.client, Shared: shared, Node: "node-1", Addresses: []netip.Addr{nodeAddr}, PodCIDRs: []netip.Prefix{podCIDR}, Sandbox: b.net})
		select {
		case <-k.Registered():
			t.Error("it says that it is registered before it runs")
		default:
		}
		for i := range 2 {
			running, stop := context.WithCancel(ctx)
			go func() { done <- k.Run(running) }()
			<-k.Registered()
			b.create(boundPod(fmt.Sprint("pod", i)))
			b.pass(5 * time.Second)
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for i := range 2 {
			if got := b.get(fmt.Sprint("pod", i)); got.Status.Phase != corev1.PodRunning {
				t.Errorf("pod %d is %s", i, got.Status.Phase)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAPodDeletedWhileNoKubeletRanEndsWhenOneComes(t *testing.T) {
	inBubble(t, kubelet.Options{}, func(b *bench) {
		b.create(boundPod("a"))
		b.pass(5 * time.Second)
		b.stop()
		b.delete("a", 30)
		b.pass(5 * time.Second)
		stop := b.run(kubelet.Options{})
		b.pass(2 * time.Second)
		if h := b.history("a"); !strings.Contains(h[len(h)-1], "11s deleted succeeded") {
			t.Errorf("history: %q", h)
		}
		stop()
	})
}

func TestDelaysFollowFromTheUID(t *testing.T) {
	spread := map[string]bool{}
	for range 2 {
		inBubble(t, kubelet.Options{StartDelay: kubelet.Range{Min: 100 * time.Millisecond, Max: 900 * time.Millisecond}}, func(b *bench) {
			for _, n := range []string{"a", "b", "c"} {
				b.create(boundPod(n))
			}
			b.pass(5 * time.Second)
			for _, n := range []string{"a", "b", "c"} {
				h := b.history(n)
				at := strings.Fields(h[len(h)-1])[0]
				spread[n+at] = true
				if d, err := time.ParseDuration(at); err != nil || d < 600*time.Millisecond || d > 1400*time.Millisecond {
					t.Errorf("%s runs after %s", n, at)
				}
			}
		})
	}
	if len(spread) != 3 {
		t.Errorf("the same UIDs took other times in the second run: %v", spread)
	}
}
