package timeline

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// world is a small made-up cluster that takes random turns, and writes down the
// events that a viewer of it could observe.
type world struct {
	t      *rapid.T
	now    time.Time
	rv     uint64
	pods   map[string]*collect.Pod
	uids   map[string]string
	svcs   map[string]*collect.Service
	slices map[string]*collect.EndpointSlice // by Service
	rules  map[string]map[collect.RulePortKey]collect.RulePort
	gens   map[string]uint32
	events []collect.Event
	born   int
	// broken is the source whose watch is down, and known what it last told.
	broken collect.SourceID
	known  map[string]collect.Event
	since  time.Time
	breaks bool // watches may break
	exact  bool // nodes do as they should
}

var worldNodes = []string{"n1", "n2"}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: epoch, pods: map[string]*collect.Pod{}, uids: map[string]string{}, svcs: map[string]*collect.Service{},
		slices: map[string]*collect.EndpointSlice{}, rules: map[string]map[collect.RulePortKey]collect.RulePort{}, gens: map[string]uint32{},
		known: map[string]collect.Event{},
	}
	for i, n := range worldNodes {
		w.kube(collect.SourceNodes, "Node", n, "u-"+n, collect.OpListed, &collect.Node{Ready: &collect.Condition{Status: true}, Zone: fmt.Sprintf("z%d", i+1)})
		w.rules[n] = map[collect.RulePortKey]collect.RulePort{}
	}
	for range rapid.IntRange(0, 3).Draw(t, "pods before") {
		w.addPod(collect.OpListed)
	}
	w.setService("web", collect.OpListed)
	if rapid.Bool().Draw(t, "slices before") {
		w.writeSlice("web", collect.OpListed, true)
	}
	w.now = w.now.Add(time.Millisecond)
	for _, s := range coreSources {
		w.events = append(w.events, collect.Event{At: w.now, Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	for _, n := range worldNodes {
		w.events = append(w.events, collect.Event{At: w.now, Source: collect.RulesSource(n), Payload: &collect.Rules{Node: n, Generation: 1, Baseline: true}})
	}
	w.now = w.now.Add(100 * time.Millisecond)
	return w
}

func (w *world) kube(src collect.SourceID, kind, name, uid string, op collect.Op, p collect.Payload) {
	w.rv++
	e := collect.Event{At: w.now, Source: src, Op: op, UID: uid, ResourceVersion: w.rv,
		Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p}
	if src == w.broken {
		return
	}
	w.events = append(w.events, e)
	if op == collect.OpDeleted {
		delete(w.known, kind+name)
	} else {
		w.known[kind+name] = e
	}
}

// breakWatch takes a source's watch down.
func (w *world) breakWatch(id collect.SourceID) {
	w.broken, w.since = id, w.now
	w.events = append(w.events, collect.Event{At: w.now, Source: id, Payload: &collect.SourceState{State: collect.SourceBroken, Detail: "connection reset"}})
}

// relist brings it up again: what differs is found by a list.
func (w *world) relist() {
	id := w.broken
	w.broken = ""
	type object struct {
		kind, name, uid string
		p               collect.Payload
	}
	var all []object
	switch id {
	case collect.SourcePods:
		for _, n := range slices.Sorted(maps.Keys(w.pods)) {
			all = append(all, object{"Pod", n, w.uids[n], w.pods[n]})
		}
	case collect.SourceServices:
		for _, n := range slices.Sorted(maps.Keys(w.svcs)) {
			all = append(all, object{"Service", n, w.uids[n], w.svcs[n]})
		}
	case collect.SourceEndpointSlices:
		for _, n := range slices.Sorted(maps.Keys(w.slices)) {
			all = append(all, object{"EndpointSlice", n + "-1", "u-slice", w.slices[n]})
		}
	}
	emit := func(e collect.Event) {
		e.At, e.NotBefore = w.now, w.since
		w.events = append(w.events, e)
	}
	there := map[string]string{}
	for _, o := range all {
		there[o.kind+o.name] = o.uid
	}
	for _, k := range slices.Sorted(maps.Keys(w.known)) {
		if e := w.known[k]; e.Source == id && there[k] != e.UID {
			e.Op = collect.OpGone
			emit(e)
			delete(w.known, k)
		}
	}
	for _, o := range all {
		e, ok := w.known[o.kind+o.name]
		if ok && e.Payload == o.p {
			continue
		}
		w.rv++
		e = collect.Event{Source: id, Op: collect.OpListed, UID: o.uid, ResourceVersion: w.rv, Payload: o.p,
			Object: collect.ObjectKey{Kind: o.kind, Namespace: "default", Name: o.name}}
		w.known[o.kind+o.name] = e
		emit(e)
	}
	w.events = append(w.events, collect.Event{At: w.now, Source: id, Payload: &collect.SourceState{State: collect.SourceSynced}})
}

func (w *world) addPod(op collect.Op) {
	w.born++
	name := fmt.Sprintf("p%d", w.born%4) // names are used again
	if w.pods[name] != nil {
		return
	}
	w.uids[name] = fmt.Sprintf("u%d", w.born)
	p := &collect.Pod{Labels: map[string]string{"app": "web"}, Node: rapid.SampledFrom(worldNodes).Draw(w.t, "node"), Phase: "Running"}
	if rapid.Bool().Draw(w.t, "has address") {
		// Three addresses for four names: they are used again, too.
		p.IPs = []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", w.born%3+1))}
	}
	if rapid.Bool().Draw(w.t, "ready") {
		p.Ready = &collect.Condition{Status: true}
	}
	w.pods[name] = p
	w.kube(collect.SourcePods, "Pod", name, w.uids[name], op, p)
}

func (w *world) setService(name string, op collect.Op) {
	s := &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": rapid.SampledFrom([]string{"web", "web", "other"}).Draw(w.t, "selector")},
		Ports:          []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: rapid.SampledFrom([]int32{8080, 9090}).Draw(w.t, "target")}},
		ClusterIPs:     []netip.Addr{netip.MustParseAddr("10.96.0.11")},
		InternalPolicy: rapid.SampledFrom([]string{"Cluster", "Cluster", "Local"}).Draw(w.t, "policy"),
	}
	if old := w.svcs[name]; old == nil {
		w.born++
		w.uids[name] = fmt.Sprintf("s%d", w.born)
	}
	w.svcs[name] = s
	w.kube(collect.SourceServices, "Service", name, w.uids[name], op, s)
}

