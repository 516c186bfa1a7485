package cluster_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// operations is how many random operations a cluster of real programs goes through;
// `make soak` asks for more.
var operations = flag.Int("operations", 40, "random operations on a real cluster")

// TestRandomOperationsOnARealCluster does what people do to Services, at random and
// now and then several things at once. After each quiet moment every plane and node
// has what the model wants of it, and is what the API server and nft or iptables-save
// say.
func TestRandomOperationsOnARealCluster(t *testing.T) {
	for i, mode := range []string{cluster.NFTables, cluster.IPTables} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // most of the time they wait for kube-proxy's periods
			w := start(t, mode, 3)
			w.deploy("web", 3)
			w.deploy("other", 2)
			w.expose()
			w.after("created and exposed")
			o := &operator{world: w, r: rand.New(rand.NewPCG(uint64(i), 7)), port: 8080, unready: map[string]bool{}}
			done, counts := 0, map[string]int{}
			for done < *operations/2 {
				var what []string
				for range 1 + o.r.IntN(3) {
					name := o.operate()
					what = append(what, name)
					counts[name]++
					done++
				}
				o.quiet(fmt.Sprintf("%s after %d operations", strings.Join(what, ", "), done))
			}
			w.Logf("%s: %d operations: %v", mode, done, counts)
			if gaps := w.history.lost(); len(gaps) > 0 {
				w.Errorf("something was lost: %q", gaps)
			}
		})
	}
}

// operator does random things to the Service web and what is behind it.
type operator struct {
	*world
	r       *rand.Rand
	port    int
	unready map[string]bool // pods that were made unready by hand
}

// operate does one thing and gives its name.
func (o *operator) operate() string {
	o.Helper()
	all := []struct {
		name string
		do   func()
	}{
		{"scale", func() { o.scale(int32(o.r.IntN(8))) }},
		{"scale", func() { o.scale(int32(o.r.IntN(8))) }},
		{"restart", o.restart},
		{"label of a pod", o.relabel},
		{"selector", func() {
			o.patch(fmt.Sprintf(`{"spec":{"selector":{"app":%q}}}`, o.pick("web", "web", "other", "nothing")))
		}},
		{"target port", func() {
			o.port = 8080 + o.r.IntN(3)
			o.patch(fmt.Sprintf(`{"spec":{"ports":[{"port":80,"targetPort":%d}]}}`, o.port))
		}},
		{"another port", func() {
			o.patch(o.pick(`{"spec":{"ports":[{"name":"more","port":81,"targetPort":9090}]}}`, `{"spec":{"ports":[{"port":81,"$patch":"delete"}]}}`))
		}},
		{"internal policy", func() {
			o.patch(fmt.Sprintf(`{"spec":{"internalTrafficPolicy":%q}}`, o.pick("Local", "Cluster")))
		}},
		{"external policy", func() {
			o.patch(fmt.Sprintf(`{"spec":{"externalTrafficPolicy":%q}}`, o.pick("Local", "Cluster")))
		}},
		{"session affinity", func() { o.patch(fmt.Sprintf(`{"spec":{"sessionAffinity":%q}}`, o.pick("ClientIP", "None"))) }},
		{"traffic distribution", func() {
			o.patch(o.pick(`{"spec":{"trafficDistribution":"PreferSameZone"}}`, `{"spec":{"trafficDistribution":"PreferSameNode"}}`, `{"spec":{"trafficDistribution":null}}`))
		}},
		{"publishNotReadyAddresses", func() { o.patch(fmt.Sprintf(`{"spec":{"publishNotReadyAddresses":%v}}`, o.r.IntN(2) == 0)) }},
		{"readiness of a pod", o.turn},
		{"readiness of a pod", o.turn},
		{"pod deleted", o.deletePod},
		{"slice deleted", o.deleteSlice},
		{"Service created again", o.recreate},
		{"zone of a node", func() {
			n := o.cluster.Nodes()[o.r.IntN(3)].Name()
			_, err := o.client.CoreV1().Nodes().Patch(o.Context(), n, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, o.pick("zone-a", "zone-b", "zone-c")), metav1.PatchOptions{})
			o.must(err)
		}},
	}
	op := all[o.r.IntN(len(all))]
	op.do()
	return op.name
}

func (o *operator) pick(of ...string) string { return of[o.r.IntN(len(of))] }

// pod gives a pod that may be touched, or nil.
func (o *operator) pod() *corev1.Pod {
	o.Helper()
	list, err := o.client.CoreV1().Pods("default").List(o.Context(), metav1.ListOptions{})
	o.must(err)
	items := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning })
	if len(items) == 0 {
		return nil
	}
	return &items[o.r.IntN(len(items))]
}

