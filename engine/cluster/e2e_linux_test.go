package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/timeline"
)

// instants is how many random instants of each mode are compared during churn;
// `make soak` asks for more.
var instants = flag.Int("instants", 15, "random instants to compare with nft or iptables-save during churn")

// TestTheModelEqualsEveryNodeOfARealCluster takes a Deployment and its Service on
// three nodes with real kube-proxies through what happens to Services.
func TestTheModelEqualsEveryNodeOfARealCluster(t *testing.T) {
	for _, mode := range []string{cluster.NFTables, cluster.IPTables} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // most of the time they wait for kube-proxy's periods
			tour(start(t, mode, 3))
		})
	}
	// Two kinds of kube-proxy beside each other, in a shorter form: one that writes to
	// the kernel's older tables, and one of an older version.
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		shortTour(start(t, cluster.IPTablesLegacy+","+cluster.NFTables134, 2))
	})
}

func shortTour(w *world) {
	w.deploy("web", 2)
	w.expose()
	w.after("created and exposed")
	for _, n := range []int32{5, 0, 2} {
		w.scale(n)
		w.after(fmt.Sprintf("scaled to %d", n))
	}
	w.balanced()
	w.patch(`{"spec":{"internalTrafficPolicy":"Local","externalTrafficPolicy":"Local"}}`)
	w.after("both policies Local")
	w.patch(`{"spec":{"internalTrafficPolicy":"Cluster","externalTrafficPolicy":"Cluster"}}`)
	// Far enough apart for most looks at legacy iptables to find nothing new.
	w.churned(max(*instants/2, 6), 4*time.Second)
	if gaps := w.history.lost(); len(gaps) > 0 {
		w.Errorf("something was lost: %q", gaps)
	}
}

// balanced makes the Service one of a load balancer, and changes from where that may
// be reached.
func (w *world) balanced() {
	w.Helper()
	w.patch(`{"spec":{"type":"LoadBalancer","externalIPs":["192.0.2.9","2001:db8::9"],"loadBalancerSourceRanges":["203.0.113.0/24","198.51.100.0/22","2001:db8:8::/45"]}}`)
	_, err := w.client.CoreV1().Services("default").Patch(w.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"},{"ip":"2001:db8::10"}]}}}`), metav1.PatchOptions{}, "status")
	w.must(err)
	w.after("behind a load balancer with sources")
	w.patch(`{"spec":{"loadBalancerSourceRanges":["203.0.113.128/25","198.18.0.0/16"]}}`)
	w.after("other sources")
	for _, n := range w.cluster.Nodes() {
		r := w.read(n)
		if !slices.ContainsFunc(r.ports, func(p collect.RulePort) bool { return len(p.Sources) > 0 }) {
			w.Errorf("%s: no sources in %q", n.Name(), lines(r.ports))
		}
	}
	w.patch(`{"spec":{"loadBalancerSourceRanges":null,"sessionAffinity":"ClientIP"}}`)
	w.after("from anywhere, with session affinity")
	w.patch(`{"spec":{"sessionAffinity":"None"}}`)
}

func tour(w *world) {
	w.deploy("web", 2)
	w.deploy("other", 1)
	w.expose()
	w.after("created and exposed")
	for _, n := range []int32{0, 10, 3, 0, 3} {
		w.scale(n)
		s := w.after(fmt.Sprintf("scaled to %d", n))
		for _, node := range w.cluster.Nodes() {
			if p := s.Service("default", "web").Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: node.Name()}); p.Changes[len(p.Changes)-1].Have != int(n)*w.families {
				w.Errorf("scaled to %d: the lane of %s ends with %+v", n, node.Name(), p.Changes[len(p.Changes)-1])
			}
		}
	}
	w.restart()
	w.after("restarted")
	w.patch(`{"spec":{"selector":{"app":"other"}}}`)
	w.after("selector changed")
	w.patch(`{"spec":{"selector":{"app":"web"}}}`)
	w.after("selector changed back")
	w.patch(`{"spec":{"ports":[{"port":80,"targetPort":9090}]}}`)
	w.after("target port changed")
	w.patch(`{"spec":{"internalTrafficPolicy":"Local"}}`)
	w.after("internal policy Local")
	w.patch(`{"spec":{"internalTrafficPolicy":"Cluster","externalTrafficPolicy":"Local"}}`)
	w.after("external policy Local")
	w.balanced()

	w.must(w.client.CoreV1().Services("default").Delete(w.Context(), "web", metav1.DeleteOptions{}))
	w.until("the Service to be gone from every node", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return svc != nil && !svc.Deleted.IsZero() && !slices.ContainsFunc(svc.Rules.All(), func(p *timeline.Plane) bool { return p.Changes[len(p.Changes)-1].Have > 0 })
	})
	w.agree("Service deleted")
	w.expose()
	w.after("Service created again")

	w.killed()
	w.stopped()
	w.churned(*instants, 0)
	if gaps := w.history.lost(); len(gaps) > 0 {
		w.Errorf("something was lost: %q", gaps)
	}
}

// killed kills a kube-proxy: its node alone is behind, until another one runs.
func (w *world) killed() {
	node := w.cluster.Nodes()[1].Name()
	p := w.cluster.Proxy(node)
	w.must(syscall.Kill(p.PID(), syscall.SIGKILL))
	<-p.Done()
	w.scale(6)
	w.behind(node, timeline.Converging, timeline.Stalled)
	w.must(w.cluster.StartProxy(node))
	w.after("a killed kube-proxy started again")
}

