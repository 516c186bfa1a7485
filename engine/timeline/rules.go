package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

type addr = netip.Addr

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

// sameFronts reports that frontsOf gives the same of two sorted lists.
func sameFronts(a, b []collect.RulePort) bool {
	return slices.EqualFunc(a, b, func(x, y collect.RulePort) bool {
		return x.RulePortKey == y.RulePortKey && x.Affinity == y.Affinity && (len(x.Endpoints) == 0) == (len(y.Endpoints) == 0) &&
			slices.Equal(x.Frontends, y.Frontends) && (x.Sources == nil) == (y.Sources == nil) && slices.Equal(x.Sources, y.Sources)
	})
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
	s.foldInto(out, ports)
	return out
}

// foldInto is foldRules into an empty map.
func (s *service) foldInto(out map[EndpointID]val, ports []collect.RulePort) {
	for i := range ports {
		word := ruleWord(&ports[i].RulePortKey)
		var last struct {
			from, to val
			port     uint16
		}
		for _, ep := range ports[i].Endpoints {
			ip := ep.Addr().Unmap()
			id := EndpointID{UID: s.ownerOf(ip), IP: ip}
			from := out[id]
			// Most are in the same sets with the same port.
			if last.to == absent || from != last.from || ep.Port() != last.port {
				last.from, last.port, last.to = from, ep.Port(), s.values.rule(from, word, ep.Port())
			}
			out[id] = last.to
		}
	}
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

// rerule brings what is wanted of the nodes' rules in line with the Service and
// its slices as they are now. root gives the path that a step of an endpoint
// belongs to; nil means a baseline.
func (ch *change) rerule(s *service, root func(EndpointID, direction) *path) {
	if !s.rulesKnown() {
		return
	}
	for _, g := range slices.Clone(s.groups) {
		ch.reruleGroup(g, root)
	}
	d := deltas{}
	for _, node := range s.ruleNodes {
		ch.reruleOn(s.rules[node], s.classOf(node), root, d)
	}
}

// deltas are the endpoints about which two classes differ.
type deltas map[[2]*ruleClass][]EndpointID

func (d deltas) between(from, to *ruleClass) []EndpointID {
	key := [2]*ruleClass{from, to}
	ids, ok := d[key]
	if !ok {
		ids = changedIDs(from, to)
		d[key] = ids
	}
	return ids
}

// reruleOn moves what is wanted of one plane on to the class to.
func (ch *change) reruleOn(p *plane, to *ruleClass, root func(EndpointID, direction) *path, d deltas) {
	ids := d.between(p.class, to)
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

// reruleGroup is rerule for the nodes of a group. Where it makes steps, the nodes
// leave the group, and are for the caller to look at.
func (ch *change) reruleGroup(g *plane, root func(EndpointID, direction) *path) {
	s := g.svc
	parts := map[*ruleClass][]*node{}
	if s.perNode() {
		g.eachMember(func(n *node) {
			to := s.classOf(n.name)
			parts[to] = append(parts[to], n)
		})
	} else {
		any := g.members()
		parts[s.classOf(any[0].name)] = any
	}
	for _, to := range slices.SortedFunc(maps.Keys(parts), func(a, b *ruleClass) int {
		return cmp.Compare(parts[a][0].index, parts[b][0].index)
	}) {
		switch moves := len(changedIDs(g.class, to)) > 0 || ch.refronts(g, to); {
		case !moves && g.class == nil:
			ch.reruleOn(g.split(parts[to]), to, root, deltas{})
		case !moves:
			if len(parts) == 1 {
				g.class = to // the same, by now
			} else if g.class != to {
				g.split(parts[to]).class = to
			}
		case g.live && root != nil:
			for _, n := range parts[to] {
				g.extract(n)
			}
		default:
			part := g.split(parts[to])
			if ch.open(part); part.group.n > 0 {
				ch.reruleOn(part, to, root, deltas{})
			}
		}
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

// fronts compares the frontends that a class wants with those that the plane's
// nodes have. agree says that they are the same as far as their rules can tell.
func (p *plane) fronts(class *ruleClass) (want, had val, agree bool) {
	s := p.svc
	if !class.told {
		class.told, class.fronts = true, frontsOf(class.ports)
		class.front = s.values.fronts(class.fronts)
	}
	if p.front == absent || !sameFronts(p.ports, p.frontPorts) {
		p.lastFronts = frontsOf(p.ports)
		p.front = s.values.fronts(p.lastFronts)
	}
	p.frontPorts = p.ports
	w, h := class.fronts, p.lastFronts
	sources := true
	if p.group != nil {
		sources = !p.group.sources
	} else if n := s.m.nodes[p.id.Node]; n != nil {
		sources = !n.sourcesLater
	}
	return class.front, p.front, frontsAgree(w, h, sources)
}

// refronts reports that refront would change something, were the class the
// plane's.
func (ch *change) refronts(p *plane, class *ruleClass) bool {
	want, had, agree := p.fronts(class)
	var is cell
	c := p.find(EndpointID{})
	if c != nil {
		is = *c
	}
	if agree {
		if c != nil && c.had == had && had != want {
			return true
		}
		had = want
	}
	return is.want != want || is.had != had
}

// refront brings the Service's own cell in line: its frontends.
func (ch *change) refront(p *plane, root func(EndpointID, direction) *path) {
	var pathOf func(direction) *path
	if root != nil {
		pathOf = func(d direction) *path { return root(EndpointID{}, d) }
	}
	v, hadVal, agree := p.fronts(p.class)
	if agree {
		if c := p.find(EndpointID{}); c != nil && c.had == hadVal && hadVal != v && len(c.open) == 0 {
			c = p.cell(EndpointID{})
			before := *c
			c.had = v // the same, as far as rules can tell
			p.update(c, before, ch.at)
		}
		hadVal = v
	}
	ch.setWant(p, EndpointID{}, v, pathOf)
	ch.setHad(p, EndpointID{}, hadVal)
}
