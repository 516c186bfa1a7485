package timeline

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

type addr = netip.Addr

// ruleClass is what the rules of a set of nodes should hold for one Service.
// Without Local policies and hints all nodes are one class.
type ruleClass struct {
	want  map[EndpointID]val
	ports []collect.RulePort
}

// front is one address that leads to the Service.
type front struct {
	port   string
	proto  collect.Protocol
	family collect.Family
	addr   netip.AddrPort
	policy collect.Policy
	// empty: nothing is behind it, so neither its policy nor its session
	// affinity can be told.
	empty bool
	stay  time.Duration // session affinity
	from  string        // the only sources let through
}

func compareFronts(a, b front) int {
	return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.proto, b.proto), cmp.Compare(a.family, b.family),
		a.addr.Compare(b.addr))
}

// frontsOf lists the frontends. The kind of an address is left aside: rules tell
// a load balancer's address from an external one no better.
func frontsOf(ports []collect.RulePort) []front {
	var out []front
	for i := range ports {
		p := &ports[i]
		for _, f := range p.Frontends {
			x := front{p.Port, p.Protocol, p.Family, f.Addr, p.Policy, len(p.Endpoints) == 0, p.Affinity, ""}
			if f.Kind == collect.FrontendLoadBalancer && p.Sources != nil {
				x.from = fmt.Sprint(p.Sources)
			}
			out = append(out, x)
		}
	}
	slices.SortFunc(out, compareFronts)
	return out
}

// frontsAgree compares frontends. One that leads nowhere is only rejected or
// dropped, under no particular policy; sources tells whether the rules have the
// only sources let through for such a one too.
func frontsAgree(a, b []front, sources bool) bool {
	return slices.EqualFunc(a, b, func(x, y front) bool {
		empty := x.empty || y.empty
		return compareFronts(x, y) == 0 && (x.from == y.from || empty && !sources) &&
			(x.policy == y.policy && x.stay == y.stay || empty)
	})
}

func (v *values) fronts(fs []front) val {
	x := absent
	for _, f := range fs {
		x = v.fold(x, "frontend "+f.port+"/"+string(f.proto)+"/"+string(f.policy)+" "+f.addr.String()+f.more(), 0)
	}
	return x
}

// more is what a frontend does beyond leading to the endpoints.
func (f *front) more() (out string) {
	if f.stay > 0 {
		out = " stay " + f.stay.String()
	}
	if f.from != "" {
		out += " from " + f.from
	}
	return out
}

// fold gives the values of the endpoints of rule ports, which must be sorted.
func (s *service) foldRules(ports []collect.RulePort) map[EndpointID]val {
	n := 0
	for i := range ports {
		n = max(n, len(ports[i].Endpoints))
	}
	out := make(map[EndpointID]val, n)
	for i := range ports {
		word := ruleWord(&ports[i].RulePortKey)
		for _, ep := range ports[i].Endpoints {
			ip := ep.Addr().Unmap()
			id := EndpointID{UID: s.ownerOf(ip), IP: ip}
			out[id] = s.values.rule(out[id], word, ep.Port())
		}
	}
	return out
}

func (s *service) ownerOf(ip netip.Addr) string {
	if uid, ok := s.owner[ip]; ok {
		return uid
	}
	return UnknownUID
}

// rulesKnown reports that what the rules should hold can be told.
func (s *service) rulesKnown() bool {
	return s.m.ready(collect.SourceServices, collect.SourceEndpointSlices)
}

// perNode reports that nodes differ in what they should hold.
func (s *service) perNode() bool {
	if s.spec.InternalPolicy == string(collect.PolicyLocal) || s.spec.ExternalPolicy == string(collect.PolicyLocal) {
		return true
	}
	for _, sl := range s.epSlice {
		for i := range sl.slice.Endpoints {
			if e := &sl.slice.Endpoints[i]; len(e.HintNodes) > 0 || len(e.HintZones) > 0 {
				return true
			}
		}
	}
	return false
}

// rerule brings what is wanted of the nodes' rules in line with the Service and
// its slices as they are now. root gives the path that a step of an endpoint
// belongs to; nil means a baseline.
func (ch *change) rerule(s *service, root func(EndpointID, direction) *path) {
	ch.reruleOn(s, s.ruleNodes, root)
}

