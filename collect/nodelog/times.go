package nodelog

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// clockStep is from where on a jump of a node's clock against its uptime counts
// as the clock having been set.
const clockStep = 20 * time.Millisecond

// hear takes what the agent says about itself.
func (s *stream) hear(a *collect.AgentState, lineAt, at time.Time) {
	if old := s.agent; old.Instance == a.Instance && a.Uptime > old.Uptime && old.Uptime > 0 {
		// How far the wall clock is from where the uptime says it should be.
		off := func(x *collect.AgentState, at time.Time) time.Duration { return at.Sub(x.Started) - x.Uptime }
		step := off(a, lineAt) - off(&old, s.beatAt)
		if d := step.Abs(); d > clockStep+drift(a.Uptime-old.Uptime) {
			from := s.lastSure()
			s.bound.reset()
			s.bound.log(at.Sub(lineAt), at)
			s.forgetPast(lineAt)
			if !s.past {
				s.tell(at)
				s.emit(s.emitted, time.Time{}, &collect.Gap{From: from, To: at, Why: fmt.Sprintf("the clock of the node was set by %s: times since the last heartbeat may be off by that", step.Round(time.Millisecond))})
			}
		}
	}
	if was, is := s.bound.node.Boot, a.Clock.Boot; was != "" && is != "" && was != is {
		// The node was started anew, and its clock with it.
		s.bound.reset()
		s.bound.log(at.Sub(lineAt), at)
		s.forgetPast(lineAt)
	}
	s.agent = *a
	s.beatAt = lineAt
	s.bound.node, s.bound.viewer = a.Clock, s.viewer()
}

// tell says how times are brought to the viewer's clock, when what was told
// does not hold any more or could be told better by a fifth. What is told is a
// little looser than what is known, so that this does not happen with every line.
func (s *stream) tell(at time.Time) {
	now := s.bound.estimate(at)
	if holds(s.told, now) {
		return
	}
	now = loosened(now)
	s.told = now
	if !s.past {
		s.emit(s.emitted, time.Time{}, &now)
		s.tellPast(at)
	}
}

// loosened is a bound as it is told.
func loosened(now collect.ClockBound) collect.ClockBound {
	switch {
	case now.How == oneClock:
	case now.OneSided:
		now.Offset += looser
	default:
		now.Error += now.Error/10 + looser/100
	}
	return now
}

// looser is by how much a bound is told looser than it is.
const looser = time.Millisecond

// holds reports that what was told of a clock is right and close enough.
func holds(told, now collect.ClockBound) bool {
	switch {
	case told.How != now.How || told.OneSided != now.OneSided:
		return false
	case now.OneSided:
		return now.Offset <= told.Offset && told.Offset-now.Offset <= 2*looser
	}
	return (now.Offset-told.Offset).Abs()+now.Error <= told.Error && (told.Error <= looser/10 || now.Error >= told.Error*8/10)
}

// mapped brings a time of the node's clock to the viewer's.
func (s *stream) mapped(t time.Time) time.Time { return t.Add(s.told.Offset) }

// lastSure is the latest time up to which everything is known to be told.
func (s *stream) lastSure() time.Time { return s.mapped(s.sureLine()) }

func (s *stream) sureLine() time.Time {
	if s.vouched.IsZero() {
		return s.lineAt
	}
	return s.vouched
}

func (s *stream) clockText() string {
	switch c := s.told; {
	case c.OneSided:
		return "only bounded from one side (" + c.How + ")"
	default:
		return fmt.Sprintf("±%s (%s)", c.Error.Round(10*time.Microsecond), c.How)
	}
}

// caused finds the latest cause among the addresses that a generation brought.
func (s *stream) caused(lineAt time.Time, r *collect.Rules, delay time.Duration, at time.Time) {
	var cause time.Time
	for i := range r.Ports {
		p := &r.Ports[i]
		had := map[string]bool{}
		if old := s.table.get(&p.RulePortKey); old != nil {
			for _, a := range old.Endpoints {
				had[a.String()] = true
			}
		}
		for _, a := range p.Endpoints {
			if had[a.String()] {
				continue
			}
			if t, ok := s.causes.of(&p.RulePortKey, a); ok && t.After(cause) {
				cause = t
			}
		}
	}
	if !cause.IsZero() {
		s.bound.cause(cause.Add(-watchSlack).Sub(lineAt), delay, at)
		s.tell(at)
	}
}
