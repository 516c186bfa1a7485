package nodelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// stream turns the lines of one node's agent into events. It does no I/O and is
// not safe for concurrent use. Of the times here those of lines are on the
// node's clock, all others on the viewer's.
type stream struct {
	node   string
	sink   collect.Sink
	viewer func() collect.NodeClock
	causes *Causes // nil without

	bound bound
	told  collect.ClockBound // what the sink was told of it
	join  joiner

	// past: what is read was there before the viewer came. Nothing is
	// emitted until present is called; what changed is kept in hist.
	past bool

	seq     uint64    // of the last line
	lineAt  time.Time // the latest time of a line
	agent   collect.AgentState
	beatAt  time.Time // of the line that told it
	whole   bool      // the table is everything that the node has
	table   table
	rules   collect.Rules // the last, without ports
	doubt   *doubt
	emitted time.Time // time of the last event of rules
	vouched time.Time // the last vouch, on the node's clock
	heard   time.Time // when the last line came
	silent  *collect.Gap
	gaps    []pastGap
	// The last lines about the agent and the node's kube-proxy: one that comes
	// only when it is news may be of the past.
	agentLine, proxyLine collect.Event
	// garbage is what is said of the lines since the last good one, if they are
	// no lines of an agent.
	garbage string

	hist     history
	pastTold *collect.ClockBound // the bound with which the past was told
	came     time.Time           // when the past ended, and the last line's time then
	cameLine time.Time
}

func newStream(node string, sink collect.Sink, k *known, causes *Causes, viewer func() collect.NodeClock) *stream {
	return &stream{node: node, sink: sink, viewer: viewer, causes: causes, past: true, table: newTable(k)}
}

// read takes one line as text, and when it came.
func (s *stream) read(text []byte, at time.Time) {
	e, err := collect.Unmarshal(text)
	if err == nil {
		s.line(e, at)
		return
	}
	// A line of a newer agent has a number all the same.
	var head struct {
		Seq  uint64    `json:"seq"`
		At   time.Time `json:"at"`
		Type string    `json:"type"`
	}
	if json.Unmarshal(text, &head) == nil && head.Seq > 0 && head.Type != "" {
		s.line(collect.Event{Seq: head.Seq, At: head.At}, at)
		return
	}
	if s.garbage != "" {
		return // one of many in a row
	}
	var why string
	if errors.Is(err, collect.ErrBadLine) {
		why = collect.Plain(string(text[:min(len(text), 200)]))
	}
	s.garbage = "a line that is not an agent's: " + why
	s.emitAs(collect.AgentSource(s.node), at, time.Time{}, &collect.SourceState{State: collect.SourceBroken, Detail: s.garbage})
}

// line takes one line of the agent, and when it came.
func (s *stream) line(e collect.Event, at time.Time) {
	s.garbage = ""
	if !s.inOrder(e) {
		return
	}
	s.heard = at
	delay := at.Sub(e.At)
	s.bound.log(delay, at)
	if g := s.silent; g != nil {
		s.silent = nil
		if s.doubt == nil { // else that is the gap now
			closed := *g
			closed.To = at
			s.emit(s.emitted, time.Time{}, &closed)
		}
	}
	if a, ok := e.Payload.(*collect.AgentState); ok {
		s.hear(a, e.At, at)
	}
	s.tell(at)
	e, ok, headless := s.join.add(e)
	if headless && s.whole {
		s.lose("the beginning of a generation is missing", 0)
	}
	if !ok {
		return
	}
	switch p := e.Payload.(type) {
	case *collect.Rules:
		s.onRules(e, p, delay, at)
		s.chronicle(e)
	case *collect.Keyframe:
		s.onKeyframe(e, p)
		s.chronicle(e)
	case *collect.Vouch:
		if s.whole && s.doubt == nil {
			s.vouched = p.Until
			s.emitAt(e.At, time.Time{}, &collect.Vouch{Until: s.mapped(p.Until).Add(-s.told.Error), How: p.How, Generation: p.Generation})
		}
	case *collect.Gap:
		s.onGap(e, p)
	case *collect.SourceState:
		if s.whole || p.State == collect.SourceForbidden || p.State == collect.SourceStopped {
			s.emitAt(e.At, time.Time{}, p)
		}
	case *collect.AgentState:
		s.agentLine = e
		s.emitAgents(e)
	case *collect.ProxyState:
		s.proxyLine = e
		s.emitAgents(e)
	}
}

