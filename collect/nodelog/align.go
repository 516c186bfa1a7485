package nodelog

import (
	"time"

	"github.com/kconverge/kconverge/collect"
)

// AlignOptions say whose events are aligned.
type AlignOptions struct {
	// Sink takes the aligned events.
	Sink collect.Sink
	// Clock is the viewer's; nil means the system's.
	Clock collect.Clock
	// Ahead is how far the node's clock is ahead of the viewer's now. Nothing but the
	// stamps follows from it: how far they are off has to be found out.
	Ahead func() time.Duration
	// Causes, when set, bound the node's clock from the other side.
	Causes *Causes
}

// Aligner lets a source of one node's rules that runs in this process tell its times as
// an agent on that node would, by a clock that may be wrong, and brings them to the
// viewer's clock as it does with an agent's lines: by when they come, and by what
// caused them (bound). It says so in a collect.ClockBound, with the error that is left.
// While the clock is right events pass as they are.
//
// It is a collect.Sink for the events of one source, which come one after the other.
type Aligner struct {
	o       AlignOptions
	ahead   time.Duration // as of the last event
	bound   bound
	told    collect.ClockBound
	emitted time.Time
}

// NewAligner returns an Aligner.
func NewAligner(o AlignOptions) *Aligner {
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	return &Aligner{o: o}
}

// Emit implements collect.Sink.
func (a *Aligner) Emit(e collect.Event) {
	if ahead := a.o.Ahead(); ahead != a.ahead {
		// Somebody set the clock. What earlier stamps told does not hold any more.
		a.ahead, a.told = ahead, collect.ClockBound{}
		a.bound.reset()
		if ahead == 0 {
			a.emit(e, &collect.ClockBound{How: oneClock})
		}
	}
	if a.ahead != 0 {
		e = a.align(e)
	}
	a.emit(e, e.Payload)
}

// align stamps an event by the node's clock and brings it back by what is known.
func (a *Aligner) align(e collect.Event) collect.Event {
	at, stamp := a.o.Clock.Now(), e.At.Add(a.ahead)
	delay := at.Sub(stamp)
	a.bound.log(delay, at)
	if r, ok := e.Payload.(*collect.Rules); ok && a.o.Causes != nil && !r.Baseline && e.NotBefore.IsZero() {
		// Of all that the ports have the latest cause is the one that counts: no
		// earlier one bounds the clock better.
		if cause := a.o.Causes.latest(r.Ports); !cause.IsZero() {
			a.bound.cause(cause.Add(-watchSlack).Sub(stamp), delay, at)
		}
	}
	if now := a.bound.estimate(at); !holds(a.told, now) {
		a.told = loosened(now)
		told := a.told
		a.emit(collect.Event{At: stamp.Add(a.told.Offset), Source: e.Source, Object: e.Object}, &told)
	}
	mapped := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(a.ahead).Add(a.told.Offset)
	}
	e.At, e.NotBefore = mapped(e.At), mapped(e.NotBefore)
	switch p := e.Payload.(type) {
	case *collect.Vouch:
		v := *p
		v.Until = mapped(p.Until).Add(-a.told.Error)
		e.Payload = &v
	case *collect.Gap:
		g := *p
		g.From, g.To = mapped(p.From), mapped(p.To)
		e.Payload = &g
	}
	return e
}

// emit emits a payload with what else an event says. Times of one source do not go back.
func (a *Aligner) emit(e collect.Event, p collect.Payload) {
	e.Payload = p
	if e.At.Before(a.emitted) {
		e.At = a.emitted
	}
	if _, ok := p.(*collect.ClockBound); ok {
		e.NotBefore = time.Time{}
	}
	a.emitted = e.At
	a.o.Sink.Emit(e)
}
