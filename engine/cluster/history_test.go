package cluster_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// history keeps what the followed rules of every node were, generation by
// generation, as the model was told. It is a live.Recorder.
type history struct {
	mu    sync.Mutex
	nodes map[string]*past
	gaps  []string
	moved chan struct{} // closed with the next event
}

type past struct {
	states []state
	seen   uint32    // the latest generation that the node's agent vouched for
	until  time.Time // and the latest moment
}

// state is what there was from a generation on: from a moment between since and at.
type state struct {
	gen       uint32
	since, at time.Time
	ports     map[collect.RulePortKey]collect.RulePort
}

func toldOf(s state) []string { return lines(s.list()) }

func (s *state) list() []collect.RulePort { return slices.Collect(maps.Values(s.ports)) }

func newHistory() *history {
	return &history{nodes: map[string]*past{}, moved: make(chan struct{})}
}

// Write implements live.Recorder.
func (h *history) Write(e collect.Event) error {
	node, ok := strings.CutPrefix(string(e.Source), collect.SourceRulesPrefix)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.nodes[node]
	if p == nil {
		p = &past{}
		h.nodes[node] = p
	}
	switch r := e.Payload.(type) {
	case *collect.Rules:
		next := state{gen: r.Generation, since: e.NotBefore, at: e.At, ports: map[collect.RulePortKey]collect.RulePort{}}
		if next.since.IsZero() {
			next.since = e.At
		}
		if n := len(p.states); n > 0 && !r.Baseline {
			maps.Copy(next.ports, p.states[n-1].ports)
		}
		for _, port := range r.Ports {
			if port.Empty() {
				delete(next.ports, port.RulePortKey)
			} else {
				next.ports[port.RulePortKey] = port
			}
		}
		// What is told anew, by an agent that was started again, is no other state.
		if n := len(p.states); n == 0 || p.states[n-1].gen != next.gen || !slices.Equal(toldOf(p.states[n-1]), toldOf(next)) {
			p.states = append(p.states, next)
		}
		p.seen = max(p.seen, r.Generation)
	case *collect.Vouch:
		p.seen = max(p.seen, r.Generation)
		if r.Until.After(p.until) {
			p.until = r.Until
		}
	case *collect.Gap:
		h.gaps = append(h.gaps, node+": "+r.Why)
	}
	close(h.moved)
	h.moved = make(chan struct{})
	return nil
}

// at returns the place among a node's states of what there was in a generation,
// or a channel that is closed when more is known.
func (h *history) at(node string, gen uint32) (place int, known bool, moved <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.nodes[node]
	if p == nil || p.seen < gen || len(p.states) == 0 {
		return 0, false, h.moved
	}
	for place = len(p.states) - 1; place > 0 && p.states[place].gen > gen; place-- {
	}
	return place, true, nil
}

// during returns the states that may have been in force between two moments, from
// the place of the first: one alone was in force for sure. When the node's agent has
// not told of all that time yet it returns a channel that is closed when more is
// known.
func (h *history) during(node string, from, to time.Time) (place int, list []state, moved <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.nodes[node]
	if p == nil || p.until.Before(to) || len(p.states) == 0 || p.states[0].at.After(from) {
		return 0, nil, h.moved
	}
	for place = len(p.states) - 1; p.states[place].at.After(from); place-- {
	}
	end := place + 1
	for end < len(p.states) && !p.states[end].since.After(to) {
		end++
	}
	return place, slices.Clone(p.states[place:end]), nil
}

// last is the place of the latest state.
func (h *history) last(node string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.nodes[node].states) - 1
}

// from returns the place of the state that is in force from that very moment on, or -1.
func (h *history) from(node string, at time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.nodes[node]; p != nil {
		return slices.IndexFunc(p.states, func(s state) bool { return s.at.Equal(at) })
	}
	return -1
}

// state is one that at has found; before is the one that it took the place of.
func (h *history) state(node string, place int) (s, before state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.nodes[node]
	if place > 0 {
		before = p.states[place-1]
	}
	return p.states[place], before
}

// until is the last moment of a state, zero while it lasts.
func (h *history) until(node string, place int) (t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.nodes[node]; place+1 < len(p.states) {
		t = p.states[place+1].at.Add(-1)
	}
	return t
}

func (h *history) lost() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.gaps)
}