// refs lists the pods by name.
func (w *world) refs() (out []desired.PodRef) {
	for _, n := range slices.Sorted(maps.Keys(w.pods)) {
		out = append(out, desired.PodRef{Name: n, UID: w.uids[n], Pod: w.pods[n]})
	}
	return out
}

// writeSlice does what the controller should, or leaves one out.
func (w *world) writeSlice(svc string, op collect.Op, right bool) {
	s := w.svcs[svc]
	if s == nil {
		return
	}
	sl := &collect.EndpointSlice{Service: svc, ManagedBy: controllerName, Family: collect.IPv4,
		Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: s.Ports[0].Target}}}
	for _, e := range desired.Slices(s, w.refs()) {
		if !right && rapid.IntRange(0, 3).Draw(w.t, "leave out") == 0 {
			continue
		}
		x := collect.SliceEndpoint{Address: e.Address, Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Node: e.Node, PodName: e.PodName, PodUID: e.PodUID}
		if rapid.IntRange(0, 9).Draw(w.t, "hint") == 0 {
			x.HintZones = []string{"z1"}
		}
		sl.Endpoints = append(sl.Endpoints, x)
	}
	if op == collect.OpModified && w.slices[svc] == nil {
		op = collect.OpAdded
	}
	w.slices[svc] = sl
	w.kube(collect.SourceEndpointSlices, "EndpointSlice", svc+"-1", "u-slice", op, sl)
}

