package timelinetest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Epoch is time 0 of every scenario.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Scenario reads events in the form that testdata/scenarios/README.md tells.
// Objects are remembered, so that a line says only what changes.
type Scenario struct {
	rv       uint64
	pods     map[string]*collect.Pod
	uids     map[string]string // pod or Service -> UID
	services map[string]*collect.Service
	slices   map[string]*collect.EndpointSlice
	v1       map[string]*collect.Endpoints
	v1Ports  []collect.SlicePort // of the Endpoints line being read
	nodes    map[string]*collect.Node
	loads    map[string]*collect.Workload
}

// New returns a Scenario in which nothing is yet.
func New() *Scenario {
	return &Scenario{
		pods: map[string]*collect.Pod{}, uids: map[string]string{}, services: map[string]*collect.Service{},
		slices: map[string]*collect.EndpointSlice{}, v1: map[string]*collect.Endpoints{},
		nodes: map[string]*collect.Node{}, loads: map[string]*collect.Workload{},
	}
}

// Parse turns lines into events in the order of their observation.
func (sc *Scenario) Parse(text string) (out []collect.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		at, notBefore, _ := strings.Cut(f[0], "<")
		for _, e := range sc.events(f[1:]) {
			e.At = Epoch.Add(dur(at))
			if notBefore != "" {
				e.NotBefore = Epoch.Add(dur(notBefore))
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b collect.Event) int { return a.At.Compare(b.At) })
	return out, nil
}

// Duration reads a time of a scenario: "0", "1500ms".
func Duration(s string) (time.Duration, error) { return time.ParseDuration(s) }