// emitAgents emits what an agent says of itself or of the node's kube-proxy.
func (s *stream) emitAgents(e collect.Event) {
	if e.Payload == nil {
		return
	}
	if p, ok := e.Payload.(*collect.ProxyState); ok {
		mapped := *p
		for _, t := range []*time.Time{&mapped.Started, &mapped.LastSync, &mapped.LastQueued} {
			if !t.IsZero() {
				*t = s.mapped(*t)
			}
		}
		e.Payload = &mapped
	}
	at := s.mapped(e.At)
	if at.Before(s.emitted) {
		at = s.emitted // it was true before the viewer came, and still is
	}
	s.emitAs(collect.AgentSource(s.node), at, time.Time{}, e.Payload)
}

// inOrder looks at the line's number: one that came before is passed over, and
// one that is missing is a loss.
func (s *stream) inOrder(e collect.Event) bool {
	switch {
	case s.seq == 0: // the first of all
	case s.isAnother(e), e.Seq <= s.seq && e.At.After(s.lineAt):
		s.lose("the agent started anew", 0)
		s.agent = collect.AgentState{}
	case e.Seq <= s.seq:
		return false
	case e.Seq > s.seq+1:
		n := int(min(e.Seq-s.seq-1, math.MaxInt32))
		s.lose(fmt.Sprintf("%d lines of the agent are missing", n), n)
	}
	s.seq = e.Seq
	if e.At.After(s.lineAt) {
		s.lineAt = e.At
	}
	return true
}

// isAnother reports that a line is of another agent, one that was started anew.
func (s *stream) isAnother(e collect.Event) bool {
	a, ok := e.Payload.(*collect.AgentState)
	return ok && s.agent.Instance != "" && a.Instance != s.agent.Instance
}

func (s *stream) onRules(e collect.Event, r *collect.Rules, delay time.Duration, at time.Time) {
	notBefore := e.NotBefore
	if !notBefore.IsZero() {
		notBefore = s.mapped(notBefore)
	}
	if r.Baseline {
		first := !s.whole
		if !first && notBefore.IsZero() {
			notBefore = s.lastSure()
		}
		if s.doubt != nil && (notBefore.IsZero() || s.doubt.from.Before(notBefore)) {
			notBefore = s.doubt.from
		}
		s.clear()
		for _, p := range r.Ports {
			s.set(p)
		}
		s.table.settle()
		s.remember(r)
		s.whole = true
		if first {
			s.begin(e.At)
			s.doubt = nil
			return
		}
		s.emitAt(e.At, notBefore, r)
		s.certain(e.At)
		return
	}
	if s.causes != nil && s.whole && s.doubt == nil && notBefore.IsZero() && !s.past {
		s.caused(e.At, r, delay, at)
	}
	for _, p := range r.Ports {
		s.set(p)
	}
	s.remember(r)
	if !s.whole {
		return
	}
	if s.doubt != nil && (notBefore.IsZero() || s.doubt.from.Before(notBefore)) {
		notBefore = s.doubt.from
	}
	s.emitAt(e.At, notBefore, r)
}

func (s *stream) remember(r *collect.Rules) {
	s.rules = *r
	s.rules.Ports, s.rules.Process, s.rules.PID, s.rules.Baseline = nil, "", 0, false
}

// begin says what there is, for the first time.
func (s *stream) begin(lineAt time.Time) {
	if s.past {
		return
	}
	all := s.rules
	all.Baseline, all.Ports = true, s.table.all()
	s.emitAt(lineAt, time.Time{}, &all)
	detail := "from the agent's log; its clock: " + s.clockText()
	if all.NoLayout != "" {
		detail += "; no table of a known rule layout: " + all.NoLayout
	}
	s.emitAt(lineAt, time.Time{}, &collect.SourceState{State: collect.SourceSynced, Count: len(all.Ports), Detail: detail})
}

