package timeline

import (
	"slices"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline/graph"
)

// Model takes events in and says what is known. It belongs to one goroutine.
type Model struct {
	opt     Options
	session collect.Session
	seq     uint64
	first   time.Time
	now     time.Time // the latest time seen
	at      time.Time // of the event being applied
	maxRV   uint64
	dropped int
	buf     reorder
	inv     inversions

	sources   map[collect.SourceID]*source
	gaps      []*Gap
	namespace map[string]*namespace
	podsByUID map[string]*podState
	podsBy    map[string]map[*podState]struct{} // node -> pods on it
	nodes     map[string]*node
	nodeNames []string             // sorted keys of nodes
	byIndex   []*node              // by node.index, nil for those that are free
	pasts     map[string]*toldPast // by node
	loads     map[loadKey]*workload
	termingBy map[string]int        // owner UID -> terminating pods that still count
	services  []*service            // by namespace, name
	probes    map[string]*podProbes // by pod UID
	pulls     map[string][]Pull     // by pod UID
	podByIP   map[addr]*podState    // who was given an address last
	marks     series[Mark]
	faults    []Fault            // by their beginning; snapshots share it
	narration *collect.Narration // the last one, nil before any and after the last
	standing  standing
	reconcile *collect.ReconcileStep
	// controllers and work are shared with snapshots: replaced, never changed.
	controllers *collect.ControllerState
	work        []ControllerWork

	// coverage of Services that kube-proxy routes, until something changes.
	coverage   *Coverage
	needs      []collect.SourceID
	expected   map[string]bool
	nextRetain time.Time
	nodesView  []Node
	nodesDirty bool
	loadsView  map[string]Workload
	ctx        *viewContext `graph:"-"` // for views, until something in it changes
	stamps     uint64       // of rulesViews
	gens       []uint32     // see gensNow and clocksNow
	clocks     []clockError
	// applied counts the events that were applied, cut is from when on
	// things are kept, by the last retention.
	applied uint64
	cut     time.Time
	// had is what reread made last, for its room.
	had map[EndpointID]val `graph:"-"`
	// written is what CheckpointAgain goes on with.
	written *graph.Writer[Model] `graph:"-"`
	// podsView is Snapshot.Unselected, nil when it has to be made anew.
	podsView map[string][]PodFacts `graph:"-"`
}

// New returns a Model that has seen nothing.
func New(o Options) *Model {
	o = o.withDefaults()
	return &Model{
		opt:       o,
		buf:       reorder{window: o.ReorderWindow, keys: map[collect.SourceID]time.Time{}},
		inv:       inversions{recent: map[collect.SourceID]*recentEvents{}, pair: map[[2]collect.SourceID]time.Duration{}},
		sources:   map[collect.SourceID]*source{},
		namespace: map[string]*namespace{},
		podsByUID: map[string]*podState{},
		podsBy:    map[string]map[*podState]struct{}{},
		nodes:     map[string]*node{},
		pasts:     map[string]*toldPast{},
		loads:     map[loadKey]*workload{},
		termingBy: map[string]int{},
		probes:    map[string]*podProbes{},
		pulls:     map[string][]Pull{},
		podByIP:   map[addr]*podState{},
		standing:  standing{nodes: map[string]*series[nodeChange]{}},
	}
}

// Apply takes one event in. Events of one source must come in its order; those
// of different sources in about the order of their At, which is what the
// reordering window is for. What has been applied shows in the next Snapshot;
// an event is held back until later ones, or an Advance, have moved time past
// the window.
func (m *Model) Apply(e collect.Event) {
	// Monotonic readings do not survive a recording, and a replay must come to
	// the same numbers.
	e.At = e.At.Round(0).UTC()
	if !e.NotBefore.IsZero() {
		e.NotBefore = e.NotBefore.Round(0).UTC()
	}
	if e.Seq == 0 {
		e.Seq = m.seq + 1
	}
	m.seq = e.Seq
	if m.first.IsZero() || e.At.Before(m.first) {
		m.first, m.ctx = e.At, nil
	}
	if e.At.After(m.now) {
		m.now = e.At
	}
	switch p := e.Payload.(type) {
	case *collect.Session:
		m.session = *p
		m.coverageChanged()
	case *collect.Advance, nil:
	case *collect.ClockBound:
		// From here on events come through a log, later than from a watch.
		m.buf.window = max(m.buf.window, m.opt.LogWindow)
		m.buf.push(e)
	default:
		m.buf.push(e)
	}
	for {
		next, ok := m.buf.pop(m.now)
		if !ok {
			break
		}
		m.apply(next)
	}
	m.retain()
}

// ReorderWindow is how long an event is held back now. It grows to
// Options.LogWindow with the first event that came through a log.
func (m *Model) ReorderWindow() time.Duration { return m.buf.window }

