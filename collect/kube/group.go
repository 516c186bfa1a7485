package kube

import (
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// group joins the feeds of one resource (one for each namespace) into the one
// source that the events name: it is synced when all feeds are, and vouches for
// what all of them vouch for.
type group struct {
	id    collect.SourceID
	sink  collect.Sink
	clock collect.Clock

	mu      sync.Mutex
	members map[*feed]*member
	last    collect.SourceState
	vouched time.Time
}

type member struct {
	state   collect.SourceState
	vouched time.Time
}

// severity orders states: the source is as bad as its worst feed.
var severity = map[collect.SourceStateName]int{
	collect.SourceSynced:    1,
	collect.SourceListing:   2,
	collect.SourceStarting:  3,
	collect.SourceBroken:    4,
	collect.SourceForbidden: 5,
}

// emit passes an event on as one of this source.
func (g *group) emit(e collect.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emitLocked(e)
}

func (g *group) emitLocked(e collect.Event) {
	e.Source = g.id
	if e.At.IsZero() {
		e.At = g.clock.Now()
	}
	g.sink.Emit(e)
}

// setState records a feed's state and emits the source's when it changes.
func (g *group) setState(f *feed, s collect.SourceState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[f].state = s
	out := collect.SourceState{}
	count := 0
	for _, m := range g.members {
		count += m.state.Count
		if severity[m.state.State] > severity[out.State] || severity[m.state.State] == severity[out.State] && m.state.Detail > out.Detail {
			out = m.state
		}
	}
	if out.State == collect.SourceSynced {
		out.Count = count
	}
	if out.State == g.last.State && out.Detail == g.last.Detail {
		return
	}
	g.last = out
	g.emitLocked(collect.Event{Payload: &out})
}

// vouch records up to when a feed has delivered everything, and emits what the
// source as a whole can confirm.
func (g *group) vouch(f *feed, until time.Time, how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[f]; until.After(m.vouched) {
		m.vouched = until
	}
	least := until
	for _, m := range g.members {
		if m.vouched.Before(least) {
			least = m.vouched
		}
	}
	if !least.After(g.vouched) {
		return
	}
	g.vouched = least
	g.emitLocked(collect.Event{Payload: &collect.Vouch{Until: least, How: how}})
}

// gap emits a gap. Vouching starts again from its end.
func (g *group) gap(p collect.Gap) { g.emit(collect.Event{At: p.To, Payload: &p}) }

// stop emits the final state.
func (g *group) stop() {
	g.emit(collect.Event{Payload: &collect.SourceState{State: collect.SourceStopped}})
}
