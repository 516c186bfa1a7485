package lab_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/rulesync"
	"github.com/kconverge/kconverge/engine/timeline"
)

// TestPacketsOfBothFamiliesGoWhereTheRulesSay takes a Service from one family to
// two and back, and asks at each of its addresses from every node who answers.
func TestPacketsOfBothFamiliesGoWhereTheRulesSay(t *testing.T) {
	for _, plane := range []rulesync.Dataplane{rulesync.KubeProxy, rulesync.Flat} {
		t.Run(string(plane), func(t *testing.T) {
			w := startPlane(t, 3, plane)
			w.deploy(3, "200ms")
			w.answered("SingleStack", 3, collect.IPv4)
			w.patchService(`{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
			w.until("endpoints of both families", func(s *timeline.Snapshot) bool { return have(s, 6, 3) })
			w.answered("RequireDualStack", 3, collect.IPv4, collect.IPv6)
			w.scale(5)
			w.until("five pods at two addresses", func(s *timeline.Snapshot) bool { return have(s, 10, 3) })
			s := w.answered("scaled to 5", 5, collect.IPv4, collect.IPv6)
			w.pathsOfBothFamilies(s)
			w.scale(1)
			w.until("one pod at two addresses", func(s *timeline.Snapshot) bool { return have(s, 2, 3) })
			w.answered("scaled to 1", 1, collect.IPv4, collect.IPv6)
			w.patchService(`{"spec":{"ipFamilyPolicy":"SingleStack"}}`)
			w.until("endpoints of one family", func(s *timeline.Snapshot) bool { return have(s, 1, 3) })
			w.answered("SingleStack again", 1, collect.IPv4)

			// A Service whose only, or whose first, family is IPv6.
			w.deleteService()
			w.exposeAs(func(s *corev1.ServiceSpec) {
				s.IPFamilyPolicy, s.IPFamilies = new(corev1.IPFamilyPolicyPreferDualStack), []corev1.IPFamily{corev1.IPv6Protocol}
			})
			w.until("the Service at two addresses", func(s *timeline.Snapshot) bool { return have(s, 2, 3) })
			w.answered("IPv6 first", 1, collect.IPv6, collect.IPv4)
			w.legacy("fd00:10:244:")
			w.deleteService()
			w.exposeAs(func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} })
			w.until("the Service at one address", func(s *timeline.Snapshot) bool { return have(s, 1, 3) })
			w.answered("IPv6 alone", 1, collect.IPv6)
		})
	}
}

// answered waits until all has settled and checks, for each address of the
// Service: nft's own account of the rules, the decoded endpoints and the pods
// that answer there are the same, and are those of the slices of that family.
func (w *world) answered(what string, pods int, families ...collect.Family) *timeline.Snapshot {
	w.Helper()
	s := w.settledOn(what, pods*len(families))
	svc := w.service(s, "web")
	if !slices.Equal(svc.Spec.Families, families) || len(svc.Spec.ClusterIPs) != len(families) {
		w.Fatalf("%s: families %v, addresses %v, want %v", what, svc.Spec.Families, svc.Spec.ClusterIPs, families)
	}
	var uids []string
	for i, family := range families {
		want := map[string]bool{}
		for _, m := range svc.Slices.Members {
			if m.At(s.Now).Have && m.Endpoint.Family == family {
				want[m.Endpoint.UID] = true
			}
		}
		if len(want) != pods {
			w.Errorf("%s: %d endpoints of %s, want %d", what, len(want), family, pods)
		}
		for uid := range want {
			uids = append(uids, uid)
		}
		target := netip.AddrPortFrom(svc.Spec.ClusterIPs[i], 80).String()
		for _, node := range w.lab.Nodes() {
			got := map[string]int{}
			for range 40 * pods {
				got[w.ask(node, target)]++
			}
			for uid := range want {
				if got[uid] == 0 {
					w.Errorf("%s: of %d connections from %s to %s none reached pod %s", what, 40*pods, node.Name(), target, uid)
				}
			}
			for uid, k := range got {
				if !want[uid] {
					w.Errorf("%s: %d connections from %s to %s reached %q", what, k, node.Name(), target, uid)
				}
			}
		}
	}
	slices.Sort(uids)
	if n := len(slices.Compact(uids)); n != pods {
		w.Errorf("%s: %d pods behind %d addresses each, want %d pods", what, n, len(families), pods)
	}
	return s
}

// pathsOfBothFamilies: a pod of a dual-stack Service that became ready has one
// whole path in each family, of one cause and origin.
func (w *world) pathsOfBothFamilies(s *timeline.Snapshot) {
	w.Helper()
	byPod := map[string][]*timeline.Path{}
	for _, p := range w.service(s, "web").Paths {
		if p.Op == timeline.OpAdd && p.Cause == timeline.CausePodReady && !p.Origin.At.IsZero() {
			byPod[p.Endpoint.UID] = append(byPod[p.Endpoint.UID], p)
		}
	}
	whole2 := 0
	for uid, paths := range byPod {
		if len(paths) != 2 {
			continue // before the Service had two families
		}
		whole2++
		for _, p := range paths {
			whole(w.TB, p, 3)
		}
		if paths[0].Endpoint.Family == paths[1].Endpoint.Family || !paths[0].Origin.At.Equal(paths[1].Origin.At) {
			w.Errorf("pod %s: %s at %s and %s at %s", uid, paths[0].Endpoint.Family, paths[0].Origin.At, paths[1].Endpoint.Family, paths[1].Origin.At)
		}
	}
	if whole2 != 2 {
		w.Errorf("%d pods have a path in each family, want the 2 that came", whole2)
	}
}

// legacy checks that the Endpoints hold the primary family only, and that there
// are slices of both.
func (w *world) legacy(prefix string) {
	w.Helper()
	e, err := w.client.CoreV1().Endpoints("default").Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			if !strings.HasPrefix(a.IP, prefix) {
				w.Errorf("Endpoints hold %s", a.IP)
			}
		}
	}
	list, err := w.client.DiscoveryV1().EndpointSlices("default").List(w.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	if err != nil {
		w.Fatal(err)
	}
	var types []string
	for _, s := range list.Items {
		types = append(types, fmt.Sprint(s.AddressType, len(s.Endpoints)))
	}
	slices.Sort(types)
	if !slices.Equal(types, []string{"IPv41", "IPv61"}) {
		w.Errorf("slices %v, want one of each family with one endpoint", types)
	}
}

func TestAHeadlessServiceHasSlicesOfBothFamiliesAndNoRules(t *testing.T) {
	w := start(t, 1)
	w.deploy(2, "200ms")
	w.deleteService()
	w.exposeAs(func(s *corev1.ServiceSpec) {
		s.ClusterIP, s.IPFamilyPolicy = corev1.ClusterIPNone, new(corev1.IPFamilyPolicyRequireDualStack)
	})
	w.until("slices of both families", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		if svc == nil || !svc.Spec.Headless || svc.Slices == nil || svc.State != timeline.Converged {
			return false
		}
		c, ok := svc.Slices.At(s.Now)
		return ok && c.Have == 4
	})
	w.settled()
	if eps, fronts := w.kernel(w.lab.Nodes()[0]); len(eps) != 0 || fronts != 0 {
		t.Errorf("rules of a headless Service: %d frontends, %v", fronts, eps)
	}
}