// stopped stops a kube-proxy for longer than the model's budget: its node alone
// is named as missing and late, and later its arrivals are as late as they were.
func (w *world) stopped() {
	node := w.cluster.Nodes()[2].Name()
	pid := w.cluster.Proxy(node).PID()
	w.must(syscall.Kill(pid, syscall.SIGSTOP))
	w.scale(8)
	s := w.behind(node, timeline.Stalled)
	open := map[string]bool{}
	stalled := s.Now
	for _, p := range s.Service("default", "web").Paths {
		if p.Status == timeline.StatusOpen && p.Op == timeline.OpAdd && slices.Equal(p.Missing(), []string{node}) {
			open[p.ID] = true
		}
	}
	if len(open) != 2*w.families {
		w.Errorf("%d paths lack %s alone, want those of 2 pods in %d families", len(open), node, w.families)
	}
	w.must(syscall.Kill(pid, syscall.SIGCONT))
	s = w.after("a stopped kube-proxy went on")
	var longest time.Duration
	for id := range open {
		p := s.Service("default", "web").Path(id)
		if p == nil || p.Status != timeline.StatusArrived || len(p.Rules) != 3 {
			w.Errorf("path %s is %+v", id, p)
			continue
		}
		for _, h := range p.Rules {
			if late := h.Plane.Node == node; late != h.At.After(stalled) {
				w.Errorf("path %s: %s arrived after %s; %s was the stopped one", id, h.Plane.Node, h.Lag, node)
			} else if late {
				longest = max(longest, h.Lag)
			}
		}
	}
	if longest < 10*time.Second {
		w.Errorf("%s was called late, and its lag is %s: the budget is 10 s", node, longest)
	}
}

// behind waits until the new endpoints have arrived everywhere but on one node,
// which the model names, and the Service is in one of the states.
func (w *world) behind(node string, states ...timeline.State) *timeline.Snapshot {
	w.Helper()
	return w.until(node+" alone to be missing", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		if svc == nil || !slices.Contains(states, svc.State) || len(svc.Differences) == 0 {
			return false
		}
		for _, d := range svc.Differences {
			if d.Plane != (timeline.PlaneID{Kind: timeline.PlaneRules, Node: node}) || d.Kind != "missing" {
				return false
			}
		}
		return true
	})
}

// churned scales at random, pause and up to 1.7 s apart, and reads nodes at random
// instants meanwhile.
func (w *world) churned(count int, pause time.Duration) {
	const seed = 1
	ctx, stop := context.WithCancel(w.Context())
	over := make(chan error, 1)
	go func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for ctx.Err() == nil {
			n := int32(1 + r.IntN(9))
			if _, err := w.client.AppsV1().Deployments("default").Patch(ctx, "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
				over <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause + time.Duration(200+r.IntN(1500))*time.Millisecond):
			}
		}
		over <- nil
	}()
	type taken struct {
		reading
		place int
	}
	var all []taken
	states, inDetail := map[string]bool{}, 0
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range count {
		<-time.After(time.Duration(r.IntN(1000)) * time.Millisecond) // a random instant
		got := w.read(w.cluster.Nodes()[i%len(w.cluster.Nodes())])
		place := w.known(fmt.Sprintf("instant %d of the churn", i), got)
		if place < 0 {
			continue // between two looks
		}
		all = append(all, taken{got, place})
		states[fmt.Sprint(got.node, place)] = true
		st, _ := w.history.state(got.node, place)
		s := w.until("the model to know of it", func(s *timeline.Snapshot) bool {
			if w.legacy(got.node) { // without generations: it has surely applied it
				return s.Now.After(st.at.Add(time.Second))
			}
			return slices.ContainsFunc(s.Nodes, func(n timeline.Node) bool { return n.Name == got.node && n.Generation >= st.gen })
		})
		if w.detailed(fmt.Sprintf("instant %d of the churn", i), s, got, place) {
			inDetail++
		}
	}
	stop()
	w.must(<-over)
	s := w.after("after the churn")
	for i, got := range all {
		w.modelled(fmt.Sprintf("instant %d of the churn", i), s, got.reading, got.place)
	}
	w.Logf("%s: %d random instants, %d of them in %d different states of nodes, %d compared with the model in every detail, %d between two looks at legacy iptables as neither",
		w.mode, count, len(all), len(states), inDetail, w.vague)
	least := count / 4
	if pause > 0 {
		least = count / 8
	}
	if len(states) < least || inDetail < count/4 {
		w.Errorf("%d instants met %d states, of which %d were compared: that was no churn", count, len(states), inDetail)
	}
}

// after settles and compares everything.
func (w *world) after(what string) *timeline.Snapshot {
	w.Helper()
	began := time.Now()
	s := w.settled()
	w.agree(what)
	n := w.causal(what, s)
	w.Logf("%s: %s: settled and compared in %s, %d arrivals in their generations", w.mode, what, time.Since(began).Round(time.Millisecond), n)
	return s
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) deploy(name string, n int32) {
	w.Helper()
	labels := map[string]string{"app": name}
	_, err := w.client.AppsV1().Deployments("default").Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) expose() {
	w.Helper()
	_, err := w.client.CoreV1().Services("default").Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "web"},
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
			},
		},
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) scale(n int32) {
	w.Helper()
	_, err := w.client.AppsV1().Deployments("default").Patch(w.Context(), "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
	w.must(err)
}

func (w *world) restart() {
	w.Helper()
	at := strings.ReplaceAll(time.Now().Format(time.RFC3339), ":", ".")
	_, err := w.client.AppsV1().Deployments("default").Patch(w.Context(), "web", types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, at), metav1.PatchOptions{})
	w.must(err)
}

func (w *world) patch(text string) {
	w.Helper()
	_, err := w.client.CoreV1().Services("default").Patch(w.Context(), "web", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
	w.must(err)
}