func dur(s string) time.Duration {
	d, err := Duration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// coreSources are those that "synced" and "vouched" speak for.
var coreSources = []collect.SourceID{
	collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes,
}

// controllerName manages slices unless a line says otherwise.
const controllerName = "endpointslice-controller.k8s.io"

var ops = map[string]collect.Op{"list": collect.OpListed, "add": collect.OpAdded, "mod": collect.OpModified, "del": collect.OpDeleted, "gone": collect.OpGone}

var kinds = map[string]struct {
	kind   string
	source collect.SourceID
}{
	"pod": {"Pod", collect.SourcePods}, "svc": {"Service", collect.SourceServices}, "slice": {"EndpointSlice", collect.SourceEndpointSlices},
	"endpoints": {"Endpoints", collect.SourceEndpoints}, "node": {"Node", collect.SourceNodes},
	"deploy": {"Deployment", collect.SourceDeployments}, "rs": {"ReplicaSet", collect.SourceReplicaSets},
	"sts": {"StatefulSet", collect.SourceStatefulSets}, "ds": {"DaemonSet", collect.SourceDaemonSets},
}

func sourceID(s string) collect.SourceID {
	if strings.Contains(s, "/") || s == "user" || s == "agents" {
		return collect.SourceID(s)
	}
	return collect.SourceID("kube/" + s)
}

// events is event, and the verbs that stand for several.
func (sc *Scenario) events(f []string) (out []collect.Event) {
	switch f[0] {
	case "synced":
		for _, s := range coreSources {
			out = append(out, collect.Event{Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
		}
	case "vouched":
		nodes := f[2:]
		if len(nodes) == 0 {
			nodes = []string{"n1", "n2"}
		}
		all := slices.Clone(coreSources)
		for _, n := range nodes {
			all = append(all, collect.RulesSource(n))
		}
		for _, s := range all {
			out = append(out, collect.Event{Source: s, Payload: &collect.Vouch{Until: Epoch.Add(dur(f[1])), How: "check"}})
		}
	default:
		for _, line := range spread(f) {
			out = append(out, sc.event(line))
		}
	}
	return out
}

func (sc *Scenario) event(f []string) collect.Event {
	if op, ok := ops[f[0]]; ok {
		return sc.object(op, f[1], f[2], f[3:])
	}
	switch f[0] {
	case "state":
		return collect.Event{Source: sourceID(f[1]), Payload: &collect.SourceState{State: collect.SourceStateName(f[2]), Detail: strings.Join(f[3:], " ")}}
	case "vouch":
		return collect.Event{Source: sourceID(f[1]), Payload: &collect.Vouch{Until: Epoch.Add(dur(f[2])), How: "check"}}
	case "gap":
		g := &collect.Gap{From: Epoch.Add(dur(f[2])), Why: strings.Join(f[4:], " ")}
		if n, ok := strings.CutPrefix(g.Why, "lost="); ok {
			g.Lost = int(num(n))
		}
		if f[3] != "open" {
			g.To = Epoch.Add(dur(f[3]))
		}
		return collect.Event{Source: sourceID(f[1]), Payload: g}
	case "session":
		s := &collect.Session{Kind: "lab", Name: "test", Started: Epoch}
		for _, x := range f[1:] {
			if x == "nodes" {
				s.NodesExpected = true
			} else {
				s.Needs = append(s.Needs, sourceID(x))
			}
		}
		return collect.Event{Source: collect.SourceClock, Payload: s}
	case "now":
		return collect.Event{Source: collect.SourceClock, Payload: &collect.Advance{}}
	case "action":
		return collect.Event{Source: collect.SourceUser, Payload: &collect.Action{Namespace: "default", Service: f[1], Text: strings.Join(f[2:], " ")}}
	case "rules":
		return sc.rules(f[1], f[2:])
	case "proxy":
		return collect.Event{Source: collect.AgentSource(f[1]), Payload: proxyState(f[1], f[2:])}
	case "agent":
		return collect.Event{Source: collect.AgentSource(f[1]), Payload: &collect.AgentState{Node: f[1], Started: Epoch, Clock: collect.NodeClock{Synchronised: f[2] == "synchronised"}}}
	case "reconcile":
		step := &collect.ReconcileStep{Controller: "endpointslice", Step: f[2]}
		rest := f[3:]
		if len(rest) > 0 {
			if v, ok := strings.CutPrefix(rest[0], "took="); ok {
				step.Took, rest = dur(v), rest[1:]
			}
		}
		step.Detail = strings.Join(rest, " ")
		return collect.Event{Source: collect.SourceReconciler, Object: collect.ObjectKey{Kind: "Service", Namespace: "default", Name: f[1]}, Payload: step}
	case "clock":
		return collect.Event{Source: collect.RulesSource(f[1]), Payload: &collect.ClockBound{
			Offset: dur(strings.TrimPrefix(f[2], "offset=")), Error: dur(strings.TrimPrefix(f[3], "error=")), How: "synchronised",
		}}
	case "failed":
		return collect.Event{Source: collect.TrafficSource(f[1]), Object: collect.ObjectKey{Kind: "Service", Namespace: "default", Name: f[2]}, Payload: &collect.ConnectionFailed{
			Node: f[1], Address: sc.front(f[2]), Began: Epoch.Add(dur(strings.TrimPrefix(f[3], "began="))), Result: strings.ReplaceAll(f[4], "-", " "),
		}}
	case "answered":
		c := &collect.Connections{Node: f[1], Address: sc.front(f[2]), From: Epoch.Add(dur(strings.TrimPrefix(f[3], "from=")))}
		for _, pod := range f[4:] {
			c.OK++
			c.Answered = append(c.Answered, collect.Answered{UID: sc.uid(pod), N: 1})
		}
		return collect.Event{Source: collect.TrafficSource(f[1]), Object: collect.ObjectKey{Kind: "Service", Namespace: "default", Name: f[2]}, Payload: c}
	case "past":
		return past(f[1], f[2:])
	case "event":
		return sc.kubeEvent(f[1], f[2], f[3:])
	case "sync":
		return syncStep(f[1], f[2], f[3:])
	}
	panic("unknown verb " + f[0])
}

func (sc *Scenario) object(op collect.Op, kind, name string, attrs []string) collect.Event {
	k, ok := kinds[kind]
	if !ok {
		panic("unknown kind " + kind)
	}
	sc.rv++
	e := collect.Event{Source: k.source, Op: op, ResourceVersion: sc.rv, Object: collect.ObjectKey{Kind: k.kind, Namespace: "default", Name: name}, UID: "u-" + name}
	fresh := op == collect.OpAdded || op == collect.OpListed
	attrs = slices.DeleteFunc(slices.Clone(attrs), func(a string) bool {
		v, ok := strings.CutPrefix(a, "rv=")
		if ok {
			e.ResourceVersion = uint64(num(v))
			sc.rv = max(sc.rv, e.ResourceVersion)
		}
		return ok
	})
	for i, a := range attrs {
		if uid, ok := strings.CutPrefix(a, "uid="); ok {
			sc.uids[name] = uid
			attrs = slices.Delete(slices.Clone(attrs), i, i+1)
			break
		}
	}
	if uid := sc.uids[name]; uid != "" {
		e.UID = uid
	}
	switch kind {
	case "pod":
		e.Payload = update(sc.pods, name, fresh, attrs, podAttr)
	case "svc":
		e.Payload = update(sc.services, name, fresh, attrs, svcAttr)
	case "slice":
		s := update(sc.slices, name, fresh, nil, func(*collect.EndpointSlice, string) {})
		if len(attrs) > 0 {
			s.Endpoints = nil
			s.Family, s.ManagedBy = cmp.Or(s.Family, collect.IPv4), cmp.Or(s.ManagedBy, controllerName)
			for _, a := range attrs {
				sc.sliceAttr(s, a)
			}
		}
		e.Payload = s
	case "endpoints":
		sc.v1Ports = nil
		s := update(sc.v1, name, true, nil, func(*collect.Endpoints, string) {})
		for _, a := range attrs {
			sc.endpointsAttr(s, a)
		}
		e.Payload = s
	case "node":
		e.Payload = update(sc.nodes, name, fresh, attrs, nodeAttr)
	default:
		e.Payload = update(sc.loads, kind+name, fresh, attrs, loadAttr)
	}
	return e
}

// front is a Service's first port at its ClusterIP.
func (sc *Scenario) front(service string) netip.AddrPort {
	s := sc.services[service]
	return netip.AddrPortFrom(s.ClusterIPs[0], uint16(s.Ports[0].Port))
}

func (sc *Scenario) uid(pod string) string { return cmp.Or(sc.uids[pod], "u-"+pod) }

// update makes the object's next state out of its last.
func update[T any](m map[string]*T, name string, fresh bool, attrs []string, set func(*T, string)) *T {
	x := new(T)
	if old := m[name]; old != nil && !fresh {
		*x = *old
	}
	for _, a := range attrs {
		set(x, a)
	}
	m[name] = x
	return x
}

// past is from=TIME [error=DURATION] [onesided] and, by time, the changes, as
// SERVICE@TIME=ENDPOINTS[/GENERATION], and gap=FROM..TO, of which TO may be open.
func past(node string, f []string) collect.Event {
	p := &collect.RulesPast{Node: node}
	for _, a := range f {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "from":
			p.From = Epoch.Add(dur(v))
			continue
		case "error":
			p.FromError = dur(v)
			continue
		case "onesided":
			p.OneSided = true
			continue
		case "gap":
			from, to, _ := strings.Cut(v, "..")
			g := collect.Gap{From: Epoch.Add(dur(from))}
			if to != "open" {
				g.To = Epoch.Add(dur(to))
			}
			p.Gaps = append(p.Gaps, g)
			continue
		}
		name, at, _ := strings.Cut(k, "@")
		n, gen, _ := strings.Cut(v, "/")
		c := collect.PastChange{At: Epoch.Add(dur(at)), Error: p.FromError, Namespace: "default", Service: name, Endpoints: int(num(n))}
		if gen != "" {
			c.Generation = uint32(num(gen))
		}
		p.Changes = append(p.Changes, c)
	}
	return collect.Event{Source: collect.RulesSource(node), Payload: p}
}

// rules is [baseline] gen=N and, for each port that changed,
// SERVICE[:port][@Local][/IPv6]=addr:port,… with front=… for other frontends than the
// cluster IP, lb=… for one more, stay=… for session affinity, from=… for the only
// sources, or SERVICE=none for a port that went.
func (sc *Scenario) rules(node string, f []string) collect.Event {
	r := &collect.Rules{Node: node}
	for _, a := range f {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "baseline":
			r.Baseline = true
			continue
		case "gen":
			r.Generation = uint32(num(v))
			continue
		case "stay":
			r.Ports[len(r.Ports)-1].Affinity = dur(v)
			continue
		case "from":
			r.Ports[len(r.Ports)-1].Sources = []netip.Prefix{netip.MustParsePrefix(v)}
			continue
		case "lb":
			p := &r.Ports[len(r.Ports)-1]
			p.Frontends = append(p.Frontends, collect.Frontend{Kind: collect.FrontendLoadBalancer, Addr: netip.MustParseAddrPort(v)})
			continue
		case "layout":
			r.Layout = v
			continue
		case "nolayout":
			r.NoLayout = strings.ReplaceAll(v, "_", " ")
			continue
		case "front":
			p := &r.Ports[len(r.Ports)-1]
			p.Frontends = nil
			for x := range strings.SplitSeq(v, ",") {
				if x != "none" {
					p.Frontends = append(p.Frontends, collect.Frontend{Kind: collect.FrontendClusterIP, Addr: netip.MustParseAddrPort(x)})
				}
			}
			continue
		}
		k, family, _ := strings.Cut(k, "/")
		name, policy, _ := strings.Cut(k, "@")
		name, port, _ := strings.Cut(name, ":")
		port, protocol := portName(port)
		p := collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "default", Service: name, Port: port, Protocol: protocol,
			Family: collect.Family(cmp.Or(family, "IPv4")), Policy: collect.Policy(cmp.Or(policy, "Cluster"))}}
		if v != "none" {
			svc := cmp.Or(sc.services[name], &collect.Service{}) // there may be none
			for _, sp := range svc.Ports {
				if sp.Name == port && sp.Protocol == protocol {
					i := max(0, slices.IndexFunc(svc.ClusterIPs, func(ip netip.Addr) bool { return collect.FamilyOf(ip) == p.Family }))
					p.Frontends = []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(svc.ClusterIPs[i], uint16(sp.Port))}}
				}
			}
			for x := range strings.SplitSeq(v, ",") {
				if x != "" {
					p.Endpoints = append(p.Endpoints, netip.MustParseAddrPort(x))
				}
			}
		}
		r.Ports = append(r.Ports, p)
	}
	return collect.Event{Source: collect.RulesSource(node), Payload: r}
}
