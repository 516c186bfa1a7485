package timeline

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// node is one node: the object, and what its rules were seen to be.
type node struct {
	name   string
	obj    *collect.Node // nil before it was seen
	exists bool
	gone   time.Time // since when it does not exist any more; zero for others

	ruled  bool // its rules are known
	dumped bool // all of them were told at some time
	// elsewhere: the rules that are read do not tell how the node routes
	// Services, and this is why; then they count as not known.
	elsewhere  string
	generation uint32
	unknown    []string
	// sourcesLater: its rules' layout has the sources that a load balancer's address
	// lets through only when there is something behind it.
	sourcesLater bool
	// loose are the rule ports of Services for which it has no plane, sorted.
	loose map[*service][]collect.RulePort
	// birth is its first dump; dumpSeq and dumpGen are of the latest, see
	// group. index is its own in sets of nodes, until it is forgotten.
	birth        *birth
	dumpSeq      uint64
	dumpGen      uint32
	index        int
	sync         *collect.SyncStep
	agent        *collect.AgentState
	proxy        *collect.ProxyState
	silences     []Silence // snapshots share the list
	syncFailed   time.Time // when a sync was last told to have failed
	proxyStarted time.Time // the last process, as far as one told
}

func (m *Model) node(name string) *node {
	n := m.nodes[name]
	if n == nil {
		n = &node{name: name}
		m.nodes[name] = n
		m.place(n)
		i, _ := slices.BinarySearch(m.nodeNames, name)
		m.nodeNames = slices.Insert(m.nodeNames, i, name)
	}
	return n
}

// place gives the node an index.
func (m *Model) place(n *node) {
	m.gens, m.clocks, m.ctx = nil, nil, nil
	if i := slices.Index(m.byIndex, nil); i >= 0 {
		n.index, m.byIndex[i] = i, n
		return
	}
	n.index = len(m.byIndex)
	m.byIndex = append(m.byIndex, n)
}

// forget drops a node that no plane is of.
func (m *Model) forget(name string) {
	for _, s := range m.services {
		s.single(name) // its index will be another's
	}
	m.byIndex[m.nodes[name].index] = nil
	delete(m.nodes, name)
	m.ctx = nil
	m.nodesDirty = true
}

func (n *node) ready() bool {
	return n.exists && n.obj.Ready != nil && n.obj.Ready.Status
}

// nodeGone reports that a node is known not to exist.
func (m *Model) nodeGone(name string) bool {
	if name == "" || !m.ready(collect.SourceNodes) {
		return false
	}
	n := m.nodes[name]
	return n == nil || !n.exists
}

// leftOut reports that a node does not count: it is gone or not ready.
func (m *Model) leftOut(name string) bool {
	if !m.ready(collect.SourceNodes) {
		return false
	}
	n := m.nodes[name]
	return n == nil || !n.ready()
}

func (m *Model) nodeRef(name string) desired.NodeRef {
	ref := desired.NodeRef{Name: name}
	if n := m.nodes[name]; n != nil && n.obj != nil {
		ref.Zone, ref.Addresses = n.obj.Zone, n.obj.Addresses
	}
	return ref
}

const generationWord = "generation "

func generationNote(g uint32) string { return generationWord + strconv.FormatUint(uint64(g), 10) }

