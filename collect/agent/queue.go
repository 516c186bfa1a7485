package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// queue is what waits to be printed. It is a collect.Sink that never blocks: a
// reader that is too slow costs events, and then what waits is given up and
// replaced by a Gap and everything there is. It is safe for concurrent use.
type queue struct {
	node  string
	clock collect.Clock
	limit int
	wake  chan struct{}

	mu     sync.Mutex
	events []collect.Event
	cost   int
	lost   int       // events that were given up since the last take
	from   time.Time // of the first of them
	closed bool

	// now is what the node's rules do, as far as events were emitted.
	now    map[collect.RulePortKey]collect.RulePort
	known  bool // there was a baseline
	last   collect.Rules
	lastAt time.Time
	// proxy is what kube-proxy said last; nil before it did.
	proxy *collect.ProxyState
	// turn is where the next keyframe goes on telling large ports in whole.
	turn collect.RulePortKey
}

// queueLimit bounds what waits, in ports and addresses: some 10 MB.
const queueLimit = 100_000

func newQueue(node string, clock collect.Clock, limit int) *queue {
	return &queue{node: node, clock: clock, limit: limit, wake: make(chan struct{}, 1), now: map[collect.RulePortKey]collect.RulePort{}}
}

// Emit implements collect.Sink.
func (q *queue) Emit(e collect.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch p := e.Payload.(type) {
	case *collect.Rules:
		q.learn(e.At, p)
	case *collect.ProxyState:
		q.proxy = p
	}
	q.put(e)
}

func (q *queue) learn(at time.Time, r *collect.Rules) {
	if r.Baseline {
		clear(q.now)
		q.known = true
	}
	for _, p := range r.Ports {
		if p.Empty() {
			delete(q.now, p.RulePortKey)
		} else {
			q.now[p.RulePortKey] = p
		}
	}
	q.last, q.lastAt = *r, at
	q.last.Ports = nil
}

func costOf(e collect.Event) int {
	n := 1
	switch p := e.Payload.(type) {
	case *collect.Rules:
		for i := range p.Ports {
			n += 1 + addresses(&p.Ports[i])
		}
	case *collect.Keyframe:
		for i := range p.Ports {
			n += 1 + addresses(&p.Ports[i].RulePort)
		}
	}
	return n
}

// addresses is how much a port's lists hold.
func addresses(p *collect.RulePort) int { return len(p.Frontends) + len(p.Endpoints) + len(p.Sources) }

func (q *queue) put(e collect.Event) {
	switch cost := costOf(e); {
	case q.closed:
		return
	case q.lost > 0:
		q.lost++
	case len(q.events) > 0 && q.cost+cost > q.limit:
		q.lost, q.from = len(q.events)+1, q.events[0].At
		q.events, q.cost = nil, 0
	default:
		q.events = append(q.events, e)
		q.cost += cost
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, in order; done after close, when nothing does.
func (q *queue) take() (events []collect.Event, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost > 0 {
		q.events = q.recovery()
		q.lost = 0
	}
	events, q.events, q.cost = q.events, nil, 0
	return events, q.closed && len(events) == 0
}

// recovery is what is told in the place of what was given up.
func (q *queue) recovery() []collect.Event {
	at := q.clock.Now()
	head := collect.Event{At: at, Source: collect.RulesSource(q.node), Object: collect.ObjectKey{Kind: "Node", Name: q.node}}
	gap := head
	gap.Payload = &collect.Gap{From: q.from, To: at, Lost: q.lost, Why: fmt.Sprintf("nobody read the agent's lines: %d were given up", q.lost)}
	events := []collect.Event{gap}
	if q.proxy != nil { // which is only told when it changes
		said := head
		said.NotBefore, said.Source, said.Payload = q.from, collect.AgentSource(q.node), q.proxy
		events = append(events, said)
	}
	if !q.known {
		return events
	}
	all := head
	all.NotBefore = q.from
	r := q.last
	r.Baseline, r.Process, r.PID = true, "", 0
	r.Ports = q.ports()
	all.Payload = &r
	return append(events, all)
}

func (q *queue) ports() []collect.RulePort {
	return slices.SortedFunc(maps.Values(q.now), func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
}

const (
	// smallPort is how many endpoints, and how many sources, a port may have
	// to be told in whole in every keyframe.
	smallPort = 4
	// largeTurn is how many addresses of larger ports are told in whole in
	// one keyframe; they take turns.
	largeTurn = 1000
)

// keyframe puts in what there is now; nothing before the first baseline, and
// nothing while one is waiting that nobody has read.
func (q *queue) keyframe() {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := slices.ContainsFunc(q.events, func(e collect.Event) bool { _, ok := e.Payload.(*collect.Keyframe); return ok })
	if !q.known || waiting {
		return
	}
	all := q.ports()
	k := &collect.Keyframe{
		Node: q.node, Generation: q.last.Generation, Layout: q.last.Layout, NoLayout: q.last.NoLayout,
		Unknown: q.last.Unknown, Ports: make([]collect.KeyPort, len(all)),
	}
	for i, p := range all {
		kp := collect.KeyPort{RulePort: p, Digest: p.Digest(), N: len(p.Endpoints), Whole: max(len(p.Endpoints), len(p.Sources)) <= smallPort}
		k.Ports[i] = kp
	}
	q.takeTurns(k.Ports)
	for i := range k.Ports {
		if !k.Ports[i].Whole {
			k.Ports[i].Frontends, k.Ports[i].Endpoints, k.Ports[i].Sources = nil, nil, nil
		}
	}
	q.put(collect.Event{At: q.clock.Now(), Source: collect.RulesSource(q.node), Object: collect.ObjectKey{Kind: "Node", Name: q.node}, Payload: k})
}

// takeTurns marks the large ports whose turn it is.
func (q *queue) takeTurns(ports []collect.KeyPort) {
	start, _ := slices.BinarySearchFunc(ports, q.turn, func(p collect.KeyPort, k collect.RulePortKey) int {
		return cmp.Or(p.RulePortKey.Compare(k), -1) // the one after it
	})
	room := largeTurn
	for i := range ports {
		p := &ports[(start+i)%len(ports)]
		if p.Whole {
			continue
		}
		if n := addresses(&p.RulePort); n > room && room < largeTurn {
			return
		} else {
			room -= n
		}
		p.Whole, q.turn = true, p.RulePortKey
	}
}
