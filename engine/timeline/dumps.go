package timeline

import (
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

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
	n.generation, m.gens = r.Generation, nil
	n.unknown = r.Unknown
	n.lay(m, r.Layout)
	if r.Baseline || first {
		n.dumpSeq, n.dumpGen = m.applied, r.Generation
	}
	if elsewhere != n.elsewhere {
		n.elsewhere = elsewhere
		m.coverageChanged()
	}
	if n.ruled && elsewhere != "" {
		for _, s := range m.services {
			if s.hasRules(name) {
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
		ch.baseline = true
		n.birth = &birth{at: ch.at, gen: r.Generation, clock: m.clockErrorOf(name)}
	}

	for _, x := range ch.ruledServices(n, m.portsByService(r.Ports), first, r.Baseline) {
		ch.touch(x.svc)
		ch.takePorts(x.svc, n, x.ports, first, r.Baseline)
	}
}

// servicePorts are what a generation says of one Service.
type servicePorts struct {
	svc   *service
	ports []collect.RulePort
}

func compareServicePorts(a, b servicePorts) int { return compareServices(a.svc, b.svc) }

// portsByService gives the ports of each Service, by name, as parts of the list where
// they stand together.
func (m *Model) portsByService(ports []collect.RulePort) []servicePorts {
	out := make([]servicePorts, 0, 1)
	for i := 0; i < len(ports); {
		end := i + 1
		for end < len(ports) && ports[end].Service == ports[i].Service && ports[end].Namespace == ports[i].Namespace {
			end++
		}
		out = append(out, servicePorts{m.service(ports[i].Namespace, ports[i].Service), ports[i:end:end]})
		i = end
	}
	slices.SortStableFunc(out, compareServicePorts)
	all := out[:0]
	for _, x := range out {
		if n := len(all); n > 0 && all[n-1].svc == x.svc {
			all[n-1].ports = append(all[n-1].ports, x.ports...)
			continue
		}
		all = append(all, x)
	}
	return all
}

// ruledServices are those that a node's generation speaks of, by name. A dump
// also speaks of those that it does not list.
func (ch *change) ruledServices(n *node, listed []servicePorts, first, baseline bool) []servicePorts {
	if !first && !baseline {
		return listed
	}
	var out []servicePorts
	for _, s := range ch.m.services {
		switch x := (servicePorts{svc: s}); {
		case len(listed) > 0 && listed[0].svc == s:
			out, listed = append(out, listed[0]), listed[1:]
		case first || len(s.portsOf(n)) > 0:
			out = append(out, x)
		}
	}
	return out
}

// takePorts takes what a generation says of one Service.
func (ch *change) takePorts(s *service, n *node, news []collect.RulePort, first, baseline bool) {
	m, name := ch.m, n.name
	counts := n.ruled && !m.nodeGone(name)
	if counts && !first && !s.hasRules(name) {
		ch.plantRules(s, name) // with nothing, as it was before
	}
	if (first || baseline) && plain(news) {
		if counts && first && ch.joins() && len(n.loose[s]) == 0 {
			ch.plantFirst(s, n, news)
			return
		}
		if g := s.groupOf(n); counts && !first && g != nil && samePorts(g.ports, news) && ch.rereads(g) {
			return
		}
	}
	var had []collect.RulePort
	if !baseline {
		had = s.portsOf(n)
	}
	had = mergePorts(had, news)
	if counts && first {
		s.rulePlane(name)
	}
	s.setPorts(n, had)
	switch {
	case !counts:
	case first:
		ch.plantRules(s, name)
	default:
		ch.reread(s, name)
	}
}

// plain reports that the ports are as they are kept: sorted, none empty.
func plain(ports []collect.RulePort) bool {
	for i := range ports {
		if ports[i].Empty() || i > 0 && ports[i-1].RulePortKey.Compare(ports[i].RulePortKey) >= 0 {
			return false
		}
	}
	return true
}

// mergePorts applies the new state of some ports to a sorted list.
func mergePorts(had, news []collect.RulePort) []collect.RulePort {
	out := slices.Clone(had)
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

// portsOf are the rule ports that a node has for the Service, sorted.
func (s *service) portsOf(n *node) []collect.RulePort {
	if p := s.rules[n.name]; p != nil {
		return p.ports
	}
	if g := s.groupOf(n); g != nil {
		return g.ports
	}
	return n.loose[s]
}

// setPorts keeps the rule ports of a node: with its plane, which is of the node
// alone then, or with the node where there is none.
func (s *service) setPorts(n *node, ports []collect.RulePort) {
	if len(ports) == 0 {
		ports = nil
	}
	if p := s.single(n.name); p != nil {
		p.ports = ports
		return
	}
	if len(ports) == 0 {
		delete(n.loose, s)
		return
	}
	if n.loose == nil {
		n.loose = map[*service][]collect.RulePort{}
	}
	n.loose[s] = ports
}

// lay takes the layout of the node's rules.
func (n *node) lay(m *Model, layout string) {
	later := strings.HasPrefix(layout, collect.LayoutIPTables)
	if later == n.sourcesLater {
		return
	}
	n.sourcesLater = later
	for _, s := range m.services {
		s.single(n.name)
	}
}
