package nodelog

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// silentBeats is after how many missed heartbeats an agent counts as silent.
const silentBeats = 3

// doubt is that something was lost: the table is not certain since from.
type doubt struct {
	from, fromLine time.Time // on the viewer's clock, and on the node's
	why            string
	lost           int
}

// lose notes that something is missing.
func (s *stream) lose(why string, lines int) {
	s.join.drop()
	if s.doubt != nil {
		s.doubt.lost += lines
		return
	}
	s.doubt = &doubt{from: s.lastSure(), fromLine: s.sureLine(), why: why, lost: lines}
	if s.whole && !s.past {
		s.emit(s.emitted, time.Time{}, &collect.Gap{From: s.doubt.from, Why: why, Lost: lines})
	}
}

// certain ends the doubt: from here on everything is known again.
func (s *stream) certain(at time.Time) {
	d := s.doubt
	if d == nil {
		return
	}
	s.doubt = nil
	if s.past {
		s.gaps = append(s.gaps, pastGap{d.fromLine, at, *d})
		s.hist.miss(lineGap{d.fromLine, at, d.why})
		return
	}
	to := s.mapped(at)
	if to.Before(d.from) {
		to = d.from
	}
	s.emitAt(at, time.Time{}, &collect.Gap{From: d.from, To: to, Why: d.why})
	s.emitAt(at, time.Time{}, &collect.SourceState{State: collect.SourceSynced, Count: s.table.n})
}

// pastGap is a loss before the viewer came, between two times of lines.
type pastGap struct {
	from, to time.Time
	doubt
}

// onGap takes what the agent itself lost. It tells what changed meanwhile, too.
func (s *stream) onGap(e collect.Event, g *collect.Gap) {
	switch {
	case !s.whole:
		return
	case s.past:
		if !g.To.IsZero() {
			s.gaps = append(s.gaps, pastGap{g.From, g.To, doubt{why: g.Why, lost: g.Lost}})
			s.hist.miss(lineGap{g.From, g.To, g.Why})
		}
		return
	}
	now := *g
	now.From = s.mapped(g.From)
	if !g.To.IsZero() {
		now.To = s.mapped(g.To)
	}
	s.emitAt(e.At, time.Time{}, &now)
}

// tick notices that the agent has fallen silent.
func (s *stream) tick(at time.Time) {
	s.tellPast(at)
	if limit := silentBeats * s.agent.Heartbeat; limit > 0 && at.Sub(s.heard) > limit {
		s.interrupt(fmt.Sprintf("no line of the agent for %s", limit))
	}
}

// interrupt says that lines do not come through. Unless one turns out to be
// missing, the next one ends that.
func (s *stream) interrupt(why string) {
	if s.past || !s.whole || s.silent != nil || s.doubt != nil {
		return
	}
	s.silent = &collect.Gap{From: s.lastSure(), Why: why}
	g := *s.silent
	s.emit(s.emitted, time.Time{}, &g)
}

// ended says that no more lines come from where they came from.
func (s *stream) ended(at time.Time, why string) {
	s.present(at)
	switch {
	case !s.whole:
		s.emit(at, time.Time{}, &collect.SourceState{State: collect.SourceBroken, Detail: why})
	case s.doubt == nil:
		s.lose(why, 0)
	}
}