// handlers say what is done about each payload, by its wire name.
var handlers = map[string]func(*change){
	(*collect.Pod)(nil).Type():              (*change).onPod,
	(*collect.Service)(nil).Type():          (*change).onService,
	(*collect.EndpointSlice)(nil).Type():    (*change).onSlice,
	(*collect.Endpoints)(nil).Type():        (*change).onEndpoints,
	(*collect.Node)(nil).Type():             (*change).onNode,
	(*collect.Workload)(nil).Type():         (*change).onWorkload,
	(*collect.KubeEvent)(nil).Type():        (*change).onKubeEvent,
	(*collect.Rules)(nil).Type():            (*change).onRules,
	(*collect.Vouch)(nil).Type():            (*change).onVouch,
	(*collect.SourceState)(nil).Type():      (*change).onSourceState,
	(*collect.Gap)(nil).Type():              (*change).onGap,
	(*collect.Action)(nil).Type():           (*change).onAction,
	(*collect.Fault)(nil).Type():            (*change).onFault,
	(*collect.Connections)(nil).Type():      (*change).onConnections,
	(*collect.ConnectionFailed)(nil).Type(): (*change).onConnectionFailed,
	(*collect.Narration)(nil).Type():        (*change).onNarration,
	(*collect.ReconcileStep)(nil).Type():    (*change).onReconcileStep,
	(*collect.ControllerState)(nil).Type():  (*change).onControllerState,
	(*collect.SyncStep)(nil).Type():         (*change).onSyncStep,
	(*collect.ClockBound)(nil).Type():       (*change).onClockBound,
	(*collect.AgentState)(nil).Type():       (*change).onAgentState,
	(*collect.ProxyState)(nil).Type():       (*change).onProxyState,
}

// change is one event being applied.
type change struct {
	m         *Model
	e         *collect.Event
	at        time.Time
	notBefore time.Time
	src       *source
	// baseline: the event tells what is there, not that it came to be so.
	baseline bool

	// satisfied are the steps of the slices plane that this event's slice
	// satisfied: by endpoint, and all in the order in which they were made.
	satisfied    map[EndpointID][]*step
	satisfiedAll []*step
	// handedOver are endpoints in a node's rules whose address went over to
	// another one.
	handedOver map[*cell]bool
	// write is the event of a slice that this is, nil for others.
	write *sliceWrite
	// serviceCause is what an event of a Service did to hand-made Endpoints.
	serviceCause Cause
	svcs         []*service // touched, to be recorded
}

func (m *Model) apply(e collect.Event) {
	if p, ok := e.Payload.(*collect.RulesPast); ok {
		m.onRulesPast(p, e.At) // no change: nothing else may come of it
		return
	}
	m.at = e.At
	m.applied++
	m.maxRV = max(m.maxRV, e.ResourceVersion)
	ch := &change{m: m, e: &e, at: e.At, notBefore: e.NotBefore, src: m.source(e.Source)}
	if g := ch.src.gap; g != nil && !isKube(e.Source) && !e.NotBefore.IsZero() && g.From.Before(e.NotBefore) {
		ch.notBefore = g.From // something was lost before that, too
	}
	ch.classifyEvent()
	if h := handlers[e.Payload.Type()]; h != nil {
		h(ch)
	}
	switch e.Payload.(type) {
	case *collect.Vouch, *collect.SourceState, *collect.Gap, *collect.ClockBound: // say so themselves
	default:
		ch.src.vouch(e.At)
		ch.m.nodesDirty = ch.m.nodesDirty || !isKube(e.Source)
	}
	ch.finish()
	m.recordStanding(ch.at)
}

// classifyEvent tells a baseline from news.
func (ch *change) classifyEvent() {
	e := ch.e
	if !isKube(e.Source) {
		return
	}
	switch {
	case e.Op == collect.OpNone:
	case !ch.src.synced:
		ch.baseline = true
	case e.Op == collect.OpListed || e.Op == collect.OpGone:
		// Found by a list after an interruption.
		if ch.notBefore.IsZero() {
			ch.notBefore = ch.src.vouched
		}
	default:
		if e.ResourceVersion != 0 && ch.notBefore.IsZero() {
			ch.m.inv.observe(e.Source, e.ResourceVersion, e.At)
		}
	}
}

// rootHere makes the event itself a root.
func (ch *change) rootHere() root {
	id := "e" + strconv.FormatUint(ch.e.Seq, 10)
	if ch.e.ResourceVersion != 0 {
		// Versions are the same in every order of arrival; sequence
		// numbers are not.
		id = "r" + strconv.FormatUint(ch.e.ResourceVersion, 10)
	}
	return root{id: id, source: ch.e.Source, at: ch.at, notBefore: ch.notBefore}
}

// finish records what the event did to planes and Services.
func (ch *change) finish() {
	for _, s := range ch.svcs {
		for _, p := range []*plane{s.slices, s.endpoints} {
			p.writeArrivals()
			p.record(ch.at, ch.baseline)
		}
		ch.recordRules(s)
		s.recordEpisode(ch.at)
		s.inChange = false
	}
}

// touch notes that the event concerns the Service, so that its planes are
// recorded in the end.
func (ch *change) touch(s *service) {
	if !s.inChange {
		s.inChange = true
		ch.svcs = append(ch.svcs, s)
	}
	s.dirty = true
}

func (m *Model) source(id collect.SourceID) *source {
	s := m.sources[id]
	if s == nil {
		s = &source{id: id}
		m.sources[id] = s
		m.coverageChanged()
	}
	return s
}

// ready reports that the sources have each completed their first list.
func (m *Model) ready(ids ...collect.SourceID) bool {
	return !slices.ContainsFunc(ids, func(id collect.SourceID) bool {
		s := m.sources[id]
		return s == nil || !s.synced
	})
}
