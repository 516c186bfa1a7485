// Package oracle asks the real thing, linked in: kube-proxy's own service and
// endpoint trackers and CategorizeEndpoints against engine/desired, and the
// endpoint, EndpointSlice and mirroring controllers against engine/reconcile. It
// is a module of its own because k8s.io/kubernetes needs replacements that the
// program must not have.
package oracle

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"testing"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/proxy"
	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

func ptr[T any](x T) *T { return &x }

func TestRulesAreThoseOfCategorizeEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"ClusterIP", "NodePort", "LoadBalancer"}).Draw(t, "kind")
		itp := rapid.SampledFrom([]string{"Cluster", "Local"}).Draw(t, "itp")
		etp := rapid.SampledFrom([]string{"Cluster", "Local"}).Draw(t, "etp")
		ext := rapid.Bool().Draw(t, "ext")
		lb := kind == "LoadBalancer" && rapid.Bool().Draw(t, "lb")
		dual := rapid.Bool().Draw(t, "dual")
		ks := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		cs := &collect.Service{Kind: kind, InternalPolicy: itp, ExternalPolicy: etp}
		ks.Spec.Type = v1.ServiceType(kind)
		ks.Spec.InternalTrafficPolicy = ptr(v1.ServiceInternalTrafficPolicy(itp))
		ks.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicy(etp)
		ks.Spec.ClusterIP = "10.96.0.1"
		ks.Spec.ClusterIPs = []string{"10.96.0.1"}
		ks.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol}
		cs.ClusterIPs = []netip.Addr{netip.MustParseAddr("10.96.0.1")}
		cs.Families = []collect.Family{collect.IPv4}
		if dual {
			ks.Spec.ClusterIPs = append(ks.Spec.ClusterIPs, "fd00::1")
			ks.Spec.IPFamilies = append(ks.Spec.IPFamilies, v1.IPv6Protocol)
			cs.ClusterIPs = append(cs.ClusterIPs, netip.MustParseAddr("fd00::1"))
			cs.Families = append(cs.Families, collect.IPv6)
		}
		if ext {
			ks.Spec.ExternalIPs = []string{"192.0.2.1", "2001:db8::1"}
			cs.ExternalIPs = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
		}
		if lb {
			ks.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "192.0.2.9"}}
			cs.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("192.0.2.9")}
		}
		for i, n := range []string{"a", "b"} {
			p := v1.ServicePort{Name: n, Port: int32(80 + i), Protocol: v1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}
			c := collect.ServicePort{Name: n, Port: int32(80 + i), Protocol: collect.TCP, Target: 8080}
			if kind != "ClusterIP" && rapid.Bool().Draw(t, "np") {
				p.NodePort, c.NodePort = int32(30080+i), int32(30080+i)
			}
			ks.Spec.Ports = append(ks.Spec.Ports, p)
			cs.Ports = append(cs.Ports, c)
		}
		var ksl []*discovery.EndpointSlice
		var csl []*collect.EndpointSlice
		used := map[string]bool{}
		for i := range rapid.IntRange(0, 3).Draw(t, "slices") {
			fam := rapid.SampledFrom([]collect.Family{collect.IPv4, collect.IPv4, collect.IPv6}).Draw(t, "fam")
			k := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{discovery.LabelServiceName: "web"}}, AddressType: discovery.AddressType(fam)}
			c := &collect.EndpointSlice{Service: "web", Family: fam}
			for _, n := range []string{"a", "b", "zz"} {
				if rapid.IntRange(0, 4).Draw(t, "has port") > 0 {
					num := rapid.SampledFrom([]int32{8080, 9090, 0}).Draw(t, "num")
					k.Ports = append(k.Ports, discovery.EndpointPort{Name: ptr(n), Port: ptr(num), Protocol: ptr(v1.ProtocolTCP)})
					c.Ports = append(c.Ports, collect.SlicePort{Name: n, Port: num, Protocol: collect.TCP})
				}
			}
			hinted := rapid.IntRange(0, 2).Draw(t, "hinted")
			for range rapid.IntRange(0, 4).Draw(t, "eps") {
				x := rapid.IntRange(1, 6).Draw(t, "ip")
				ip := fmt.Sprintf("10.0.0.%d", x)
				if fam == collect.IPv6 {
					ip = fmt.Sprintf("fd01::%d", x)
				}
				ready := rapid.Bool().Draw(t, "ready")
				serving := ready || rapid.Bool().Draw(t, "serving")
				term := rapid.Bool().Draw(t, "term")
				// Of two endpoints at one address that are alike in terminating
				// kube-proxy takes any: there is nothing to compare.
				key := fmt.Sprint(ip, term)
				if used[key] {
					continue
				}
				used[key] = true
				node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")
				e := discovery.Endpoint{Addresses: []string{ip}, NodeName: ptr(node), Conditions: discovery.EndpointConditions{Ready: ptr(ready), Serving: ptr(serving), Terminating: ptr(term)}}
				ce := collect.SliceEndpoint{Address: netip.MustParseAddr(ip), Ready: ready, Serving: serving, Terminating: term, Node: node}
				if hinted > 0 && rapid.IntRange(0, 5).Draw(t, "zh") > 0 {
					z := rapid.SampledFrom([]string{"z1", "z2"}).Draw(t, "z")
					e.Hints = &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: z}}}
					ce.HintZones = []string{z}
					if hinted > 1 && rapid.IntRange(0, 5).Draw(t, "nh") > 0 {
						n := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "n")
						e.Hints.ForNodes = []discovery.ForNode{{Name: n}}
						ce.HintNodes = []string{n}
					}
				}
				k.Endpoints = append(k.Endpoints, e)
				c.Endpoints = append(c.Endpoints, ce)
			}
			ksl, csl = append(ksl, k), append(csl, c)
		}
		var want []string
		for _, fam := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
			sct := proxy.NewServiceChangeTracker(fam, nil, nil)
			sct.Update(nil, ks)
			sm := proxy.ServicePortMap{}
			sm.Update(sct)
			ect := proxy.NewEndpointsChangeTracker(fam, "n1", nil, nil)
			for _, s := range ksl {
				ect.EndpointSliceUpdate(s, false)
			}
			em := proxy.EndpointsMap{}
			em.Update(ect)
			for name, sp := range sm {
				cl, lo, _, _ := proxy.CategorizeEndpoints(em[name], sp, "n1", map[string]string{v1.LabelTopologyZone: "z1"})
				show := func(policy string, eps []proxy.Endpoint) {
					var out []string
					for _, e := range eps {
						out = append(out, e.String())
					}
					sort.Strings(out)
					var fronts []string
					if (policy == "Local") == sp.InternalPolicyLocal() {
						fronts = append(fronts, netip.AddrPortFrom(netip.MustParseAddr(sp.ClusterIP().String()), uint16(sp.Port())).String())
					}
					if (policy == "Local") == sp.ExternalPolicyLocal() {
						for _, ip := range append(slices.Clone(sp.ExternalIPs()), sp.LoadBalancerVIPs()...) {
							fronts = append(fronts, netip.AddrPortFrom(netip.MustParseAddr(ip.String()), uint16(sp.Port())).String())
						}
						if sp.NodePort() != 0 {
							fronts = append(fronts, fmt.Sprint("np:", sp.NodePort()))
						}
					}
					sort.Strings(fronts)
					if len(out)+len(fronts) > 0 {
						want = append(want, fmt.Sprint(fam, name.Port, policy, fronts, out))
					}
				}
				if sp.UsesClusterEndpoints() {
					show("Cluster", cl)
				}
				if sp.UsesLocalEndpoints() {
					show("Local", lo)
				}
			}
		}
		sort.Strings(want)
		var got []string
		for _, p := range desired.Rules(desired.ServiceRef{Namespace: "default", Name: "web", Service: cs}, csl, desired.NodeRef{Name: "n1", Zone: "z1"}) {
			var out, fronts []string
			for _, e := range p.Endpoints {
				out = append(out, e.String())
			}
			for _, f := range p.Frontends {
				if f.Kind == collect.FrontendNodePort {
					fronts = append(fronts, fmt.Sprint("np:", f.Addr.Port()))
				} else {
					fronts = append(fronts, f.Addr.String())
				}
			}
			sort.Strings(out)
			sort.Strings(fronts)
			got = append(got, fmt.Sprint(p.Family, p.Port, string(p.Policy), fronts, out))
		}
		sort.Strings(got)
		if !slices.Equal(got, want) {
			t.Fatalf("\n got %q\nwant %q", got, want)
		}
	})
}