// onKeyframe compares what the agent says there is with what its lines came to.
func (s *stream) onKeyframe(e collect.Event, k *collect.Keyframe) {
	var news []collect.RulePort
	wrong, open := 0, 0
	for i := range k.Ports {
		kp := &k.Ports[i]
		if have := s.table.get(&kp.RulePortKey); have != nil && have.digest == kp.Digest {
			continue
		}
		wrong++
		if kp.Whole && kp.RulePort.Digest() == kp.Digest {
			s.set(kp.RulePort)
			news = append(news, kp.RulePort)
		} else if p := s.table.known.find(kp.RulePortKey, kp.Digest); p != nil {
			s.share(p)
			news = append(news, p.RulePort)
		} else {
			open++
		}
	}
	for _, key := range s.table.beside(k.Ports) {
		wrong++
		s.set(collect.RulePort{RulePortKey: key})
		news = append(news, collect.RulePort{RulePortKey: key})
	}
	s.table.settle()
	otherwise := s.frame(k)
	switch {
	case !s.whole && open == 0:
		s.whole, s.doubt = true, nil
		s.begin(e.At)
		return
	case !s.whole:
		if !s.past {
			s.emitAt(e.At, time.Time{}, &collect.SourceState{State: collect.SourceListing, Detail: fmt.Sprintf("the log begins in the middle: %d of %d Service ports are still to be told", open, len(k.Ports))})
		}
		return
	case wrong > 0 && s.doubt == nil:
		s.lose(fmt.Sprintf("the agent's keyframe disagrees with its lines about %d Service ports", wrong), 0)
	}
	if s.doubt != nil && (len(news) > 0 || otherwise) {
		r := s.rules
		r.Ports = news
		s.emitAt(e.At, s.doubt.from, &r)
	}
	if open == 0 {
		s.certain(e.At)
	}
}

// frame takes what a keyframe says beside the ports. It reports whether that is
// other than what the lines before it said.
func (s *stream) frame(k *collect.Keyframe) (otherwise bool) {
	was := s.rules
	now := &s.rules
	now.Node, now.Generation, now.Layout, now.Unknown = k.Node, k.Generation, k.Layout, k.Unknown
	if k.Layout != "" || k.NoLayout != "" { // agents of before leave both out
		now.NoLayout = k.NoLayout
	}
	return was.Layout != now.Layout || was.NoLayout != now.NoLayout || !slices.Equal(was.Unknown, now.Unknown)
}

// present ends the past: what was read so far is where the viewer comes in.
func (s *stream) present(at time.Time) {
	if !s.past {
		return
	}
	s.heard = at
	if s.bound.hasHi {
		s.tell(at)
		s.emitted = s.mapped(s.lineAt)
		for _, g := range s.gaps {
			if to := s.mapped(g.to); to.Before(s.emitted) {
				s.emitted = to
			}
		}
	} else {
		s.emitted = at
	}
	s.past, s.came, s.cameLine = false, at, s.lineAt
	if s.bound.hasHi {
		told := s.told
		s.emit(s.emitted, time.Time{}, &told)
	}
	for _, g := range s.gaps {
		s.emitAt(g.to, time.Time{}, &collect.Gap{From: s.mapped(g.from), To: s.mapped(g.to), Why: g.why, Lost: g.lost})
	}
	s.gaps = nil
	s.emitAgents(s.agentLine)
	s.emitAgents(s.proxyLine)
	switch {
	case s.whole:
		s.begin(s.lineAt)
		if d := s.doubt; d != nil {
			s.hist.miss(lineGap{from: d.fromLine, why: d.why})
			d.from = s.lastSure()
			s.emitAt(s.lineAt, time.Time{}, &collect.Gap{From: d.from, Why: d.why, Lost: d.lost})
		} else if !s.vouched.IsZero() {
			s.emitAt(s.lineAt, time.Time{}, &collect.Vouch{Until: s.mapped(s.vouched).Add(-s.told.Error), How: "heartbeat", Generation: s.rules.Generation})
		}
		s.tellPast(at)
	case s.seq > 0:
		s.emit(at, time.Time{}, &collect.SourceState{State: collect.SourceListing, Detail: "the log begins in the middle: waiting for the agent's next keyframe"})
	case s.garbage != "":
		s.emit(at, time.Time{}, &collect.SourceState{State: collect.SourceBroken, Detail: "no line of the agent yet, but " + s.garbage})
	default:
		s.emit(at, time.Time{}, &collect.SourceState{State: collect.SourceStarting, Detail: "no line of the agent yet"})
	}
}

// emitAt emits an event about rules at a time of the node's clock.
func (s *stream) emitAt(lineAt, notBefore time.Time, p collect.Payload) {
	s.emit(s.mapped(lineAt), notBefore, p)
}

// emit emits an event about rules. Those of one source do not go back in time.
func (s *stream) emit(at, notBefore time.Time, p collect.Payload) {
	if at.Before(s.emitted) {
		at = s.emitted
	}
	if !s.past {
		s.emitted = at
	}
	s.emitAs(collect.RulesSource(s.node), at, notBefore, p)
}

func (s *stream) emitAs(source collect.SourceID, at, notBefore time.Time, p collect.Payload) {
	if s.past {
		return
	}
	s.sink.Emit(collect.Event{At: at, NotBefore: notBefore, Source: source, Object: collect.ObjectKey{Kind: "Node", Name: s.node}, Payload: p})
}
