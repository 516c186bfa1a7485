package livetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Town is a cluster in which pods are replaced, and become unready and ready again,
// while the nodes' agents and the watches say that they are still there. Its size and
// the rate at which things happen stay the same, however long it goes on, so that what
// is known of it is bounded by what is kept.
type Town struct {
	Services, Pods, Nodes int // Pods of each Service
	// Every is the mean time between two changes.
	Every time.Duration
	Seed  uint64
}

// Busy is a town of 20 Services with 10 pods each on 10 nodes, in which a pod is
// replaced or flaps every two seconds: some 14 events a second, more than half of them
// rules.
var Busy = Town{Services: 20, Pods: 10, Nodes: 10, Every: 2 * time.Second, Seed: 1}

// Began is when every town's session begins.
var Began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Events gives the first n events of the session, which ends with a passing of time.
func (c Town) Events(n int) iter.Seq[collect.Event] {
	return func(yield func(collect.Event) bool) {
		t := &town{Town: c, at: Began, rnd: rand.New(rand.NewPCG(c.Seed, 2)), left: n, yield: yield}
		t.run()
	}
}

type town struct {
	Town
	at    time.Time
	rnd   *rand.Rand
	seq   uint64
	rv    uint64
	uid   int
	left  int
	yield func(collect.Event) bool

	services   []*townService
	gens       []uint32
	beats      time.Time // of the next heartbeats
	marks      time.Time // of the next bookmarks
	tick       time.Time // of the next passing of time
	freeIPs    []netip.Addr
	generation int64
}

type townService struct {
	name string
	ip   netip.Addr
	pods []*townPod
}

type townPod struct {
	name, uid string
	pod       collect.Pod
}

// emit gives an event; false when there are enough.
func (t *town) emit(e collect.Event) {
	if t.left <= 0 {
		return
	}
	t.seq++
	e.Seq, e.At = t.seq, t.at
	if t.left--; t.left == 0 {
		e = collect.Event{Seq: t.seq, At: t.at.Add(time.Second), Source: collect.SourceClock, Payload: &collect.Advance{}}
	}
	if !t.yield(e) {
		t.left = 0
	}
}

func (t *town) kube(src collect.SourceID, kind, name, uid string, op collect.Op, p collect.Payload) {
	t.rv++
	t.emit(collect.Event{Source: src, Op: op, UID: uid, ResourceVersion: t.rv, Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p})
}

func (t *town) node(i int) string { return fmt.Sprintf("node-%d", i+1) }

var townSources = []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes, collect.SourceDeployments, collect.SourceReplicaSets, collect.SourceKubeEvents}