// sync writes a node's rules as kube-proxy would, or one address too many.
func (w *world) sync(node string) {
	ref := desired.NodeRef{Name: node, Zone: "z" + node[1:]}
	want := map[collect.RulePortKey]collect.RulePort{}
	for name, s := range w.svcs {
		var all []*collect.EndpointSlice
		if sl := w.slices[name]; sl != nil {
			all = append(all, sl)
		}
		for _, p := range desired.Rules(desired.ServiceRef{Namespace: "default", Name: name, Service: s}, all, ref) {
			if !w.exact && rapid.IntRange(0, 9).Draw(w.t, "one too many") == 0 {
				p.Endpoints = append(p.Endpoints, netip.MustParseAddrPort("10.0.0.99:8080"))
			}
			want[p.RulePortKey] = p
		}
	}
	w.gens[node]++
	r := &collect.Rules{Node: node, Generation: w.gens[node]}
	for k := range w.rules[node] {
		if _, ok := want[k]; !ok {
			r.Ports = append(r.Ports, collect.RulePort{RulePortKey: k})
		}
	}
	for _, p := range want {
		r.Ports = append(r.Ports, p)
	}
	slices.SortFunc(r.Ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	w.rules[node] = want
	w.events = append(w.events, collect.Event{At: w.now, Source: collect.RulesSource(node), Payload: r})
}

// turn does one random thing after a while.
func (w *world) turn() {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(w.t, "after")) * time.Millisecond)
	names := slices.Sorted(maps.Keys(w.pods))
	pick := func() (string, collect.Pod) {
		n := rapid.SampledFrom(names).Draw(w.t, "pod")
		return n, *w.pods[n]
	}
	put := func(n string, p collect.Pod) {
		w.pods[n] = &p
		w.kube(collect.SourcePods, "Pod", n, w.uids[n], collect.OpModified, &p)
	}
	what := rapid.IntRange(0, 15).Draw(w.t, "turn")
	if len(names) == 0 && what < 6 {
		what = 6
	}
	switch what {
	case 0:
		n, p := pick()
		p.Ready = &collect.Condition{Status: !p.IsReady(), Since: w.now.Truncate(time.Second)}
		put(n, p)
	case 1:
		n, p := pick()
		p.Deletion, p.Grace = w.now.Add(30*time.Second), 30*time.Second
		put(n, p)
	case 2:
		n, p := pick()
		p.Phase = "Failed"
		put(n, p)
	case 3:
		n, _ := pick()
		w.kube(collect.SourcePods, "Pod", n, w.uids[n], collect.OpDeleted, w.pods[n])
		delete(w.pods, n)
	case 4:
		n, p := pick()
		p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "other"}).Draw(w.t, "label")}
		put(n, p)
	case 5:
		n, p := pick()
		p.IPs = []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 3).Draw(w.t, "address")))}
		put(n, p)
	case 6:
		w.addPod(collect.OpAdded)
	case 7:
		switch s := w.svcs["web"]; {
		case s == nil:
			w.setService("web", collect.OpAdded)
		case rapid.IntRange(0, 3).Draw(w.t, "delete") == 0:
			w.kube(collect.SourceServices, "Service", "web", w.uids["web"], collect.OpDeleted, s)
			delete(w.svcs, "web")
		default:
			w.setService("web", collect.OpModified)
		}
	case 8:
		if sl := w.slices["web"]; sl != nil {
			w.kube(collect.SourceEndpointSlices, "EndpointSlice", "web-1", "u-slice", collect.OpDeleted, sl)
			delete(w.slices, "web")
		}
	case 9:
		w.writeSlice("web", collect.OpModified, false)
	case 10, 11:
		w.writeSlice("web", collect.OpModified, true)
	case 12:
		if w.broken != "" {
			w.relist()
		} else if w.breaks {
			w.breakWatch(rapid.SampledFrom([]collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices}).Draw(w.t, "source"))
		}
	default:
		w.sync(rapid.SampledFrom(worldNodes).Draw(w.t, "node"))
	}
}

// delivered gives the events as watches deliver them that are each a little
// late, and keep their own order.
func (w *world) delivered(most time.Duration, label string) []collect.Event {
	return delivered(w.t, w.events, most, label)
}

func delivered(t *rapid.T, events []collect.Event, most time.Duration, label string) []collect.Event {
	out := slices.Clone(events)
	last := map[collect.SourceID]time.Time{}
	for i := range out {
		e := &out[i]
		if most > 0 {
			e.At = e.At.Add(time.Duration(rapid.Int64Range(0, int64(most-1)).Draw(t, label)))
		}
		if e.At.Before(last[e.Source]) {
			e.At = last[e.Source]
		}
		last[e.Source] = e.At
	}
	slices.SortStableFunc(out, func(a, b collect.Event) int { return a.At.Compare(b.At) })
	return out
}

func advance(at time.Time) collect.Event {
	return collect.Event{At: at, Source: collect.SourceClock, Payload: &collect.Advance{}}
}
