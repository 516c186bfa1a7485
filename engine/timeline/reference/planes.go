package reference

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Plane is what one plane of a Service had and what was wanted of it at one
// moment. The zero Endpoint is the Service's frontends, on nodes only.
type Plane struct {
	Want, Had map[Endpoint]Value
}

// Names of planes; a node's rules are "rules@" and its name.
const (
	Slices    = "slices"
	Endpoints = "endpoints"
	onNode    = "rules@"
)

// moment is what was so after one event.
type moment struct {
	e      collect.Event
	facts  *facts
	planes map[string]map[string]*Plane // Service -> plane; only those that can be compared
}

// History is what was so after each of a growing list of events.
type History struct {
	events  []collect.Event
	moments []*moment
}

// Add takes the next event.
func (h *History) Add(e collect.Event) {
	h.events = append(h.events, e)
	m := &moment{e: e, facts: look(h.events), planes: map[string]map[string]*Plane{}}
	h.moments = append(h.moments, m)
	for _, svc := range m.facts.named() {
		m.planes[svc] = h.planesOf(svc, m.facts)
	}
}

// named lists the Services that any object or rule speaks of: rules may be seen
// before their Service is.
func (f *facts) named() (out []string) {
	for svc := range f.services {
		out = append(out, svc)
	}
	for key, sl := range f.slices {
		ns, _, _ := strings.Cut(key, "/")
		out = append(out, ns+"/"+sl.Service)
	}
	for svc := range f.endpoints {
		out = append(out, svc)
	}
	for _, ports := range f.rules {
		for k := range ports {
			out = append(out, k.Namespace+"/"+k.Service)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (h *History) now() *moment { return h.moments[len(h.moments)-1] }

// Services lists those that were ever seen.
func (h *History) Services() (out []string) {
	for svc := range h.now().facts.services {
		out = append(out, svc)
	}
	sort.Strings(out)
	return out
}

// planesOf makes the planes of a Service that can be compared: those for which
// all lists and dumps are there.
func (h *History) planesOf(svc string, f *facts) map[string]*Plane {
	out := map[string]*Plane{}
	if f.listed(collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices) {
		out[Slices] = f.slicesPlane(svc)
	}
	if f.listed(collect.SourcePods, collect.SourceServices, collect.SourceEndpoints) {
		out[Endpoints] = f.endpointsPlane(svc)
	}
	for name, ports := range f.rules {
		if !f.follows(name) {
			continue
		}
		var here []collect.RulePort
		for k, p := range ports {
			if k.Namespace+"/"+k.Service == svc {
				here = append(here, p)
			}
		}
		want := f.byProxy(svc, name)
		p := &Plane{map[Endpoint]Value{}, map[Endpoint]Value{}}
		for ip, v := range routes(want) {
			p.Want[Endpoint{h.owner(svc, name, ip), ip}] = v
		}
		for ip, v := range routes(here) {
			p.Had[Endpoint{h.owner(svc, name, ip), ip}] = v
		}
		// The text of frontends stands for nothing but being the same or not.
		if w, g := fronts(want), fronts(here); len(w)+len(g) > 0 {
			if len(w) > 0 {
				p.Want[Endpoint{}] = Value{Text: "as wanted"}
			}
			switch {
			case sameFronts(w, g):
				p.Had[Endpoint{}] = Value{Text: "as wanted"}
			case len(g) > 0:
				p.Had[Endpoint{}] = Value{Text: "otherwise"}
			}
		}
		out[onNode+name] = p
	}
	return out
}

// told is one endpoint as all slices of a Service publish it together.
type told struct {
	collect.SliceEndpoint
	ports []collect.SlicePort
	asIs  bool // nobody who is known wants it otherwise
}

// published merges the slices: an endpoint in two has the ports of both.
func (f *facts) published(svc string) map[Endpoint]told {
	s := f.services[svc]
	cut := f.endpoints[svc] != nil && len(f.endpoints[svc].Addresses) > 1000
	out := map[Endpoint]told{}
	for _, sl := range f.slicesOf(svc) {
		for _, e := range sl.Endpoints {
			id := Endpoint{uidOr(e.PodUID), e.Address.Unmap()}
			asIs := s.Service != nil && (!s.hasSelector() || e.PodUID == "" && sl.ManagedBy != "endpointslice-controller.k8s.io")
			if sl.ManagedBy == "endpointslicemirroring-controller.k8s.io" {
				asIs = cut
			}
			t, twice := out[id]
			switch {
			case !twice:
				t = told{e, nil, asIs}
			case s.hasSelector():
				t.asIs = t.asIs && asIs
			default:
				t.asIs = t.asIs || asIs
			}
			if speaks(&e, &t.SliceEndpoint) {
				t.SliceEndpoint = e
			}
			t.ports = append(t.ports, sl.Ports...)
			out[id] = t
		}
	}
	return out
}

func (f *facts) slicesPlane(svc string) *Plane {
	p := &Plane{map[Endpoint]Value{}, map[Endpoint]Value{}}
	for _, x := range f.bySlices(svc) {
		p.Want[x.Endpoint] = condition(x.ready, x.serving, x.terminating, x.ports)
	}
	for id, v := range f.mirrored(svc) {
		p.Want[id] = v
	}
	for id, t := range f.published(svc) {
		v := condition(t.Ready, t.Serving, t.Terminating, t.ports)
		if p.Had[id] = v; t.asIs {
			p.Want[id] = v
		}
	}
	return p
}

func (f *facts) endpointsPlane(svc string) *Plane {
	s, obj := f.services[svc], f.endpoints[svc]
	p := &Plane{f.byEndpoints(svc), map[Endpoint]Value{}}
	if obj == nil {
		return p
	}
	for _, a := range obj.Addresses {
		p.Had[Endpoint{uidOr(a.PodUID), a.IP.Unmap()}] = condition(a.Ready, a.Ready, false, a.Ports)
	}
	if s.Service != nil && (obj.Truncated || !s.hasSelector()) {
		p.Want = p.Had
	}
	return p
}

// speaks reports that of two entries of one address a tells who is behind it: as
// better, and a serving one always before one that is not.
func speaks(a, b *collect.SliceEndpoint) bool {
	if better(a, b) || better(b, a) {
		return better(a, b)
	}
	return a.Serving && !b.Serving
}

// speaker is who is behind an address by the slices of one moment: of several
// the better one, then the one with the lower UID.
func (f *facts) speaker(svc string, ip netip.Addr) (uid string, ok bool) {
	var best *told
	for id, t := range f.published(svc) {
		if id.IP != ip {
			continue
		}
		if best == nil || speaks(&t.SliceEndpoint, &best.SliceEndpoint) ||
			!speaks(&best.SliceEndpoint, &t.SliceEndpoint) && id.UID < uid {
			best, uid = &t, id.UID
		}
	}
	return uid, best != nil
}

// owner is who is behind an address in a node's rules now: whom the slices name,
// or named last, if the node has had the address ever since. One that came
// to the node after the slices had let go of it belongs to nobody who is known;
// what a first dump brings may have been there for long.
func (h *History) owner(svc, nodeName string, ip netip.Addr) string {
	for k := len(h.moments) - 1; k >= 0; k-- {
		m := h.moments[k]
		if uid, ok := m.facts.speaker(svc, ip); ok && m.facts.listed(collect.SourceEndpointSlices) {
			return uid
		}
		if m.facts.follows(nodeName) && !m.facts.routes(svc, nodeName, ip) {
			return Unknown
		}
	}
	return Unknown
}

// follows reports that a node's rules can be compared.
func (f *facts) follows(nodeName string) bool {
	_, dumped := f.rules[nodeName]
	return dumped && !f.nodeGone(nodeName) && f.listed(collect.SourceServices, collect.SourceEndpointSlices)
}

// routes reports that a node's rules have an address.
func (f *facts) routes(svc, nodeName string, ip netip.Addr) bool {
	for key, p := range f.rules[nodeName] {
		if key.Namespace+"/"+key.Service == svc && slices.ContainsFunc(p.Endpoints, func(ap netip.AddrPort) bool { return ap.Addr() == ip }) {
			return true
		}
	}
	return false
}

// Difference is one disagreement, as the Difference of timeline.
type Difference struct {
	Plane    string
	Endpoint Endpoint
	Kind     string
	Since    time.Time
	Counts   bool // for the Service's state
}

// Look returns how a plane stands now; nil when it cannot be compared.
func (h *History) Look(svc, plane string) *Plane { return h.now().planes[svc][plane] }

// Planes lists the planes of a Service that can be compared now.
func (h *History) Planes(svc string) (out []string) {
	for name := range h.now().planes[svc] {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// begin is the moment from which on a plane could be compared without a break.
func (h *History) begin(svc, plane string) int {
	k := len(h.moments) - 1
	for k > 0 && h.comparable(k-1, svc, plane) {
		k--
	}
	return k
}

// comparable reports whether the plane could be compared at moment k. A Service
// that was not there yet had and wanted nothing.
func (h *History) comparable(k int, svc, plane string) bool {
	f := h.moments[k].facts
	name, rules := strings.CutPrefix(plane, onNode)
	switch {
	case plane == Slices:
		return f.listed(collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices)
	case plane == Endpoints:
		return f.listed(collect.SourcePods, collect.SourceServices, collect.SourceEndpoints)
	case rules:
		return f.follows(name)
	}
	return false
}

// at returns a plane at moment k; an empty one before the Service was there.
func (h *History) at(k int, svc, plane string) *Plane {
	if p := h.moments[k].planes[svc][plane]; p != nil {
		return p
	}
	return &Plane{}
}

// Differences lists what differs now.
func (h *History) Differences(svc string) (out []Difference) {
	n := len(h.moments) - 1
	for _, plane := range h.Planes(svc) {
		now, begin := h.at(n, svc, plane), h.begin(svc, plane)
		for _, id := range now.endpoints() {
			w, g := now.Want[id], now.Had[id]
			if w == g {
				continue
			}
			since := n
			for k := n - 1; k >= begin; k-- {
				if !h.moments[k+1].e.At.After(h.moments[k].e.At) {
					continue // agreement that lasts no time is none
				}
				if !h.differs(k, svc, plane, id) {
					break
				}
				since = k
			}
			name, rules := strings.CutPrefix(plane, onNode)
			out = append(out, Difference{
				Plane: plane, Endpoint: id, Kind: h.kind(svc, plane, id, begin), Since: h.moments[since].e.At,
				Counts: plane != Endpoints && !(rules && h.now().facts.leftOut(name)),
			})
		}
	}
	return out
}

func (h *History) differs(k int, svc, plane string, id Endpoint) bool {
	p := h.at(k, svc, plane)
	return p.Want[id] != p.Had[id]
}

// kind names a difference. Frontends are "routable" whenever they are there.
func (h *History) kind(svc, plane string, id Endpoint, begin int) string {
	there := func(v Value) bool { return v.Routable || id == Endpoint{} && v.Text != "" }
	wasWanted := false
	for k := begin; k < len(h.moments); k++ {
		wasWanted = wasWanted || there(h.at(k, svc, plane).Want[id])
	}
	p := h.at(len(h.moments)-1, svc, plane)
	switch w, g := there(p.Want[id]), there(p.Had[id]); {
	case w && !g:
		return "missing"
	case g && !w && wasWanted:
		return "stale"
	case g && !w:
		return "unexpected"
	}
	return "changed"
}

// endpoints lists those that a plane has or wants.
func (p *Plane) endpoints() (out []Endpoint) {
	for id := range p.Want {
		out = append(out, id)
	}
	for id := range p.Had {
		if _, ok := p.Want[id]; !ok {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

func compare(a, b Endpoint) int {
	if c := a.IP.Compare(b.IP); c != 0 {
		return c
	}
	return strings.Compare(a.UID, b.UID)
}

// Count counts the endpoints that can be routed to.
func Count(m map[Endpoint]Value) (n int) {
	for _, v := range m {
		if v.Routable {
			n++
		}
	}
	return n
}

// Wanted counts the endpoints of a Service that should be routable by the pods'
// word, or, without a selector, by that of the slices: in each family the ready ones,
// else those that serve while they terminate.
func (h *History) Wanted(svc string) int {
	p := h.Look(svc, Slices)
	if p == nil {
		return 0
	}
	total := 0
	for _, four := range []bool{true, false} {
		ready, fallback := 0, 0
		for id, v := range p.Want {
			if id.IP.Is4() == four && v.Routable {
				ready++
			}
			if id.IP.Is4() == four && v.Fallback {
				fallback++
			}
		}
		if ready == 0 {
			ready = fallback
		}
		total += ready
	}
	return total
}