// reruleOn is rerule for some nodes.
func (ch *change) reruleOn(s *service, nodes []string, root func(EndpointID, direction) *path) {
	if !s.rulesKnown() || len(nodes) == 0 {
		return
	}
	perNode := s.exists && s.perNode()
	classes := map[string]*ruleClass{}
	classOf := func(node string) *ruleClass {
		key := ""
		if perNode {
			key = node
		}
		c := classes[key]
		if c == nil {
			c = &ruleClass{}
			if s.exists {
				c.ports = desired.Rules(desired.ServiceRef{Namespace: s.namespace, Name: s.name, Service: s.spec}, s.sliceObjects(), s.m.nodeRef(node))
			}
			c.want = s.foldRules(c.ports)
			classes[key] = c
		}
		return c
	}
	type pair struct{ from, to *ruleClass }
	deltas := map[pair][]EndpointID{}
	for _, node := range nodes {
		p := s.rules[node]
		to := classOf(node)
		ids, ok := deltas[pair{p.class, to}]
		if !ok {
			ids = changedIDs(p.class, to)
			deltas[pair{p.class, to}] = ids
		}
		p.class = to
		for _, id := range ids {
			var pathOf func(direction) *path
			if root != nil {
				pathOf = func(d direction) *path { return root(id, d) }
			}
			ch.setWant(p, id, to.want[id], pathOf)
		}
		ch.refront(p, root)
	}
}

