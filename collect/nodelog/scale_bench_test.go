package nodelog

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// big is a large cluster that stands still, as a viewer of its API server and of
// its nodes' agents gets to know it. What agents tell goes through the line codec
// and a stream for each.
type big struct {
	b                          testing.TB
	services, endpoints, nodes int // endpoints of each Service

	model   *timeline.Model
	streams []*stream
	now     time.Time
	rv      uint64
	gen     uint32
	seq     []uint64 // of each agent's lines
	labels  map[string]string
	owner   *collect.Owner
}

// placeholder stands for the node's name in lines that are alike for all nodes. It
// is as long as a name.
const placeholder = "node-00000"

func bigNode(i int) string { return fmt.Sprintf("node-%05d", i) }

func (c *big) service(i int) string { return fmt.Sprintf("service-%05d", i) }
func (c *big) pod(i, j int) string  { return fmt.Sprintf("service-%05d-7d9c6f8b5c-%05d", i, j) }
func (c *big) ip(i, j int) netip.Addr {
	n := i*c.endpoints + j
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}
func (c *big) clusterIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 20, byte(i >> 8), byte(i)})
}

func (c *big) object(src collect.SourceID, op collect.Op, kind, name, uid string, p collect.Payload) {
	c.rv++
	e := collect.Event{At: c.now, Source: src, Op: op, UID: uid, ResourceVersion: c.rv, Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p}
	if kind == "Node" {
		e.Object.Namespace = ""
	}
	c.model.Apply(e)
}

func (c *big) podOf(i, j int, ready bool) *collect.Pod {
	if j == 0 { // those of one owner come one after the other, and share these (collect/kube, sharer)
		c.labels = map[string]string{"app": c.service(i), "pod-template-hash": "7d9c6f8b5c"}
		c.owner = &collect.Owner{Kind: "ReplicaSet", Name: c.service(i) + "-7d9c6f8b5c", UID: "rs-" + c.service(i)}
	}
	since := c.now.Truncate(time.Second).Add(-time.Hour)
	is := func() *collect.Condition { return &collect.Condition{Status: true, Since: since} }
	p := &collect.Pod{
		Labels: c.labels, Node: bigNode((i + j) % c.nodes), Phase: "Running", IPs: []netip.Addr{c.ip(i, j)},
		Owner: c.owner, Created: since, Started: since,
		Scheduled: is(), Initialized: is(), ContainersReady: is(), Ready: is(), Revision: "7d9c6f8b5c",
	}
	if !ready {
		p.Ready = &collect.Condition{Since: c.now.Truncate(time.Second), Reason: "ContainersNotReady"}
	}
	return p
}

// sliceOf has the first endpoint ready or not.
func (c *big) sliceOf(i int, first bool) *collect.EndpointSlice {
	s := &collect.EndpointSlice{Service: c.service(i), ManagedBy: "endpointslice-controller.k8s.io", Family: collect.IPv4, Ports: []collect.SlicePort{{Name: "http", Protocol: collect.TCP, Port: 8080}}}
	for j := range c.endpoints {
		ready := first || j > 0
		s.Endpoints = append(s.Endpoints, collect.SliceEndpoint{Address: c.ip(i, j), Ready: ready, Serving: ready, Node: bigNode((i + j) % c.nodes), PodName: c.pod(i, j), PodUID: "uid-" + c.pod(i, j)})
	}
	return s
}

func (c *big) endpointsOf(i int) *collect.Endpoints {
	e := &collect.Endpoints{}
	for j := range c.endpoints {
		e.Addresses = append(e.Addresses, collect.EndpointsAddress{IP: c.ip(i, j), Ready: true, PodName: c.pod(i, j), PodUID: "uid-" + c.pod(i, j), Ports: []collect.SlicePort{{Name: "http", Protocol: collect.TCP, Port: 8080}}})
	}
	return e
}

func (c *big) portOf(i int, first bool) collect.RulePort {
	p := collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "default", Service: c.service(i), Port: "http", Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
		Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(c.clusterIP(i), 80)}},
	}
	for j := range c.endpoints {
		if first || j > 0 {
			p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(c.ip(i, j), 8080))
		}
	}
	return p
}

// lines encodes payloads as an agent's lines, without their numbers.
func (c *big) lines(payloads ...collect.Payload) [][]byte {
	var out [][]byte
	for _, p := range payloads {
		line, err := collect.Marshal(collect.Event{Seq: seqPlace, At: c.now, Source: collect.RulesSource(placeholder), Object: collect.ObjectKey{Kind: "Node", Name: placeholder}, Payload: p})
		if err != nil {
			c.b.Fatal(err)
		}
		if len(line) > 16<<10 {
			c.b.Fatalf("a line of %d bytes", len(line))
		}
		out = append(out, line)
	}
	return out
}

