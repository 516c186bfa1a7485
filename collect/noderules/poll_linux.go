package noderules

import (
	"context"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// look polls legacy iptables and emits what changed there: the change lies
// between the beginning of the look before and the end of this one, so the error
// of its time is the interval of polling and the time that reading takes.
func (r *runner) look() {
	if r.legacy == nil {
		return
	}
	before := r.legacy.begun
	if !r.legacy.poll() {
		return
	}
	g := r.tracker.setLegacy(r.legacy.tables, r.legacy.err)
	if !g.changes() {
		return
	}
	at := r.legacy.read
	if r.legacy.err != nil {
		at = r.opts.Clock.Now()
	}
	r.emitSince(before, at, r.opts.rules(r.tracker, g))
}

// lookAgain polls for a confirmation. Tables that are there cost something to
// read, so a look that is recent does.
func (r *runner) lookAgain(now time.Time) {
	if r.legacy == nil || r.legacy.there() && now.Sub(r.legacy.begun) < r.opts.Poll/4 {
		return
	}
	r.look()
}

// seen limits a time up to which everything is known to what the last look at
// legacy iptables can say.
func (r *runner) seen(until time.Time) time.Time {
	if r.legacy != nil && r.legacy.begun.Before(until) {
		return r.legacy.begun
	}
	return until
}

// readWithLegacy is a tracker of a dump, with legacy iptables looked at once.
func readWithLegacy(ctx context.Context, o Options, q *query) (*tracker, error) {
	l, err := openLegacy(o)
	if err != nil {
		return nil, err
	}
	defer l.close()
	s, err := q.dump(ctx, 0)
	if err != nil {
		return nil, err
	}
	l.poll()
	t := newTracker(s.gen, s.tables, o.known()...)
	t.setLegacy(l.tables, l.err)
	return t, nil
}

// rules is the event of what a change came to.
func (o Options) rules(t *tracker, g *generation) *collect.Rules {
	return &collect.Rules{
		Node: o.Node, Generation: g.id, Layout: t.layout(), NoLayout: t.noLayout,
		Process: g.process, PID: g.pid, Ports: g.ports, Unknown: t.odd, Ignored: t.ignored(),
	}
}