// ended lets a pod go while one looked at it.
func (o *operator) ended(err error) {
	o.Helper()
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		o.must(err)
	}
}

// relabel takes a pod from its ReplicaSet, which makes another one.
func (o *operator) relabel() {
	o.Helper()
	if p := o.pod(); p != nil {
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"app": o.pick("web", "other", "loose")}}})
		_, err := o.client.CoreV1().Pods("default").Patch(o.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		o.ended(err)
	}
}

// turn makes a ready pod unready, or the other way round.
func (o *operator) turn() {
	o.Helper()
	p := o.pod()
	if p == nil {
		return
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != corev1.PodReady {
			continue
		}
		if c.LastTransitionTime = metav1.Now(); c.Status == corev1.ConditionTrue {
			c.Status = corev1.ConditionFalse
		} else {
			c.Status = corev1.ConditionTrue
		}
		_, err := o.client.CoreV1().Pods("default").UpdateStatus(o.Context(), p, metav1.UpdateOptions{})
		if o.ended(err); err == nil {
			o.unready[p.Name] = c.Status != corev1.ConditionTrue
		}
	}
}

func (o *operator) deletePod() {
	o.Helper()
	if p := o.pod(); p != nil {
		o.ended(o.client.CoreV1().Pods("default").Delete(o.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(o.r.IntN(3)))}))
	}
}

func (o *operator) deleteSlice() {
	o.Helper()
	list, err := o.client.DiscoveryV1().EndpointSlices("default").List(o.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	o.must(err)
	if n := len(list.Items); n > 0 {
		o.ended(o.client.DiscoveryV1().EndpointSlices("default").Delete(o.Context(), list.Items[o.r.IntN(n)].Name, metav1.DeleteOptions{}))
	}
}

func (o *operator) recreate() {
	o.Helper()
	o.must(o.client.CoreV1().Services("default").Delete(o.Context(), "web", metav1.DeleteOptions{}))
	o.expose()
}

// quiet waits for a quiet moment and compares everything.
func (o *operator) quiet(what string) {
	o.Helper()
	if o.anyUnready() {
		// Its workload never settles; what the API server has must be known.
		o.until("the model to be as the API server is", o.same)
		s, why, err := o.rt.Wait(o.Context(), live.Convergence{After: time.Now(), Ask: o.watch.Vouch}.Condition())
		if err != nil {
			o.Fatalf("%s: waiting for %s: %v\n%s", what, why, err, describe(s))
		}
	} else {
		o.settled()
	}
	s := o.until(what+": every plane to be as wanted, and as the API server is", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return svc != nil && len(svc.Differences) == 0 && o.same(s)
	})
	o.agree(what)
	o.causal(what, s)
}

func (o *operator) anyUnready() bool {
	o.Helper()
	list, err := o.client.CoreV1().Pods("default").List(o.Context(), metav1.ListOptions{})
	o.must(err)
	return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return o.unready[p.Name] })
}

// same compares the addresses that the slices and the Endpoints of web have in the
// snapshot with what the API server has now.
func (o *operator) same(s *timeline.Snapshot) bool {
	o.Helper()
	svc := s.Service("default", "web")
	if svc == nil {
		return false
	}
	slicesHave, endpointsHave := map[string][]netip.Addr{}, map[string][]netip.Addr{}
	list, err := o.client.DiscoveryV1().EndpointSlices("default").List(o.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	o.must(err)
	for _, sl := range list.Items {
		for _, e := range sl.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				slicesHave["web"] = append(slicesHave["web"], netip.MustParseAddr(e.Addresses[0]))
			}
		}
	}
	e, err := o.client.CoreV1().Endpoints("default").Get(o.Context(), "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		o.must(err)
		for _, sub := range e.Subsets {
			for _, a := range sub.Addresses {
				endpointsHave["web"] = append(endpointsHave["web"], netip.MustParseAddr(a.IP))
			}
		}
	}
	equal := func(p *timeline.Plane, want map[string][]netip.Addr) bool {
		have := map[string][]netip.Addr{}
		for i := range p.Members {
			if m := &p.Members[i]; m.At(s.Now).Have {
				have["web"] = append(have["web"], m.Endpoint.IP)
			}
		}
		tidy(have)
		tidy(want)
		return slices.Equal(have["web"], want["web"])
	}
	return equal(svc.Slices, slicesHave) && equal(svc.Endpoints, endpointsHave)
}