func (t *town) run() {
	t.emit(collect.Event{Source: collect.SourceClock, Payload: &collect.Session{Kind: "watch", Name: "town", Started: t.at, NodesExpected: true}})
	t.gens = make([]uint32, t.Nodes)
	for i := range t.Nodes {
		t.kube(collect.SourceNodes, "Node", t.node(i), "u-"+t.node(i), collect.OpListed, &collect.Node{Ready: &collect.Condition{Status: true, Since: t.at}})
	}
	for i := range t.Services*t.Pods + 1000 { // addresses come again, but not soon
		t.freeIPs = append(t.freeIPs, netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}))
	}
	for i := range t.Services {
		s := &townService{name: fmt.Sprintf("app-%d", i), ip: netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 10)})}
		t.services = append(t.services, s)
		t.kube(collect.SourceServices, "Service", s.name, "u-"+s.name, collect.OpListed, &collect.Service{
			Kind: "ClusterIP", Selector: map[string]string{"app": s.name}, ClusterIPs: []netip.Addr{s.ip}, Families: []collect.Family{collect.IPv4},
			Ports: []collect.ServicePort{{Name: "http", Protocol: collect.TCP, Port: 80, Target: 8080}}})
		for range t.Pods {
			p := t.newPod(s)
			since := &collect.Condition{Status: true, Since: t.at}
			p.pod.Node, p.pod.Phase = t.node(t.rnd.IntN(t.Nodes)), "Running"
			p.pod.IPs = []netip.Addr{t.address()}
			p.pod.Scheduled, p.pod.Initialized, p.pod.ContainersReady, p.pod.Ready, p.pod.Started = since, since, since, since, t.at
			s.pods = append(s.pods, p)
			t.tell(p, collect.OpListed)
		}
		t.slice(s, collect.OpListed)
		t.deployment(s, collect.OpListed)
	}
	for _, src := range townSources {
		t.emit(collect.Event{Source: src, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	for i := range t.Nodes {
		var ports []collect.RulePort
		for _, s := range t.services {
			ports = append(ports, t.rulePort(s))
		}
		t.gens[i] = 1
		t.emit(collect.Event{Source: collect.RulesSource(t.node(i)), Payload: &collect.Rules{Node: t.node(i), Generation: 1, Baseline: true, Layout: "kube-proxy-nftables", Ports: ports}})
	}
	t.beats, t.marks, t.tick = t.at.Add(10*time.Second), t.at.Add(time.Minute), t.at.Add(time.Second)
	for t.left > 0 {
		t.pass(time.Duration(t.rnd.ExpFloat64() * float64(t.Every)))
		s := t.services[t.rnd.IntN(len(t.services))]
		i := t.rnd.IntN(len(s.pods))
		if t.rnd.IntN(3) == 0 {
			t.flap(s, s.pods[i])
		} else {
			t.replace(s, i)
		}
	}
}

// pass lets time go on, with what is said meanwhile.
func (t *town) pass(d time.Duration) {
	to := t.at.Add(d)
	for {
		next := t.tick
		for _, x := range []time.Time{t.beats, t.marks} {
			if x.Before(next) {
				next = x
			}
		}
		if next.After(to) {
			break
		}
		if t.at = next; next.Equal(t.beats) {
			for i := range t.Nodes {
				t.at = t.at.Add(time.Millisecond)
				n := t.node(i)
				t.emit(collect.Event{Source: collect.AgentSource(n), Object: collect.ObjectKey{Kind: "Node", Name: n}, Payload: &collect.AgentState{Node: n, Version: "v1", Instance: "a" + n,
					Started: Began, Uptime: t.at.Sub(Began), Heartbeat: 10 * time.Second, Keyframe: time.Minute, Clock: collect.NodeClock{Synchronised: true, MaxError: time.Millisecond, Boot: "b-" + n}}})
				t.emit(collect.Event{Source: collect.RulesSource(n), Object: collect.ObjectKey{Kind: "Node", Name: n}, Payload: &collect.Vouch{Until: t.at, How: "heartbeat", Generation: t.gens[i]}})
			}
			t.beats = next.Add(10 * time.Second)
		}
		if next.Equal(t.marks) {
			for _, src := range townSources {
				t.emit(collect.Event{Source: src, Payload: &collect.Vouch{Until: t.at, How: "bookmark"}})
			}
			t.marks = next.Add(time.Minute)
		}
		if next.Equal(t.tick) {
			t.emit(collect.Event{Source: collect.SourceClock, Payload: &collect.Advance{}})
			t.tick = next.Add(time.Second)
		}
	}
	if to.After(t.at) {
		t.at = to
	}
}

func (t *town) address() netip.Addr {
	ip := t.freeIPs[0]
	t.freeIPs = t.freeIPs[1:]
	return ip
}

func (t *town) newPod(s *townService) *townPod {
	t.uid++
	p := &townPod{name: fmt.Sprintf("%s-%d", s.name, t.uid), uid: fmt.Sprintf("u-%d", t.uid)}
	p.pod = collect.Pod{
		Labels: map[string]string{"app": s.name, "pod-template-hash": "5f6d"}, Phase: "Pending", Created: t.at.Truncate(time.Second), Grace: 30 * time.Second,
		Owner: &collect.Owner{Kind: "ReplicaSet", Name: s.name + "-5f6d", UID: "rs-" + s.name}, Ports: []collect.NamedPort{{Name: "http", Port: 8080, Protocol: collect.TCP}},
		ReadinessPeriod: 10 * time.Second, ReadinessSuccessThreshold: 1, ReadinessFailureThreshold: 3, Revision: "5f6d",
	}
	return p
}

// tell gives the pod as it is now.
func (t *town) tell(p *townPod, op collect.Op) {
	now := p.pod
	t.kube(collect.SourcePods, "Pod", p.name, p.uid, op, &now)
}

func (t *town) slice(s *townService, op collect.Op) {
	sl := &collect.EndpointSlice{Service: s.name, ManagedBy: "endpointslice-controller.k8s.io", Family: collect.IPv4, Ports: []collect.SlicePort{{Name: "http", Protocol: collect.TCP, Port: 8080}}, TriggerTime: t.at.Truncate(time.Second)}
	for _, p := range s.pods {
		if len(p.pod.IPs) > 0 {
			ready := p.pod.IsReady()
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: p.pod.IPs[0], Ready: ready && !p.pod.Terminating(), Serving: ready, Terminating: p.pod.Terminating(), Node: p.pod.Node, PodName: p.name, PodUID: p.uid})
		}
	}
	t.kube(collect.SourceEndpointSlices, "EndpointSlice", s.name+"-x", "s-"+s.name, op, sl)
}

