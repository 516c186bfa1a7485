package timeline

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// town is a larger world: several Services that share pods, of one family and of
// two, with every policy, headless or without selector, with several slices each
// that people edit by hand, and nodes that come and go. See also world.
type town struct {
	t       *rapid.T
	now     time.Time
	rv      uint64
	born    int
	objects map[string]thing         // what there is, by kind and name
	known   map[string]collect.Event // what was last told of it
	rules   map[string]map[collect.RulePortKey]collect.RulePort
	gens    map[string]uint32
	gaps    map[string]time.Time // open gaps of nodes' rules, since when
	events  []collect.Event
	broken  collect.SourceID
	since   time.Time
	breaks  bool // watches may break
	slow    int  // turns take so many times as long
}

// thing is one object.
type thing struct {
	src        collect.SourceID
	kind, name string
	uid        string
	rv         uint64
	p          collect.Payload
}

var townNodes = []string{"n1", "n2", "n3"}

// townServices: web and all share pods, hand has no selector, head is headless.
var townServices = []string{"web", "all", "hand", "head"}

func newTown(t *rapid.T) *town {
	w := &town{
		t: t, now: epoch, objects: map[string]thing{}, known: map[string]collect.Event{}, gaps: map[string]time.Time{},
		rules: map[string]map[collect.RulePortKey]collect.RulePort{}, gens: map[string]uint32{},
	}
	w.say(collect.SourceUser, &collect.Session{NodesExpected: w.bool("nodes expected")})
	for i, n := range townNodes {
		if i < 2 || w.bool("third node") {
			w.put(collect.OpListed, collect.SourceNodes, "Node", n, &collect.Node{Ready: &collect.Condition{Status: true}, Zone: "z" + n[1:]})
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "pods before") {
		w.newPod(collect.OpListed)
	}
	for _, s := range townServices {
		if s == "web" || w.bool("service before") {
			w.setService(s, collect.OpListed)
			w.publish(s, collect.OpListed, true)
		}
	}
	w.now = w.now.Add(time.Millisecond)
	for _, s := range coreSources {
		w.say(s, &collect.SourceState{State: collect.SourceSynced})
	}
	for _, n := range townNodes[:2] {
		w.dump(n)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	return w
}

func (w *town) bool(label string) bool        { return rapid.Bool().Draw(w.t, label) }
func (w *town) one(of int, label string) bool { return w.even(of, label) == of-1 }
func (w *town) pick(label string, of ...string) string {
	return of[w.even(len(of), label)]
}

// even draws one of the first n numbers, each about as likely as the others: what
// rapid draws otherwise is mostly small.
func (w *town) even(n int, label string) int {
	return rapid.Custom(func(t *rapid.T) int {
		x := 0
		for range 8 {
			x *= 2
			if rapid.Bool().Draw(t, "bit") {
				x++
			}
		}
		return x * n / 256
	}).Draw(w.t, label)
}

// say emits what a source tells beside objects.
func (w *town) say(src collect.SourceID, p collect.Payload) {
	w.events = append(w.events, collect.Event{At: w.now, Source: src, Payload: p})
}

func kindKey(kind, name string) string { return kind + " " + name }

// put writes an object.
func (w *town) put(op collect.Op, src collect.SourceID, kind, name string, p collect.Payload) {
	key := kindKey(kind, name)
	o, there := w.objects[key]
	if !there {
		w.born++
		o = thing{src: src, kind: kind, name: name, uid: fmt.Sprintf("%s-u%d", name, w.born)}
		if op == collect.OpModified {
			op = collect.OpAdded
		}
	}
	w.rv++
	o.rv, o.p = w.rv, p
	w.objects[key] = o
	w.tell(op, o)
}

// take deletes one.
func (w *town) take(kind, name string) {
	if o, ok := w.objects[kindKey(kind, name)]; ok {
		w.rv++
		o.rv = w.rv
		delete(w.objects, kindKey(kind, name))
		w.tell(collect.OpDeleted, o)
	}
}

func (o thing) event(op collect.Op, at time.Time) collect.Event {
	e := collect.Event{At: at, Source: o.src, Op: op, UID: o.uid, ResourceVersion: o.rv, Payload: o.p,
		Object: collect.ObjectKey{Kind: o.kind, Namespace: "default", Name: o.name}}
	if o.kind == "Node" {
		e.Object.Namespace = ""
	}
	return e
}

func (w *town) tell(op collect.Op, o thing) {
	if o.src == w.broken {
		return
	}
	e := o.event(op, w.now)
	w.events = append(w.events, e)
	if w.known[kindKey(o.kind, o.name)] = e; op == collect.OpDeleted {
		delete(w.known, kindKey(o.kind, o.name))
	}
}

// relist brings the broken watch up again: a list tells what differs.
func (w *town) relist() {
	id := w.broken
	w.broken = ""
	emit := func(e collect.Event) {
		e.At, e.NotBefore = w.now, w.since
		w.events = append(w.events, e)
	}
	for _, k := range slices.Sorted(maps.Keys(w.known)) {
		if e := w.known[k]; e.Source == id && w.objects[k].uid != e.UID {
			e.Op = collect.OpGone
			emit(e)
			delete(w.known, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[k]
		if e, ok := w.known[k]; o.src != id || ok && e.ResourceVersion == o.rv {
			continue
		}
		w.known[k] = o.event(collect.OpListed, w.now)
		emit(w.known[k])
	}
	w.say(id, &collect.SourceState{State: collect.SourceSynced})
}

// of lists the names of the objects of a kind.
func (w *town) of(kind string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(w.objects)) {
		if o := w.objects[k]; o.kind == kind {
			out = append(out, o.name)
		}
	}
	return out
}

func (w *town) service(name string) *collect.Service {
	s, _ := w.objects[kindKey("Service", name)].p.(*collect.Service)
	return s
}

func (w *town) node(name string) *collect.Node {
	n, _ := w.objects[kindKey("Node", name)].p.(*collect.Node)
	return n
}

// addresses gives one of few, of both families, so that they are used again.
func (w *town) addresses() []netip.Addr {
	n := 1 + w.even(5, "address")
	out := []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", n)), netip.MustParseAddr(fmt.Sprintf("fd00::%d", n))}
	return out[:1+w.even(2, "families")]
}

func (w *town) newPod(op collect.Op) {
	name := w.pick("pod name", "p0", "p1", "p2", "p3", "p4", "p5")
	if _, there := w.objects[kindKey("Pod", name)]; there {
		return
	}
	p := &collect.Pod{Labels: w.labels(), Node: w.pick("node", townNodes...), Phase: "Running",
		Ports: []collect.NamedPort{{Name: "http", Protocol: collect.TCP, Port: rapid.SampledFrom([]int32{8080, 8081}).Draw(w.t, "named port")}}}
	if w.one(4, "no named port") {
		p.Ports = nil
	}
	if !w.one(4, "no address") {
		p.IPs = w.addresses()
	}
	p.Ready = &collect.Condition{Status: !w.one(3, "unready"), Since: w.now.Truncate(time.Second)}
	w.put(op, collect.SourcePods, "Pod", name, p)
}

func (w *town) labels() map[string]string {
	return map[string]string{"app": w.pick("app", "web", "web", "other"), "tier": w.pick("tier", "front", "front", "back")}
}

func (w *town) setService(name string, op collect.Op) {
	s := &collect.Service{Kind: "ClusterIP", InternalPolicy: w.pick("internal", "Cluster", "Cluster", "Local"),
		ClusterIPs: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", len(name)))}, Families: []collect.Family{collect.IPv4}}
	http := collect.ServicePort{Name: "http", Protocol: collect.TCP, Port: 80, Target: 8080}
	if w.bool("target by name") {
		http.Target, http.TargetName = 0, "http"
	}
	s.Ports = []collect.ServicePort{http}
	if w.one(3, "two ports") {
		s.Ports = append(s.Ports, collect.ServicePort{Name: "dns", Protocol: collect.UDP, Port: 53, Target: 5353})
	}
	switch name {
	case "web":
		s.Selector = map[string]string{"app": "web"}
		s.PublishNotReadyAddresses = w.one(4, "publish")
		if w.bool("node port") {
			s.Kind, s.Ports[0].NodePort, s.ExternalPolicy = "NodePort", 30080, w.pick("external", "Cluster", "Local")
		}
		if w.one(4, "affinity") {
			s.SessionAffinity = "ClientIP"
		}
	case "all":
		s.Selector = map[string]string{"tier": "front"}
		s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr("fd00:96::1"))
		s.Families = append(s.Families, collect.IPv6)
		if w.one(6, "foreign") {
			s.ProxyName = "other-proxy"
		}
	case "head":
		s.Selector, s.Headless, s.ClusterIPs = map[string]string{"app": "web"}, true, nil
		if w.one(4, "external name") {
			s.Kind, s.Headless, s.Families = "ExternalName", false, nil
		}
	}
	w.put(op, collect.SourceServices, "Service", name, s)
}

// turnService changes one thing of a Service.
func (w *town) turnService(name string) {
	s := *w.service(name)
	switch w.pick("service's", "internal", "publish", "affinity", "ports", "selector", "external") {
	case "internal":
		s.InternalPolicy = w.pick("internal", "Cluster", "Local")
	case "publish":
		s.PublishNotReadyAddresses = !s.PublishNotReadyAddresses
	case "affinity":
		s.SessionAffinity = w.pick("affinity", "ClientIP", "None")
	case "ports":
		s.Ports = slices.Clone(s.Ports)
		s.Ports[0].Target, s.Ports[0].TargetName = 8081, ""
	case "selector":
		if len(s.Selector) > 0 {
			s.Selector = map[string]string{w.pick("by", "app", "tier"): w.pick("value", "web", "front")}
		}
	case "external":
		if s.ExternalPolicy != "" {
			s.ExternalPolicy = w.pick("external", "Cluster", "Local")
		}
	}
	w.put(collect.OpModified, collect.SourceServices, "Service", name, &s)
}

// refs lists the pods by name.
func (w *town) refs() (out []desired.PodRef) {
	for _, n := range w.of("Pod") {
		o := w.objects[kindKey("Pod", n)]
		p := o.p.(*collect.Pod)
		out = append(out, desired.PodRef{Name: n, UID: o.uid, Pod: p, NodeGone: p.Node != "" && w.node(p.Node) == nil})
	}
	return out
}

// slicesOf lists a Service's slices.
func (w *town) slicesOf(svc string) (out []*collect.EndpointSlice) {
	for _, n := range w.of("EndpointSlice") {
		if sl := w.objects[kindKey("EndpointSlice", n)].p.(*collect.EndpointSlice); sl.Service == svc {
			out = append(out, sl)
		}
	}
	return out
}

// should is what the slices of a Service should be: one or two for each family
// and set of ports.
func (w *town) should(svc string) map[string]*collect.EndpointSlice {
	out := map[string]*collect.EndpointSlice{}
	s := w.service(svc)
	if s == nil || len(s.Selector) == 0 {
		return out
	}
	second := w.one(4, "moves to another slice")
	for _, e := range desired.Slices(s, w.refs()) {
		words := []string{svc, strings.ToLower(string(collect.FamilyOf(e.Address)))}
		for _, p := range e.Ports {
			words = append(words, fmt.Sprint(p.Port))
		}
		words = append(words, fmt.Sprint((len(e.PodName)+int(e.PodName[1]))%2))
		if second {
			words[len(words)-1] = "0"
		}
		name := strings.Join(words, "-")
		if out[name] == nil {
			out[name] = &collect.EndpointSlice{Service: svc, ManagedBy: controllerName, Family: collect.FamilyOf(e.Address), Headless: s.Headless, Ports: e.Ports}
		}
		out[name].Endpoints = append(out[name].Endpoints, collect.SliceEndpoint{
			Address: e.Address, Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Node: e.Node, PodName: e.PodName, PodUID: e.PodUID,
			HintZones: w.hints(s, e.Node, w.node(e.Node)),
		})
	}
	return out
}

func (w *town) hints(s *collect.Service, name string, n *collect.Node) []string {
	if n == nil || s.InternalPolicy == "Local" || name == "n3" && !w.one(8, "hint of n3") {
		return nil
	}
	return []string{n.Zone}
}

// publish writes the slices of a Service as they should be, or only some of
// those that differ; of one without selector, anything.
func (w *town) publish(svc string, op collect.Op, all bool) {
	s := w.service(svc)
	if s == nil {
		return
	}
	if svc == "hand" {
		w.byHand(svc, op)
		return
	}
	should := w.should(svc)
	for _, n := range w.of("EndpointSlice") {
		sl := w.objects[kindKey("EndpointSlice", n)].p.(*collect.EndpointSlice)
		if sl.Service == svc && sl.ManagedBy == controllerName && should[n] == nil && (all || w.bool("delete this one")) {
			w.take("EndpointSlice", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(should)) {
		was, _ := w.objects[kindKey("EndpointSlice", n)].p.(*collect.EndpointSlice)
		if was != nil && fmt.Sprint(*was) == fmt.Sprint(*should[n]) || !all && w.bool("not this one") {
			continue
		}
		w.put(op, collect.SourceEndpointSlices, "EndpointSlice", n, should[n])
		w.now = w.now.Add(time.Millisecond)
	}
	if s.Kind != "ExternalName" && w.bool("endpoints too") {
		w.put(op, collect.SourceEndpoints, "Endpoints", svc, &collect.Endpoints{Addresses: desired.EndpointsV1(s, w.refs())})
	}
}

// byHand writes a slice that no controller speaks for.
func (w *town) byHand(svc string, op collect.Op) {
	sl := &collect.EndpointSlice{Service: svc, ManagedBy: "me", Family: collect.IPv4, Ports: []collect.SlicePort{{Name: "http", Protocol: collect.TCP, Port: 8080}}}
	for i := range 3 {
		if w.bool("has") {
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: netip.MustParseAddr(fmt.Sprintf("10.0.9.%d", i)), Ready: !w.one(4, "unready"), Serving: true, Node: "n1"})
		}
	}
	w.put(op, collect.SourceEndpointSlices, "EndpointSlice", svc+"-hand", sl)
}

// edit changes a slice behind its controller's back.
func (w *town) edit() {
	names := w.of("EndpointSlice")
	if len(names) == 0 {
		return
	}
	n := w.pick("slice", names...)
	sl := *w.objects[kindKey("EndpointSlice", n)].p.(*collect.EndpointSlice)
	sl.Endpoints = slices.Clone(sl.Endpoints)
	if len(sl.Endpoints) == 0 {
		return
	}
	i := w.even(len(sl.Endpoints), "endpoint")
	e := &sl.Endpoints[i]
	switch w.pick("edit", "ready", "remove", "hint", "hints", "nobody") {
	case "ready":
		e.Ready = !e.Ready
	case "remove":
		sl.Endpoints = slices.Delete(sl.Endpoints, i, i+1)
	case "hint":
		e.HintNodes = []string{w.pick("hint", townNodes...)}
	case "hints":
		for i := range sl.Endpoints {
			sl.Endpoints[i].HintNodes = []string{w.pick("hint", townNodes...)}
		}
	case "nobody":
		ip := netip.MustParseAddr("10.0.8.1")
		if sl.Family == collect.IPv6 {
			ip = netip.MustParseAddr("fd00::81")
		}
		if !slices.ContainsFunc(sl.Endpoints, func(e collect.SliceEndpoint) bool { return e.Address == ip }) {
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: ip, Ready: true, Serving: true})
		}
	}
	w.put(collect.OpModified, collect.SourceEndpointSlices, "EndpointSlice", n, &sl)
}

// wanted is what kube-proxy should have on a node.
func (w *town) wanted(name string) map[collect.RulePortKey]collect.RulePort {
	ref := desired.NodeRef{Name: name}
	if n := w.node(name); n != nil {
		ref.Zone = n.Zone
	}
	out := map[collect.RulePortKey]collect.RulePort{}
	for _, svc := range w.of("Service") {
		for _, p := range desired.Rules(desired.ServiceRef{Namespace: "default", Name: svc, Service: w.service(svc)}, w.slicesOf(svc), ref) {
			out[p.RulePortKey] = p
		}
	}
	return out
}

// sync writes a node's rules as kube-proxy would, or with one address too many.
func (w *town) sync(name string) {
	want := w.wanted(name)
	for _, k := range slices.SortedFunc(maps.Keys(want), collect.RulePortKey.Compare) {
		if p := want[k]; w.one(12, "one too many") && k.Family == collect.IPv4 {
			x := netip.AddrPortFrom(w.addresses()[0], 8080)
			p.Endpoints = append(slices.Clone(p.Endpoints), x)
			slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
			p.Endpoints = slices.Compact(p.Endpoints)
			want[k] = p
		}
	}
	r := &collect.Rules{Node: name}
	for k := range w.rules[name] {
		if _, ok := want[k]; !ok {
			r.Ports = append(r.Ports, collect.RulePort{RulePortKey: k})
		}
	}
	for k, p := range want {
		if was := w.rules[name][k]; !p.Equal(&was) {
			r.Ports = append(r.Ports, p)
		}
	}
	w.rules[name] = want
	w.gens[name]++
	if _, lost := w.gaps[name]; lost {
		return // nobody heard
	}
	r.Generation = w.gens[name]
	slices.SortFunc(r.Ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	w.say(collect.RulesSource(name), r)
}

// dump reads all of a node's rules.
func (w *town) dump(name string) {
	if w.rules[name] == nil {
		w.rules[name] = map[collect.RulePortKey]collect.RulePort{}
		if w.bool("already synced") {
			w.rules[name] = w.wanted(name)
		}
	}
	if _, lost := w.gaps[name]; !lost && w.one(3, "nobody told") {
		w.rules[name] = w.wanted(name)
	}
	w.gens[name]++
	r := &collect.Rules{Node: name, Generation: w.gens[name], Baseline: true}
	for _, p := range w.rules[name] {
		r.Ports = append(r.Ports, p)
	}
	slices.SortFunc(r.Ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	e := collect.Event{At: w.now, Source: collect.RulesSource(name), Payload: r}
	if since, ok := w.gaps[name]; ok {
		e.NotBefore = since
		delete(w.gaps, name)
	}
	w.events = append(w.events, e)
}

// turn does one random thing after a while.
func (w *town) turn() {
	w.now = w.now.Add(time.Duration(max(1, w.slow)*(1+w.even(400, "after"))) * time.Millisecond)
	if w.slow > 0 { // who reads rules says so now and then, or is forgotten
		for _, n := range slices.Sorted(maps.Keys(w.rules)) {
			w.say(collect.RulesSource(n), &collect.Vouch{Until: w.now})
		}
	}
	switch what := w.even(30, "turn"); {
	case what < 6:
		w.turnPod()
	case what < 8:
		w.newPod(collect.OpAdded)
	case what < 10:
		switch name := w.pick("service", townServices...); {
		case w.service(name) != nil && w.one(4, "delete service"):
			w.take("Service", name)
		case w.service(name) == nil || w.one(3, "all anew"):
			w.setService(name, collect.OpModified)
		default:
			w.turnService(name)
		}
	case what == 10:
		w.edit()
	case what == 11:
		w.turnNode()
	case what == 12, what == 15:
		w.turnWatch()
	case what == 13: // everything that is wanted is done
		for _, svc := range townServices {
			w.publish(svc, collect.OpModified, true)
		}
		for _, n := range townNodes[:2] {
			w.now = w.now.Add(20 * time.Millisecond)
			w.sync(n)
		}
	case what == 16: // a node that hears sooner than we do
		from := len(w.events)
		w.publish(w.pick("service", townServices...), collect.OpModified, true)
		told := len(w.events)
		w.now = w.now.Add(time.Millisecond)
		w.sync(w.pick("node", townNodes[:2]...))
		w.now = w.now.Add(time.Duration(1+w.even(400, "sooner by")) * time.Millisecond)
		late := slices.Clone(w.events[from:told])
		for i := range late {
			late[i].At = w.now
		}
		w.events = append(slices.Delete(w.events, from, told), late...)
	case what == 14: // a scale to nothing
		for _, n := range w.of("Pod") {
			if p := *w.objects[kindKey("Pod", n)].p.(*collect.Pod); !p.Terminating() {
				p.Deletion, p.Grace = w.now.Add(30*time.Second), 30*time.Second
				w.put(collect.OpModified, collect.SourcePods, "Pod", n, &p)
				w.now = w.now.Add(time.Millisecond)
			}
		}
	case what < 20:
		w.publish(w.pick("service", townServices...), collect.OpModified, !w.one(3, "half"))
	case what == 20: // what is left of a deleted Service is collected
		for _, n := range w.of("EndpointSlice") {
			if w.service(w.objects[kindKey("EndpointSlice", n)].p.(*collect.EndpointSlice).Service) == nil {
				w.take("EndpointSlice", n)
			}
		}
	default:
		n := w.pick("node", townNodes...)
		if w.rules[n] == nil || w.one(6, "dump") {
			w.dump(n)
		} else {
			w.sync(n)
		}
	}
}

func (w *town) turnPod() {
	names := w.of("Pod")
	if len(names) == 0 {
		w.newPod(collect.OpAdded)
		return
	}
	n := w.pick("pod", names...)
	p := *w.objects[kindKey("Pod", n)].p.(*collect.Pod)
	switch w.pick("pod's", "readiness", "end", "phase", "gone", "labels", "address") {
	case "readiness":
		p.Ready = &collect.Condition{Status: !p.IsReady(), Since: w.now.Truncate(time.Second)}
	case "end":
		p.Deletion, p.Grace = w.now.Add(30*time.Second), 30*time.Second
	case "phase":
		p.Phase = "Failed"
	case "gone":
		w.take("Pod", n)
		return
	case "labels":
		p.Labels = w.labels()
	case "address":
		p.IPs = w.addresses()
	}
	w.put(collect.OpModified, collect.SourcePods, "Pod", n, &p)
}

func (w *town) turnNode() {
	name := w.pick("node", townNodes...)
	was := w.node(name)
	if was == nil {
		w.put(collect.OpAdded, collect.SourceNodes, "Node", name, &collect.Node{Ready: &collect.Condition{Status: true}, Zone: "z" + name[1:]})
		return
	}
	n := *was
	switch w.pick("node's", "end", "readiness", "zone") {
	case "end":
		w.take("Node", name)
		return
	case "readiness":
		n.Ready = &collect.Condition{Status: !was.Ready.Status}
	case "zone":
		n.Zone = w.pick("zone", "z1", "z2")
	}
	w.put(collect.OpModified, collect.SourceNodes, "Node", name, &n)
}

// turnWatch breaks something that observes, mends it, or has it vouch.
func (w *town) turnWatch() {
	name := w.pick("node", townNodes...)
	switch what := w.pick("watch", "break", "gap", "vouch"); {
	case what == "vouch":
		for _, id := range append([]collect.SourceID{collect.RulesSource(name)}, coreSources...) {
			if w.bool("vouches") && (w.rules[name] != nil || id != collect.RulesSource(name)) {
				w.say(id, &collect.Vouch{Until: w.now})
			}
		}
	case what == "gap" && w.breaks && w.rules[name] != nil:
		if _, ok := w.gaps[name]; !ok || w.one(2, "lost again") {
			w.gaps[name] = w.now
			w.say(collect.RulesSource(name), &collect.Gap{From: w.now, Why: "overrun"})
		}
	case what == "break" && w.broken != "":
		w.relist()
	case what == "break" && w.breaks:
		w.broken, w.since = rapid.SampledFrom([]collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices}).Draw(w.t, "source"), w.now
		w.say(w.broken, &collect.SourceState{State: collect.SourceBroken, Detail: "connection reset"})
	}
}
