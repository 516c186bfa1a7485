package lab

import (
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// watching is a Sink that passes everything on and notices when each of a set
// of sources has synced for the first time.
type watching struct {
	to  collect.Sink
	all chan struct{} // closed when none is missing

	mu      sync.Mutex
	missing map[collect.SourceID]bool
}

func newWatching(to collect.Sink, sources []collect.SourceID) *watching {
	w := &watching{to: to, all: make(chan struct{}), missing: map[collect.SourceID]bool{}}
	for _, s := range sources {
		w.missing[s] = true
	}
	return w
}

// Emit implements collect.Sink.
func (w *watching) Emit(e collect.Event) {
	w.to.Emit(e)
	s, ok := e.Payload.(*collect.SourceState)
	if !ok || s.State != collect.SourceSynced {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing[e.Source] {
		delete(w.missing, e.Source)
		if len(w.missing) == 0 {
			close(w.all)
		}
	}
}

func rulesSources(nodes []string) []collect.SourceID {
	var out []collect.SourceID
	for _, n := range nodes {
		out = append(out, collect.RulesSource(n))
	}
	return out
}