func (t *town) rulePort(s *townService) collect.RulePort {
	p := collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "default", Service: s.name, Port: "http", Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
		Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(s.ip, 80)}},
	}
	for _, x := range s.pods {
		if x.pod.IsReady() && !x.pod.Terminating() {
			p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(x.pod.IPs[0], 8080))
		}
	}
	return p
}

func (t *town) deployment(s *townService, op collect.Op) {
	ready := int32(0)
	for _, p := range s.pods {
		if p.pod.IsReady() {
			ready++
		}
	}
	n := int32(t.Pods)
	t.generation++
	t.kube(collect.SourceDeployments, "Deployment", s.name, "d-"+s.name, op, &collect.Workload{Generation: 1, ObservedGeneration: 1, Replicas: n, StatusReplicas: n, Updated: n, Ready: ready, Available: ready, Selector: map[string]string{"app": s.name}, TemplateLabels: map[string]string{"app": s.name}})
}

func (t *town) kubeEvent(p *townPod, reason, message, component string) {
	t.kube(collect.SourceKubeEvents, "Event", fmt.Sprintf("%s.%x", p.name, t.rv), fmt.Sprintf("ev-%d", t.rv), collect.OpAdded, &collect.KubeEvent{
		Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "default", Name: p.name}, UID: p.uid, Reason: reason, Message: message, EventType: "Normal", Component: component, Count: 1, First: t.at.Truncate(time.Second), Last: t.at.Truncate(time.Second)})
}

// follow is what a change of the pods brings: the slice, then each node's rules.
func (t *town) follow(s *townService) {
	t.at = t.at.Add(time.Duration(2+t.rnd.IntN(20)) * time.Millisecond)
	t.slice(s, collect.OpModified)
	for _, i := range t.rnd.Perm(t.Nodes) {
		t.at = t.at.Add(time.Duration(1+t.rnd.IntN(int(80*time.Millisecond/time.Millisecond)/t.Nodes)) * time.Millisecond)
		t.gens[i]++
		n := t.node(i)
		t.emit(collect.Event{Source: collect.RulesSource(n), Object: collect.ObjectKey{Kind: "Node", Name: n}, Payload: &collect.Rules{Node: n, Generation: t.gens[i], Layout: "kube-proxy-nftables", Ports: []collect.RulePort{t.rulePort(s)}}})
	}
}

// flap makes a pod unready, and ready again.
func (t *town) flap(s *townService, p *townPod) {
	t.kubeEvent(p, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet")
	for _, ready := range []bool{false, true} {
		t.pass(time.Duration(5+t.rnd.IntN(40)) * time.Millisecond)
		c := &collect.Condition{Status: ready, Since: t.at.Truncate(time.Second)}
		p.pod.Ready, p.pod.ContainersReady = c, c
		t.tell(p, collect.OpModified)
		t.follow(s)
		t.pass(time.Duration(100+t.rnd.IntN(1500)) * time.Millisecond)
	}
}

// replace ends a pod and brings another up, as a Deployment does.
func (t *town) replace(s *townService, i int) {
	old := s.pods[i]
	old.pod.Deletion = t.at.Add(30 * time.Second).Truncate(time.Second)
	t.tell(old, collect.OpModified)
	t.kubeEvent(old, "Killing", "Stopping container web", "kubelet")
	p := t.newPod(s)
	s.pods = append(s.pods, p)
	t.tell(p, collect.OpAdded)
	t.at = t.at.Add(2 * time.Millisecond)
	since := func() *collect.Condition { return &collect.Condition{Status: true, Since: t.at.Truncate(time.Second)} }
	p.pod.Node, p.pod.Scheduled = t.node(t.rnd.IntN(t.Nodes)), since()
	t.tell(p, collect.OpModified)
	t.kubeEvent(p, "Scheduled", "Successfully assigned default/"+p.name+" to "+p.pod.Node, "default-scheduler")
	t.follow(s)
	t.pass(time.Duration(200+t.rnd.IntN(800)) * time.Millisecond)
	p.pod.IPs, p.pod.Phase, p.pod.Initialized, p.pod.Started = []netip.Addr{t.address()}, "Running", since(), t.at.Truncate(time.Second)
	p.pod.ContainersReady, p.pod.Ready = since(), since()
	t.tell(p, collect.OpModified)
	t.kubeEvent(p, "Started", "Container started", "kubelet")
	t.follow(s)
	t.deployment(s, collect.OpModified)
	t.pass(time.Duration(200+t.rnd.IntN(500)) * time.Millisecond)
	old.pod.Stopped = t.at.Truncate(time.Second)
	t.kube(collect.SourcePods, "Pod", old.name, old.uid, collect.OpDeleted, new(old.pod))
	s.pods = append(s.pods[:i:i], s.pods[i+1:]...)
	t.freeIPs = append(t.freeIPs, old.pod.IPs[0])
	t.follow(s)
}