func changedIDs(from, to *ruleClass) []EndpointID {
	var ids []EndpointID
	if from == to {
		return nil
	}
	if from != nil {
		for id, v := range from.want {
			if to.want[id] != v {
				ids = append(ids, id)
			}
		}
	}
	for id := range to.want {
		if from == nil || from.want[id] == absent {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// refront brings the Service's own cell in line: its frontends.
func (ch *change) refront(p *plane, root func(EndpointID, direction) *path) {
	s := p.svc
	want := frontsOf(p.class.ports)
	var pathOf func(direction) *path
	if root != nil {
		pathOf = func(d direction) *path { return root(EndpointID{}, d) }
	}
	had := frontsOf(s.m.ruled(p.id.Node, s))
	v, hadVal := s.values.fronts(want), s.values.fronts(had)
	n := s.m.nodes[p.id.Node]
	if frontsAgree(want, had, n == nil || !n.sourcesLater) {
		if c := p.cells[EndpointID{}]; c != nil && c.had == hadVal && hadVal != v && len(c.open) == 0 {
			before := *c
			c.had = v // the same, as far as rules can tell
			p.update(c, before, ch.at)
		}
		hadVal = v
	}
	ch.setWant(p, EndpointID{}, v, pathOf)
	ch.setHad(p, EndpointID{}, hadVal)
}

// ruled returns the rule ports that a node has for the Service, sorted.
func (m *Model) ruled(name string, s *service) []collect.RulePort {
	if n := m.nodes[name]; n != nil {
		return n.ports[s]
	}
	return nil
}

// onRules takes one generation of a node's rules.
func (ch *change) onRules() {
	m, r := ch.m, ch.e.Payload.(*collect.Rules)
	name := r.Node
	n := m.node(name)
	elsewhere := r.Elsewhere()
	first := !n.ruled && elsewhere == ""
	if n.dumped = n.dumped || r.Baseline; !n.dumped {
		// What it changes is not known: nothing has told what there was, or
		// that was too long ago to be kept.
		return
	}
	if r.Baseline && !first && ch.notBefore.IsZero() {
		// A dump beside the notifications: what differs came about since
		// the source last vouched.
		ch.notBefore = ch.src.vouched
	}
	n.generation = r.Generation
	n.unknown = r.Unknown
	n.sourcesLater = strings.HasPrefix(r.Layout, collect.LayoutIPTables)
	if elsewhere != n.elsewhere {
		n.elsewhere = elsewhere
		m.coverageChanged()
	}
	if n.ruled && elsewhere != "" {
		for _, s := range m.services {
			if s.rules[name] != nil {
				ch.touch(s)
				ch.dropRules(s, name)
			}
		}
	}
	n.ruled = elsewhere == ""
	if r.Baseline {
		ch.src.closeGap(m, ch.at)
	}
	m.nodesDirty = true
	if first {
		m.coverageChanged()
	}

	byService := map[*service][]collect.RulePort{}
	for i := range r.Ports {
		s := m.service(r.Ports[i].Namespace, r.Ports[i].Service)
		byService[s] = append(byService[s], r.Ports[i])
	}
	if r.Baseline {
		for s := range n.ports {
			if _, ok := byService[s]; !ok {
				byService[s] = nil
			}
		}
	}
	if first {
		ch.baseline = true
		for _, s := range m.services {
			if _, ok := byService[s]; !ok {
				byService[s] = nil
			}
		}
	}
	for _, s := range sortedServices(byService) {
		ch.touch(s)
		if n.ruled && !first && s.rules[name] == nil && !m.nodeGone(name) {
			ch.plantRules(s, name) // with nothing, as it was before
		}
		var had []collect.RulePort
		if !r.Baseline {
			had = n.ports[s]
		}
		had = mergePorts(had, byService[s])
		if len(had) == 0 {
			delete(n.ports, s)
		} else {
			n.ports[s] = had
		}
		switch {
		case m.nodeGone(name), !n.ruled:
		case first:
			ch.plantRules(s, name)
		default:
			ch.reread(s, name)
		}
	}
}

// mergePorts applies the new state of some ports to a sorted list.
func mergePorts(had, news []collect.RulePort) []collect.RulePort {
	out := make([]collect.RulePort, 0, len(had)+len(news))
	out = append(out, had...)
	for _, p := range news {
		i, ok := slices.BinarySearchFunc(out, p.RulePortKey, func(x collect.RulePort, k collect.RulePortKey) int { return x.RulePortKey.Compare(k) })
		switch {
		case ok && p.Empty():
			out = slices.Delete(out, i, i+1)
		case ok:
			out[i] = p
		case !p.Empty():
			out = slices.Insert(out, i, p)
		}
	}
	return out
}

// plantRules makes the plane of a node's rules for a Service and brings it live:
// what is there and what is wanted now is the baseline.
func (ch *change) plantRules(s *service, node string) {
	p := s.rulePlane(node)
	p.live = false
	p.know(Known)
	p.setExcluded(ch.m.leftOut(node))
	ch.reread(s, node)
	ch.reruleOn(s, []string{node}, nil)
	p.live = s.rulesKnown()
	p.touched = true
}

// reread takes the node's rules for the Service as they are now.
func (ch *change) reread(s *service, node string) {
	n, p := ch.m.nodes[node], s.rulePlane(node)
	had := s.foldRules(n.ports[s])
	if p.live {
		s.disown(p, had)
	}
	p.note = generationNote(n.generation)
	p.dirty = true // it shows the ports
	p.know(Known)
	ids := make([]EndpointID, 0, len(had))
	for id := range had {
		ids = append(ids, id)
	}
	for id, c := range p.cells {
		if _, ok := had[id]; !ok && c.had != absent && (id != EndpointID{}) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	for _, id := range ids {
		ch.setHad(p, id, had[id])
	}
	if p.class != nil {
		ch.refront(p, nil)
	}
}

// disown gives addresses that came to the node's rules to nobody, where the one who
// had them last is gone from the slices and from the node: somebody else has them
// now, and a slice will say who.
func (s *service) disown(p *plane, had map[EndpointID]val) {
	for id, v := range had {
		nobody := EndpointID{UID: UnknownUID, IP: id.IP}
		if id == nobody || !s.vanished(p, id) && !p.has(nobody) {
			continue
		}
		delete(had, id)
		had[nobody] = v
		if s.strays == nil {
			s.strays = map[addr]struct{}{}
		}
		s.strays[id.IP] = struct{}{}
	}
}

// vanished reports that an endpoint is in no slice any more, and on this plane
// neither had nor wanted.
func (s *service) vanished(p *plane, id EndpointID) bool {
	if s.slices.has(id) {
		return false
	}
	c := p.cells[id]
	return c == nil || c.had == absent && c.want == absent
}

func (p *plane) has(id EndpointID) bool {
	c := p.cells[id]
	return c != nil && c.had != absent
}

// handOver renames what the nodes have at an address from one endpoint to
// another.
func (ch *change) handOver(s *service, ip addr, from, to string) {
	old, now := EndpointID{UID: from, IP: ip}, EndpointID{UID: to, IP: ip}
	real := from != UnknownUID
	for _, node := range s.ruleNodes {
		p := s.rules[node]
		c := p.cells[old]
		if c == nil || c.had == absent {
			continue
		}
		d := p.cell(now)
		beforeOld, beforeNew := *c, *d
		d.had, d.hadAt, d.hadNB, d.hadBaseline = c.had, c.hadAt, c.hadNB, c.hadBaseline || real
		c.had, c.hadAt, c.hadNB = absent, ch.at, ch.notBefore
		if real {
			if ch.handedOver == nil {
				ch.handedOver = map[*cell]bool{}
			}
			ch.handedOver[c] = true
		}
		for _, st := range c.open {
			ch.close(st, StatusHandedOver)
		}
		clear(c.open)
		c.open = c.open[:0]
		p.update(c, beforeOld, ch.at)
		p.update(d, beforeNew, ch.at)
	}
}
