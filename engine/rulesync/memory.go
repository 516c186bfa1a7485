package rulesync

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// MemoryLayout is the layout that the events of a Memory name.
const MemoryLayout = "memory"

// Memory is a node's rules where there is no kernel to hold them: a Table, and
// the collect.Source and collect.Voucher that observes it. Its events are those
// of collect/noderules: a baseline, one Rules event for each write that changes
// what is routed, and Vouch. No packets flow. It is safe for concurrent use; Run
// is called once.
type Memory struct {
	node  string
	clock collect.Clock
	beat  time.Duration
	poke  chan struct{}

	mu         sync.Mutex
	generation uint32
	services   map[types.NamespacedName][]Port
	ports      map[collect.RulePortKey]collect.RulePort
	news       []memoryNews
}

// memoryNews is a write that has not been told yet.
type memoryNews struct {
	at         time.Time
	generation uint32
	ports      []collect.RulePort
}

var (
	_ Table           = (*Memory)(nil)
	_ collect.Source  = (*Memory)(nil)
	_ collect.Voucher = (*Memory)(nil)
)

// NewMemory makes an empty table of a node. heartbeat is the longest time
// between two Vouch events.
func NewMemory(node string, clock collect.Clock, heartbeat time.Duration) *Memory {
	return &Memory{
		node: node, clock: clock, beat: heartbeat, poke: make(chan struct{}, 1), generation: 1,
		services: map[types.NamespacedName][]Port{}, ports: map[collect.RulePortKey]collect.RulePort{},
	}
}

// Write implements Table. It never fails but with ctx.
func (m *Memory) Write(ctx context.Context, ch Change) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ch.Full {
		clear(m.services)
	}
	for name, ports := range ch.Services {
		if len(ports) == 0 {
			delete(m.services, name)
		} else {
			m.services[name] = ports
		}
	}
	now := map[collect.RulePortKey]collect.RulePort{}
	var changed []collect.RulePort
	for _, p := range routed(m.services) {
		now[p.RulePortKey] = p
		if was, ok := m.ports[p.RulePortKey]; !ok || !was.Equal(&p) {
			changed = append(changed, p)
		}
	}
	for key := range m.ports {
		if _, ok := now[key]; !ok {
			changed = append(changed, collect.RulePort{RulePortKey: key})
		}
	}
	if len(changed) == 0 {
		return Result{Generation: m.generation}, nil
	}
	sortPorts(changed)
	m.ports = now
	if m.generation++; m.generation == 0 {
		m.generation = 1 // as the kernel does: 0 is no generation
	}
	m.news = append(m.news, memoryNews{m.clock.Now(), m.generation, changed})
	m.Vouch()
	return Result{Generation: m.generation, Transactions: 1}, nil
}

// Close implements Table.
func (m *Memory) Close() error { return nil }

// Name implements collect.Source.
func (m *Memory) Name() string { return "rules of " + m.node }

// Vouch implements collect.Voucher.
func (m *Memory) Vouch() {
	select {
	case m.poke <- struct{}{}:
	default: // it is about to tell
	}
}

// Run implements collect.Source. It returns nil when ctx ends.
func (m *Memory) Run(ctx context.Context, sink collect.Sink) error {
	emit := func(at time.Time, p collect.Payload) {
		sink.Emit(collect.Event{At: at, Source: collect.RulesSource(m.node), Object: collect.ObjectKey{Kind: "Node", Name: m.node}, Payload: p})
	}
	m.mu.Lock()
	at, first := m.clock.Now(), &collect.Rules{Node: m.node, Generation: m.generation, Layout: MemoryLayout, Baseline: true, Ports: slices.Collect(maps.Values(m.ports))}
	m.news = nil
	select {
	case <-m.poke: // about what the baseline has
	default:
	}
	m.mu.Unlock()
	sortPorts(first.Ports)
	emit(at, first)
	emit(at, &collect.SourceState{State: collect.SourceSynced, Count: len(first.Ports), Detail: "rules in memory; no packets flow"})
	beat := time.NewTicker(m.beat)
	defer beat.Stop()
	for {
		m.mu.Lock()
		// Under the lock, so that no write before this moment is missing.
		now, news, generation := m.clock.Now(), m.news, m.generation
		m.news = nil
		m.mu.Unlock()
		for _, n := range news {
			emit(n.at, &collect.Rules{Node: m.node, Generation: n.generation, Layout: MemoryLayout, Ports: n.ports})
		}
		emit(now, &collect.Vouch{Until: now, How: "heartbeat", Generation: generation})
		select {
		case <-ctx.Done():
			return nil
		case <-m.poke:
		case <-beat.C:
		}
	}
}

func sortPorts(ports []collect.RulePort) {
	slices.SortFunc(ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
}
