package rulesync_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// rulesView follows a node's rules by their events. It is a collect.Sink.
type rulesView struct {
	mu    sync.Mutex
	state map[collect.RulePortKey]collect.RulePort
	last  string        // the last state of the source, for messages
	moved chan struct{} // closed at the next event
}

func newRulesView() *rulesView {
	return &rulesView{state: map[collect.RulePortKey]collect.RulePort{}, moved: make(chan struct{})}
}

// Emit implements collect.Sink.
func (v *rulesView) Emit(e collect.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch p := e.Payload.(type) {
	case *collect.Rules:
		if p.Baseline {
			clear(v.state)
		}
		for _, port := range p.Ports {
			if port.Empty() {
				delete(v.state, port.RulePortKey)
			} else {
				v.state[port.RulePortKey] = port
			}
		}
	case *collect.SourceState:
		v.last = fmt.Sprintf("%s %s", p.State, p.Detail)
	default:
		return
	}
	close(v.moved)
	v.moved = make(chan struct{})
}

// wait returns when the rules are so.
func (v *rulesView) wait(ctx context.Context, so func(map[collect.RulePortKey]collect.RulePort) bool) error {
	for {
		v.mu.Lock()
		ok, moved, last := so(v.state), v.moved, v.last
		ports := slices.Collect(maps.Values(v.state))
		v.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%w: rules are %+v, their source is %s", context.Cause(ctx), ports, last)
		}
	}
}

func (v *rulesView) ports() []collect.RulePort {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.state))
}