// generationIn is the generation that a note of rules tells.
func generationIn(note string) uint32 {
	g, err := strconv.ParseUint(strings.TrimPrefix(note, generationWord), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(g)
}

// onNode takes a Node.
func (ch *change) onNode() {
	m, e := ch.m, ch.e
	n := m.node(e.Object.Name)
	existed, wasReady, zone := n.exists, n.ready(), ""
	var addresses []netip.Addr
	if n.obj != nil {
		zone, addresses = n.obj.Zone, n.obj.Addresses
	}
	n.obj = e.Payload.(*collect.Node)
	if n.obj.Zone != zone || !slices.Equal(n.obj.Addresses, addresses) {
		for _, s := range m.services {
			s.unclass()
		}
	}
	n.exists = e.Op != collect.OpDeleted && e.Op != collect.OpGone
	if n.gone = (time.Time{}); existed && !n.exists {
		n.gone = ch.at
	}
	n.listen(ch.at)
	m.nodesDirty = true
	if existed == n.exists && wasReady == n.ready() && zone == n.obj.Zone {
		return
	}
	m.coverageChanged()
	if existed != n.exists && m.ready(collect.SourceNodes) {
		ch.rehouse(n.name, n.exists)
		for _, s := range m.services {
			switch {
			case !n.exists && s.hasRules(n.name):
				ch.touch(s)
				ch.dropRules(s, n.name)
			case n.exists && n.ruled && !s.hasRules(n.name):
				ch.touch(s)
				ch.plantRules(s, n.name)
			}
		}
	}
	if n.exists && n.obj.Zone != zone {
		for _, s := range m.services {
			if s.exists && s.hasRules(n.name) && s.perNode() {
				ch.touch(s)
				ch.rerule(s, ch.zoneRoots(s))
			}
		}
	}
	ch.exclude(n.name)
}

// listen follows that nothing is heard of the node, or something again.
func (n *node) listen(at time.Time) {
	last := len(n.silences) - 1
	open := last >= 0 && n.silences[last].To.IsZero()
	silent := n.exists && !n.obj.Heard.IsZero()
	switch {
	case silent && !open:
		n.silences = append(slices.Clip(n.silences), Silence{From: n.obj.Heard.Round(0).UTC()})
	case !silent && open && n.exists:
		n.silences = slices.Clone(n.silences)
		n.silences[last].To = at
	}
}

// exclude counts the node's planes in or out.
func (ch *change) exclude(node string) {
	out := ch.m.leftOut(node)
	n := ch.m.nodes[node]
	for _, s := range ch.m.services {
		if p := s.rules[node]; p != nil {
			if p.excluded != out {
				ch.touch(s)
				p.setExcluded(out)
			}
		} else if g := s.groupOf(n); out && g != nil && !g.counts.Agrees() {
			// Such a one does not count, while the others of its group do.
			ch.touch(s)
			g.extract(n)
		}
	}
}

// setExcluded says whether the plane's differences count for the Service.
func (p *plane) setExcluded(out bool) {
	if p.excluded == out {
		return
	}
	p.recount(func() { p.excluded = out })
}

// rehouse asks anew what is wanted of the pods of a node that came or went: the
// EndpointSlice controller leaves out pods whose node does not exist.
func (ch *change) rehouse(name string, exists bool) {
	c := CauseNodeGone
	if exists {
		c = CauseNodeAdded
	}
	var cause func(*podState, *wantDelta) Cause
	if !ch.baseline {
		cause = func(*podState, *wantDelta) Cause { return c }
	}
	byService := map[*service][]*podState{}
	for _, p := range slices.SortedFunc(maps.Keys(ch.m.podsBy[name]), comparePods) {
		for _, s := range p.selecting {
			byService[s] = append(byService[s], p)
		}
	}
	for _, s := range sortedServices(byService) {
		ch.touch(s)
		ch.rewant(s, byService[s], cause)
	}
}

func (ch *change) zoneRoots(s *service) func(EndpointID, direction) *path {
	if ch.baseline {
		return nil
	}
	return func(id EndpointID, d direction) *path {
		return s.pathFor(ch.rootHere(), id, CauseZoneChanged, opOf(d), ch.moment())
	}
}

// onSyncStep takes a step of a node's embedded rule sync.
func (ch *change) onSyncStep() {
	st := ch.e.Payload.(*collect.SyncStep)
	n := ch.m.node(st.Node)
	if n.sync = st; st.Step == "failed" {
		n.syncFailed = ch.at
	}
	ch.m.nodesDirty = true
	text := st.Step
	if st.Detail != "" {
		text += ": " + st.Detail
	}
	mark := Mark{At: ch.at, Kind: "sync", Node: st.Node, Text: text, Step: st}
	if s := ch.m.ns(ch.e.Object.Namespace).services[ch.e.Object.Name]; s != nil {
		s.mark(mark)
		return
	}
	ch.m.mark(mark)
}

// onAgentState takes what a node's agent says about itself.
func (ch *change) onAgentState() {
	st := ch.e.Payload.(*collect.AgentState)
	ch.m.node(st.Node).agent = st
}

// onProxyState takes what a node's kube-proxy says about itself. No lag is ever
// computed from that.
func (ch *change) onProxyState() {
	st := ch.e.Payload.(*collect.ProxyState)
	n := ch.m.node(st.Node)
	if n.proxy != nil && st.SyncFailures > n.proxy.SyncFailures {
		n.syncFailed = ch.at
	}
	if !st.Started.IsZero() {
		if !n.proxyStarted.IsZero() && st.Started.Sub(n.proxyStarted) > startDoubt {
			// Another process: it knows nothing of changes before, and writes
			// all rules anew.
			ch.m.mark(Mark{At: st.Started.UTC(), Kind: "proxy", Node: st.Node, Text: "kube-proxy started again"})
		}
		n.proxyStarted = st.Started
	}
	n.proxy = st
}

// nodeViews lists the nodes by name.
func (m *Model) nodeViews() []Node {
	if !m.nodesDirty {
		return m.nodesView
	}
	m.nodesDirty = false
	var ghosts []*service // known by rules only
	for _, s := range m.services {
		if s.spec == nil && m.ready(collect.SourceServices) {
			ghosts = append(ghosts, s)
		}
	}
	out := make([]Node, 0, len(m.nodes))
	for _, name := range m.nodeNames {
		n := m.nodes[name]
		v := Node{Name: name, Exists: n.exists, Ready: n.ready(), Rules: m.ruleKnowledge(name), Generation: n.generation, Sync: n.sync, Agent: n.agent, Proxy: n.proxy, SyncFailed: n.syncFailed, Silences: n.silences}
		if n.obj != nil {
			v.Zone = n.obj.Zone
			if r := n.obj.Ready; r != nil {
				v.ReadySince = r.Since
			}
		}
		if s := m.sources[collect.RulesSource(name)]; s != nil {
			v.Vouched, v.Clock = s.vouched, s.clock
		}
		v.Unknown = append([]string{}, n.unknown...)
		for _, s := range ghosts {
			if len(s.portsOf(n)) > 0 {
				v.Unknown = append(v.Unknown, "rules of Service "+s.namespace+"/"+s.name+", which does not exist")
				if s.heardOf.After(v.UnknownSince) {
					v.UnknownSince = s.heardOf
				}
			}
		}
		out = append(out, v)
	}
	m.nodesView = out
	return out
}
