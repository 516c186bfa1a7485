package timeline

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// crowd is a made-up cluster of several nodes and Services that takes random turns.
// Unlike world it cares for what sets nodes apart: when they come, in which order with
// the lists, what rules they come with, dumps in between, gaps, other ways to route.
type crowd struct {
	r     *rand.Rand
	now   time.Time
	rv    uint64
	ev    []collect.Event
	nodes map[string]*collect.Node
	gens  map[string]uint32
	svcs  map[string]*collect.Service
	sl    map[string]*collect.EndpointSlice
	pods  map[string]*collect.Pod
	uids  map[string]string
	born  int
	lay   map[string]string
	ruled map[string]bool
	had   map[string]map[collect.RulePortKey]collect.RulePort
}

// newCrowd plays a crowd to its end. long lets much time pass now and then.
func newCrowd(seed uint64, long bool) []collect.Event {
	c := &crowd{
		r: rand.New(rand.NewPCG(seed, 7)), now: epoch, nodes: map[string]*collect.Node{}, gens: map[string]uint32{}, svcs: map[string]*collect.Service{},
		sl: map[string]*collect.EndpointSlice{}, pods: map[string]*collect.Pod{}, uids: map[string]string{}, lay: map[string]string{}, ruled: map[string]bool{},
		had: map[string]map[collect.RulePortKey]collect.RulePort{},
	}
	c.start()
	for range 10 + c.r.IntN(60) {
		c.turn(long)
	}
	c.now = c.now.Add(time.Second)
	return append(c.ev, advance(c.now))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var crowdNodes = []string{"n1", "n2", "n3", "n4", "n5", "n6"}
var crowdServices = []string{"a", "b", "c", "d"}

// p is true once in n times.
func (c *crowd) p(n int) bool { return c.r.IntN(n) == 0 }
func (c *crowd) kube(src collect.SourceID, kind, name, uid string, op collect.Op, p collect.Payload) collect.Event {
	c.rv++
	return collect.Event{At: c.now, Source: src, Op: op, UID: uid, ResourceVersion: c.rv, Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p}
}
func (c *crowd) tick(max int) { c.now = c.now.Add(time.Duration(1+c.r.IntN(max)) * time.Millisecond) }
func (c *crowd) newPod() (string, *collect.Pod) {
	c.born++
	n := fmt.Sprintf("p%d", c.born)
	c.uids[n] = fmt.Sprintf("u%d", c.born)
	p := &collect.Pod{Labels: map[string]string{"app": crowdServices[c.r.IntN(len(crowdServices))]}, Node: crowdNodes[c.r.IntN(len(crowdNodes))], Phase: "Running",
		IPs: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", 1+c.r.IntN(12)))}}
	if !c.p(4) {
		p.Ready = &collect.Condition{Status: true}
	}
	c.pods[n] = p
	return n, p
}
func (c *crowd) newSvc(name string) *collect.Service {
	i := slices.Index(crowdServices, name)
	s := &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": name}, Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}},
		ClusterIPs: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", i+1))}}
	if c.p(5) {
		s.InternalPolicy = "Local"
	}
	if c.p(8) {
		s.Headless, s.ClusterIPs = true, nil
	}
	if c.p(8) {
		s.Selector = nil
	}
	if c.p(6) {
		s.Kind, s.LoadBalancerIPs, s.SourceRanges = "LoadBalancer", []netip.Addr{netip.MustParseAddr("192.0.2.1")}, []netip.Prefix{netip.MustParsePrefix("172.16.0.0/24")}
	}
	c.svcs[name] = s
	return s
}
func (c *crowd) slice(name string) *collect.EndpointSlice {
	s := c.svcs[name]
	sl := &collect.EndpointSlice{Service: name, ManagedBy: controllerName, Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
	if s != nil {
		var refs []desired.PodRef
		for _, n := range sortedNames(c.pods) {
			refs = append(refs, desired.PodRef{Name: n, UID: c.uids[n], Pod: c.pods[n]})
		}
		hints := c.p(6)
		for _, e := range desired.Slices(s, refs) {
			if c.p(12) {
				continue
			}
			x := collect.SliceEndpoint{Address: e.Address, Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Node: e.Node, PodName: e.PodName, PodUID: e.PodUID}
			if hints {
				x.HintZones = []string{"z" + fmt.Sprint(1+c.r.IntN(2))}
			}
			sl.Endpoints = append(sl.Endpoints, x)
		}
	}
	c.sl[name] = sl
	return sl
}
func (c *crowd) want(node string, wrong bool) map[collect.RulePortKey]collect.RulePort {
	out := map[collect.RulePortKey]collect.RulePort{}
	ref := desired.NodeRef{Name: node}
	if n := c.nodes[node]; n != nil {
		ref.Zone, ref.Addresses = n.Zone, n.Addresses
	}
	for _, name := range sortedNames(c.svcs) {
		var all []*collect.EndpointSlice
		if c.sl[name] != nil {
			all = append(all, c.sl[name])
		}
		for _, p := range desired.Rules(desired.ServiceRef{Namespace: "default", Name: name, Service: c.svcs[name]}, all, ref) {
			if wrong && c.p(4) {
				p.Endpoints = append(slices.Clone(p.Endpoints), netip.MustParseAddrPort("10.0.0.99:8080"))
			}
			if wrong && c.p(8) {
				continue
			}
			out[p.RulePortKey] = p
		}
	}
	out[collect.RulePortKey{Namespace: "kube-system", Service: "dns", Protocol: collect.UDP, Family: collect.IPv4, Policy: collect.PolicyCluster}] = collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "kube-system", Service: "dns", Protocol: collect.UDP, Family: collect.IPv4, Policy: collect.PolicyCluster},
		Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.MustParseAddrPort("10.96.0.10:53")}},
		Endpoints:   []netip.AddrPort{netip.MustParseAddrPort("10.0.9.1:53")},
	}
	return out
}
func (c *crowd) rules(node string, baseline, wrong bool) collect.Event {
	w := c.want(node, wrong)
	if !baseline || c.p(2) || c.gens[node] == 0 {
		c.gens[node]++
	}
	r := &collect.Rules{Node: node, Generation: c.gens[node], Baseline: baseline, Layout: c.lay[node]}
	for k, p := range w {
		old, ok := c.had[node][k]
		if baseline || !ok || !old.Equal(&p) || c.p(15) {
			r.Ports = append(r.Ports, p)
		}
	}
	if !baseline {
		for k := range c.had[node] {
			if _, ok := w[k]; !ok {
				r.Ports = append(r.Ports, collect.RulePort{RulePortKey: k})
			}
		}
	}
	slices.SortFunc(r.Ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	c.had[node] = w
	return collect.Event{At: c.now, Source: collect.RulesSource(node), Object: collect.ObjectKey{Kind: "Node", Name: node}, Payload: r}
}
func (c *crowd) node(name string) *collect.Node {
	n := &collect.Node{Zone: "z" + fmt.Sprint(1+c.r.IntN(2)), Ready: &collect.Condition{Status: !c.p(5)}, Addresses: []netip.Addr{netip.MustParseAddr("172.16." + name[1:] + ".1")}}
	if c.p(6) {
		n.Addresses = []netip.Addr{netip.MustParseAddr("172.16.0.9")}
	}
	c.nodes[name] = n
	return n
}

func (c *crowd) start() {
	q := map[string][]collect.Event{}
	add := func(s string, e collect.Event) { q[s] = append(q[s], e) }
	for _, n := range crowdNodes {
		c.lay[n] = "kube-proxy-nftables"
		if c.p(4) {
			c.lay[n] = collect.LayoutIPTables
		}
		if !c.p(8) {
			add("nodes", c.kube(collect.SourceNodes, "Node", n, "u-"+n, collect.OpListed, c.node(n)))
		}
	}
	for range c.r.IntN(14) {
		n, p := c.newPod()
		add("pods", c.kube(collect.SourcePods, "Pod", n, c.uids[n], collect.OpListed, p))
	}
	for _, s := range crowdServices {
		if !c.p(4) {
			c.uids["svc"+s] = "s" + s
			add("services", c.kube(collect.SourceServices, "Service", s, "s"+s, collect.OpListed, c.newSvc(s)))
		}
		if !c.p(5) {
			add("slices", c.kube(collect.SourceEndpointSlices, "EndpointSlice", s+"-1", "sl"+s, collect.OpListed, c.slice(s)))
		}
	}
	for _, src := range coreSources {
		k := strings.TrimPrefix(strings.TrimPrefix(string(src), "kube/"), "endpoint")
		if c.p(25) {
			add(k, collect.Event{Source: src, Payload: &collect.SourceState{State: collect.SourceForbidden, Detail: "no"}})
			continue
		}
		add(k, collect.Event{Source: src, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	wrong := c.p(2)
	for _, n := range crowdNodes {
		if c.p(10) {
			continue
		}
		if c.p(3) {
			add(n, collect.Event{Source: collect.RulesSource(n), Payload: &collect.ClockBound{Error: time.Duration(c.r.IntN(5)) * time.Millisecond, OneSided: c.p(3)}})
		}
		add(n, c.rules(n, true, wrong && c.p(2)))
		c.ruled[n] = true
		if c.p(3) {
			add(n, c.rules(n, false, c.p(3)))
		}
		if c.p(4) {
			add(n, c.past(n))
		}
	}
	late := c.r.IntN(3) // 0: any order, 1: kube first, 2: nodes first
	for len(q) > 0 {
		keys := sortedNames(q)
		if late != 0 && !c.p(10) {
			sub := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return (k[0] == 'n' && len(k) == 2) == (late == 1) })
			if len(sub) > 0 {
				keys = sub
			}
		}
		k := keys[c.r.IntN(len(keys))]
		e := q[k][0]
		if q[k] = q[k][1:]; len(q[k]) == 0 {
			delete(q, k)
		}
		if c.p(3) {
			c.tick(60)
		}
		e.At = c.now
		c.ev = append(c.ev, e)
	}
	c.tick(500)
}
func (c *crowd) past(n string) collect.Event {
	return collect.Event{At: c.now, Source: collect.RulesSource(n), Payload: &collect.RulesPast{Node: n, From: c.now.Add(-time.Minute), FromError: time.Millisecond,
		Changes: []collect.PastChange{{Namespace: "default", Service: "a", At: c.now.Add(-30 * time.Second), Endpoints: 3, Generation: 1}}}}
}

func (c *crowd) turn(long bool) {
	if c.p(3) {
		c.tick(40)
	} else {
		c.tick(600)
	}
	if long && c.p(6) {
		c.now = c.now.Add(time.Duration(c.r.IntN(200)) * time.Second)
		c.ev = append(c.ev, advance(c.now))
	}
	emit := func(e collect.Event) { c.ev = append(c.ev, e) }
	pods := sortedNames(c.pods)
	nd := crowdNodes[c.r.IntN(len(crowdNodes))]
	sv := crowdServices[c.r.IntN(len(crowdServices))]
	switch x := c.r.IntN(30); {
	case x < 5 && len(pods) > 0:
		n := pods[c.r.IntN(len(pods))]
		p := *c.pods[n]
		switch c.r.IntN(4) {
		case 0:
			p.Ready = &collect.Condition{Status: !p.IsReady()}
		case 1:
			p.Deletion, p.Grace = c.now.Add(30*time.Second), 30*time.Second
		case 2:
			p.IPs = []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", 1+c.r.IntN(12)))}
		case 3:
			emit(c.kube(collect.SourcePods, "Pod", n, c.uids[n], collect.OpDeleted, &p))
			delete(c.pods, n)
			return
		}
		c.pods[n] = &p
		emit(c.kube(collect.SourcePods, "Pod", n, c.uids[n], collect.OpModified, &p))
	case x < 7:
		n, p := c.newPod()
		emit(c.kube(collect.SourcePods, "Pod", n, c.uids[n], collect.OpAdded, p))
	case x < 14:
		op := collect.OpModified
		if c.sl[sv] == nil {
			op = collect.OpAdded
		}
		if c.p(12) && c.sl[sv] != nil {
			emit(c.kube(collect.SourceEndpointSlices, "EndpointSlice", sv+"-1", "sl"+sv, collect.OpDeleted, c.sl[sv]))
			delete(c.sl, sv)
			return
		}
		emit(c.kube(collect.SourceEndpointSlices, "EndpointSlice", sv+"-1", "sl"+sv, op, c.slice(sv)))
	case x < 16:
		switch {
		case c.svcs[sv] == nil:
			c.born++
			c.uids["svc"+sv] = fmt.Sprintf("s%d", c.born)
			emit(c.kube(collect.SourceServices, "Service", sv, c.uids["svc"+sv], collect.OpAdded, c.newSvc(sv)))
		case c.p(3):
			emit(c.kube(collect.SourceServices, "Service", sv, c.uids["svc"+sv], collect.OpDeleted, c.svcs[sv]))
			delete(c.svcs, sv)
		default:
			emit(c.kube(collect.SourceServices, "Service", sv, c.uids["svc"+sv], collect.OpModified, c.newSvc(sv)))
		}
	case x < 18:
		if c.nodes[nd] != nil && c.p(3) {
			emit(c.kube(collect.SourceNodes, "Node", nd, "u-"+nd, collect.OpDeleted, c.nodes[nd]))
			delete(c.nodes, nd)
			return
		}
		op := collect.OpModified
		if c.nodes[nd] == nil {
			op = collect.OpAdded
		}
		emit(c.kube(collect.SourceNodes, "Node", nd, "u-"+nd, op, c.node(nd)))
	case x == 18:
		emit(c.rules(nd, true, c.p(3)))
	case x == 19:
		switch c.r.IntN(5) {
		case 0:
			emit(collect.Event{At: c.now, Source: collect.RulesSource(nd), Payload: &collect.Gap{From: c.now.Add(-100 * time.Millisecond), Why: "lost"}})
		case 1:
			emit(collect.Event{At: c.now, Source: collect.RulesSource(nd), Payload: &collect.Rules{Node: nd, Generation: c.gens[nd], NoLayout: "cilium"}})
			c.had[nd] = nil
		case 2:
			emit(collect.Event{At: c.now, Source: collect.RulesSource(nd), Payload: &collect.SourceState{State: collect.SourceStopped, Detail: "gone"}})
		case 3:
			emit(c.past(nd))
		case 4:
			c.lay[nd] = "kube-proxy-nftables"
		}
	case x == 20:
		s := []collect.SourceID{collect.SourceEndpointSlices, collect.SourceServices, collect.SourcePods, collect.SourceNodes}[c.r.IntN(4)]
		emit(collect.Event{At: c.now, Source: s, Payload: &collect.SourceState{State: collect.SourceBroken, Detail: "reset"}})
		c.tick(50)
		emit(collect.Event{At: c.now, Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	case x < 24:
		for _, n := range crowdNodes {
			if c.ruled[n] && !c.p(4) {
				c.tick(20)
				emit(c.rules(n, false, c.p(12)))
			}
		}
	default:
		emit(c.rules(nd, !c.ruled[nd], c.p(8)))
		c.ruled[nd] = true
	}
}