// seqPlace stands for a line's number.
const seqPlace = 9_000_000_000_000_000_001

// read gives lines to the stream of a node.
func (c *big) read(i int, lines [][]byte) {
	for _, l := range lines {
		c.seq[i]++
		l = bytes.ReplaceAll(l, []byte(placeholder), []byte(bigNode(i)))
		l = bytes.Replace(l, []byte(fmt.Sprint(uint64(seqPlace))), []byte(fmt.Sprint(c.seq[i])), 1)
		c.streams[i].read(l, c.now.Add(2*time.Millisecond))
	}
}

// newBig brings the cluster in: what the API server lists, and the lines of the
// agents. The first node's log begins with its agent; of all others it was rotated,
// so that they have keyframes with digests.
func newBig(b testing.TB, services, endpoints, nodes int) *big {
	c := &big{b: b, services: services, endpoints: endpoints, nodes: nodes, model: timeline.New(timeline.Options{}), now: aMarch, gen: 1, seq: make([]uint64, nodes)}
	for i := range nodes {
		c.object(collect.SourceNodes, collect.OpListed, "Node", bigNode(i), "uid-"+bigNode(i), &collect.Node{Zone: "zone-a", Ready: &collect.Condition{Status: true}, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, byte(i >> 8), byte(i)})}})
	}
	var all []collect.RulePort
	for i := range services {
		name := c.service(i)
		c.object(collect.SourceServices, collect.OpListed, "Service", name, "uid-"+name, &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": name}, Families: []collect.Family{collect.IPv4},
			Ports: []collect.ServicePort{{Name: "http", Protocol: collect.TCP, Port: 80, Target: 8080}}, ClusterIPs: []netip.Addr{c.clusterIP(i)}, InternalPolicy: "Cluster"})
		w := &collect.Workload{Generation: 3, ObservedGeneration: 3, Replicas: int32(endpoints), StatusReplicas: int32(endpoints), Updated: int32(endpoints), Ready: int32(endpoints), Available: int32(endpoints), Selector: map[string]string{"app": name}, Revision: "7d9c6f8b5c"}
		c.object(collect.SourceDeployments, collect.OpListed, "Deployment", name, "d-"+name, w)
		rs := *w
		rs.Owner = &collect.Owner{Kind: "Deployment", Name: name, UID: "d-" + name}
		c.object(collect.SourceReplicaSets, collect.OpListed, "ReplicaSet", name+"-7d9c6f8b5c", "rs-"+name, &rs)
		for j := range endpoints {
			c.object(collect.SourcePods, collect.OpListed, "Pod", c.pod(i, j), "uid-"+c.pod(i, j), c.podOf(i, j, true))
		}
		c.object(collect.SourceEndpointSlices, collect.OpListed, "EndpointSlice", name+"-x7k2p", "slice-"+name, c.sliceOf(i, true))
		c.object(collect.SourceEndpoints, collect.OpListed, "Endpoints", name, "ep-"+name, c.endpointsOf(i))
		all = append(all, c.portOf(i, true))
	}
	for _, s := range []collect.SourceID{collect.SourceNodes, collect.SourceServices, collect.SourcePods, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceDeployments, collect.SourceReplicaSets} {
		c.model.Apply(collect.Event{At: c.now, Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	c.settle()

	const perLine = 20
	parts := (services + perLine - 1) / perLine
	var first, frame []collect.Payload
	for part := range parts {
		ports := all[part*perLine : min((part+1)*perLine, services)]
		first = append(first, &collect.Rules{Node: placeholder, Generation: c.gen, Layout: "kube-proxy-nftables", Baseline: true, Ports: ports, Part: part + 1, Parts: parts})
		var keys []collect.KeyPort
		for k := range ports {
			keys = append(keys, collect.KeyPort{RulePort: collect.RulePort{RulePortKey: ports[k].RulePortKey}, Digest: ports[k].Digest(), N: len(ports[k].Endpoints)})
		}
		frame = append(frame, &collect.Keyframe{Node: placeholder, Generation: c.gen, Layout: "kube-proxy-nftables", Ports: keys, Part: part + 1, Parts: parts})
	}
	state := &collect.AgentState{Node: placeholder, Version: "1", Instance: "abc", Started: c.now.Add(-time.Hour), Uptime: time.Hour, Heartbeat: 10 * time.Second, Keyframe: time.Minute}
	hello, firstLines, frameLines := c.lines(state), c.lines(first...), c.lines(frame...)
	k := newKnown()
	for i := range nodes {
		s := newStream(bigNode(i), collect.SinkFunc(c.model.Apply), k, nil, noClock)
		c.streams = append(c.streams, s)
		c.read(i, hello)
		if i == 0 {
			c.read(i, firstLines)
		}
		c.read(i, frameLines)
		c.now = c.now.Add(3 * time.Millisecond)
		s.present(c.now)
	}
	c.settle()
	return c
}

// settle moves time past the reordering window.
func (c *big) settle() {
	c.now = c.now.Add(400 * time.Millisecond)
	c.model.Apply(collect.Event{At: c.now, Source: collect.SourceClock, Payload: &collect.Advance{}})
}

// flip makes the first pod of a Service unready, or ready again: pod, slice, and the
// rules of every node, with the heartbeat that goes with them.
func (c *big) flip(i int, ready bool) {
	c.now = c.now.Add(time.Second)
	c.gen++
	c.object(collect.SourcePods, collect.OpModified, "Pod", c.pod(i, 0), "uid-"+c.pod(i, 0), c.podOf(i, 0, ready))
	c.now = c.now.Add(10 * time.Millisecond)
	c.object(collect.SourceEndpointSlices, collect.OpModified, "EndpointSlice", c.service(i)+"-x7k2p", "slice-"+c.service(i), c.sliceOf(i, ready))
	c.now = c.now.Add(20 * time.Millisecond)
	lines := c.lines(&collect.Rules{Node: placeholder, Generation: c.gen, Layout: "kube-proxy-nftables", Ports: []collect.RulePort{c.portOf(i, ready)}},
		&collect.Vouch{Until: c.now, How: "heartbeat", Generation: c.gen})
	for n := range c.streams {
		c.read(n, lines)
	}
	c.settle()
}

// check fails unless the Service is converged on all nodes, with so many
// endpoints.
func (c *big) check(snap *timeline.Snapshot, i, endpoints int) {
	c.b.Helper()
	svc := snap.Service("default", c.service(i))
	if svc == nil || svc.State != timeline.Converged || svc.Rules.Agreeing() != c.nodes || svc.Rules.Len() != c.nodes {
		c.b.Fatalf("%s is not converged on all nodes", c.service(i))
	}
	p := svc.Rules.Of(bigNode(c.nodes - 1))
	if at := p.Changes[len(p.Changes)-1]; at.Have != endpoints || at.Want != endpoints {
		c.b.Fatalf("%s has %d of %d endpoints on the last node, should have %d", c.service(i), at.Have, at.Want, endpoints)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and weak pointers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkLive is about a viewer of 10,000 Services with 100,000 endpoints on
// 1,000 nodes. It reports the live heap with a snapshot at hand, what it takes to
// come there, and, as the time of an operation, one change that goes through a pod,
// a slice and the rules of every node. Say -benchtime=20x: the start alone takes a
// minute.
func BenchmarkLive(b *testing.B) {
	for _, size := range []struct{ services, endpoints, nodes int }{{1000, 10, 100}, {10000, 10, 1000}} {
		b.Run(fmt.Sprintf("%d Services, %d endpoints, %d nodes", size.services, size.services*size.endpoints, size.nodes), func(b *testing.B) {
			before := liveHeap()
			began := time.Now()
			c := newBig(b, size.services, size.endpoints, size.nodes)
			start := time.Since(began)
			snap := c.model.Snapshot()
			c.check(snap, size.services-1, size.endpoints)
			live := liveHeap() - before
			b.ReportAllocs()
			up, i := false, 0
			for b.Loop() {
				c.flip(i, up)
				if up {
					i = (i + 1) % size.services
				}
				up = !up
			}
			b.ReportMetric(float64(live)/1e6, "live-MB")
			b.ReportMetric(start.Seconds(), "start-s")
			began = time.Now()
			snap = c.model.Snapshot()
			b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "snapshot-ms")
			if !up {
				c.check(snap, i, size.endpoints)
			}
			b.ReportMetric(float64(liveHeap()-before)/1e6, "live-after-MB")
			runtime.KeepAlive(c)
			runtime.KeepAlive(snap)
		})
	}
}

// Memory follows what happens, not nodes x Services: ten times the nodes, which
// all route alike, must not cost much more.
func TestMemoryDoesNotFollowNodesTimesServices(t *testing.T) {
	const services, endpoints, few, many = 300, 4, 20, 200
	live := func(nodes int) int64 {
		before := liveHeap()
		c := newBig(t, services, endpoints, nodes)
		snap := c.model.Snapshot()
		c.check(snap, services-1, endpoints)
		n := int64(liveHeap()) - int64(before)
		runtime.KeepAlive(c)
		runtime.KeepAlive(snap)
		return n
	}
	a, b := live(few), live(many)
	each := float64(b-a) / float64((many-few)*services)
	t.Logf("%d nodes: %d kB; %d nodes: %d kB; %.1f bytes for each Service and node", few, a>>10, many, b>>10, each)
	// A plane of its own takes a thousand bytes, a place in a map forty.
	if each > 25 {
		t.Errorf("%.1f bytes for each Service on each node", each)
	}
}
