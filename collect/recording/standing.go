package recording

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Standing keeps what stands at the moment: every object, every node's rules, how each
// source is. A recording that begins in the middle of a session begins with it.
// It belongs to one goroutine.
type Standing struct {
	session *collect.Event
	objects map[objectKey]collect.Event
	rules   map[collect.SourceID]*standingRules
	// words are the last ones of each kind and source that stand alone.
	words map[wordKey]collect.Event
	gaps  map[collect.SourceID]collect.Event // open ones
	// faults are those in force, by name and target.
	faults map[[2]string]collect.Event
	seq    uint64
	at     time.Time
}

type objectKey struct {
	source collect.SourceID
	key    collect.ObjectKey
}

type wordKey struct {
	source collect.SourceID
	kind   string
}

type standingRules struct {
	last  collect.Rules
	ports map[collect.RulePortKey]collect.RulePort
}

// NewStanding returns one that knows nothing.
func NewStanding() *Standing {
	return &Standing{
		objects: map[objectKey]collect.Event{}, rules: map[collect.SourceID]*standingRules{},
		words: map[wordKey]collect.Event{}, gaps: map[collect.SourceID]collect.Event{},
		faults: map[[2]string]collect.Event{},
	}
}

// Apply takes the next event of the session.
func (s *Standing) Apply(e collect.Event) {
	s.seq = max(s.seq, e.Seq)
	if e.At.After(s.at) {
		s.at = e.At
	}
	switch p := e.Payload.(type) {
	case *collect.Session:
		s.session = &e
	case *collect.Advance, *collect.Action, *collect.KubeEvent, *collect.ReconcileStep, *collect.SyncStep, *collect.Keyframe, *collect.RulesPast,
		*collect.Connections, *collect.ConnectionFailed, *collect.Narration:
		// They happened, and do not stand.
	case *collect.Rules:
		s.applyRules(e.Source, p)
	case *collect.Fault:
		s.applyFault(e, p)
	case *collect.Gap:
		if p.To.IsZero() {
			s.gaps[e.Source] = e
		} else {
			delete(s.gaps, e.Source)
		}
	case *collect.ControllerState, *collect.SourceState, *collect.Vouch, *collect.AgentState, *collect.ProxyState, *collect.ClockBound:
		s.words[wordKey{e.Source, p.Type()}] = e
	default:
		k := objectKey{e.Source, e.Object}
		if e.Op == collect.OpDeleted || e.Op == collect.OpGone {
			delete(s.objects, k)
		} else {
			s.objects[k] = e
		}
	}
}

// applyFault keeps a fault while it is in force.
func (s *Standing) applyFault(e collect.Event, p *collect.Fault) {
	key := [2]string{p.Name, p.Target}
	switch {
	case p.Refused != "":
	case p.Ended:
		delete(s.faults, key)
	default:
		again := *p
		if again.Since.IsZero() {
			again.Since = e.At
		}
		e.Payload = &again
		s.faults[key] = e
	}
}

func (s *Standing) applyRules(source collect.SourceID, p *collect.Rules) {
	r := s.rules[source]
	if r == nil || p.Baseline {
		r = &standingRules{ports: map[collect.RulePortKey]collect.RulePort{}}
		s.rules[source] = r
	}
	r.last = *p
	for _, port := range p.Ports {
		if port.Empty() {
			delete(r.ports, port.RulePortKey)
		} else {
			r.ports[port.RulePortKey] = port
		}
	}
}

// Baseline gives events that tell all that stands to somebody who knows nothing: what
// they bring is no news. All have the number of the last event. It is empty before the
// session's own.
func (s *Standing) Baseline() []collect.Event {
	if s.session == nil {
		return nil
	}
	var out []collect.Event
	add := func(e collect.Event) {
		e.Seq, e.At, e.NotBefore = s.seq, s.at, time.Time{}
		out = append(out, e)
	}
	add(*s.session)
	for _, e := range slices.SortedFunc(maps.Values(s.objects), func(a, b collect.Event) int {
		return cmp.Or(cmp.Compare(a.ResourceVersion, b.ResourceVersion), strings.Compare(a.Object.Name, b.Object.Name))
	}) {
		e.Op = collect.OpListed
		add(e)
	}
	// A clock before what it is of, and states after: they say that all is told.
	word := func(kind string) {
		for _, k := range slices.SortedFunc(maps.Keys(s.words), func(a, b wordKey) int { return cmp.Compare(a.source, b.source) }) {
			if k.kind == kind {
				add(s.words[k])
			}
		}
	}
	word((*collect.ClockBound)(nil).Type())
	word((*collect.AgentState)(nil).Type())
	for _, id := range slices.Sorted(maps.Keys(s.rules)) {
		r := s.rules[id]
		all := r.last
		all.Baseline = true
		all.Ports = slices.SortedFunc(maps.Values(r.ports), func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
		add(collect.Event{Source: id, Payload: &all})
	}
	word((*collect.SourceState)(nil).Type())
	word((*collect.ProxyState)(nil).Type())
	for _, id := range slices.Sorted(maps.Keys(s.gaps)) {
		add(s.gaps[id])
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.faults), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		add(s.faults[k])
	}
	word((*collect.Vouch)(nil).Type())
	return out
}
