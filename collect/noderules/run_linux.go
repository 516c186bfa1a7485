package noderules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
	"golang.org/x/sys/unix"
)

// Run implements collect.Source. It needs CAP_NET_ADMIN in the namespace.
func (s *Source) Run(ctx context.Context, sink collect.Sink) error {
	r := &runner{opts: s.opts, sink: sink}
	err := r.run(ctx, s.ask)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		return nil
	}
	if err != nil {
		err = readError(s.opts, err)
		state := collect.SourceBroken
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			state = collect.SourceForbidden
		}
		r.emit(s.opts.Clock.Now(), &collect.SourceState{State: state, Detail: err.Error()})
	}
	return err
}

// runner is one run of a Source. Everything but the receiver happens on one
// goroutine, so events leave in order.
type runner struct {
	opts    Options
	sink    collect.Sink
	watch   *watch
	query   *query
	legacy  *legacy // nil: not looked at
	tracker *tracker
	// opened is the first packet of the generation whose end is still to come,
	// its bounds only; zero between generations.
	opened packet
	// backlog are packets taken from the inbox and not yet looked at.
	backlog []packet
	// sure is the last time up to which everything is known.
	sure time.Time
	// last is the time of the latest event: a source's events do not go back.
	last time.Time
	// broken says that the last SourceState was not synced.
	broken bool
	// due is a confirmation that waits for the notifications of a generation
	// that the kernel is known to be at.
	due *confirmation
}

// announceLimit is how long a generation may be in force before its
// notifications have come. A very large commit takes many seconds.
const announceLimit = time.Minute

// confirmation says that at a time the kernel was at a generation.
type confirmation struct {
	at  time.Time
	gen uint32
}

func (r *runner) emit(at time.Time, p collect.Payload) {
	r.emitSince(time.Time{}, at, p)
}

// emitSince emits an event about something that happened between two moments.
func (r *runner) emitSince(notBefore, at time.Time, p collect.Payload) {
	if at.After(r.last) {
		r.last = at
	}
	e := r.opts.event(at, p)
	e.NotBefore = notBefore
	r.sink.Emit(e)
}

func (r *runner) run(ctx context.Context, ask <-chan struct{}) (err error) {
	// Joined before the first dump: nothing can fall between the two.
	if r.watch, err = openWatch(r.opts); err != nil {
		return err
	}
	r.watch.start()
	defer func() { err = errors.Join(err, r.watch.close()) }()
	if r.query, err = openQuery(r.opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.query.close()) }()
	if r.legacy, err = openLegacy(r.opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.legacy.close()) }()

	if err := r.begin(ctx); err != nil {
		return err
	}
	beat, poll := time.NewTicker(r.opts.Heartbeat), time.NewTicker(r.opts.Poll)
	defer beat.Stop()
	defer poll.Stop()
	for {
		if err := r.work(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.watch.done:
			r.watch.done <- err // close waits for it as well
			return err
		case <-r.watch.inbox.ready:
			continue
		case <-poll.C:
			r.look()
			continue
		case <-beat.C:
			if r.due != nil && r.opts.Clock.Now().Sub(r.due.at) > announceLimit {
				if err := r.recover(ctx, fmt.Sprintf("generation %d was never announced", r.due.gen)); err != nil {
					return err
				}
			}
		case <-ask:
		}
		if err := r.confirm(); err != nil {
			return err
		}
	}
}

// begin takes the first dump and says what there is.
func (r *runner) begin(ctx context.Context) error {
	t, s, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	r.tracker, r.sure = t, s.sure
	at := s.at
	if r.legacy != nil {
		r.legacy.poll()
		t.setLegacy(r.legacy.tables, r.legacy.err)
		if r.legacy.there() {
			at = r.legacy.read
		}
	}
	rules := r.opts.baseline(t)
	r.emit(at, rules)
	r.synced(at, len(rules.Ports))
	return r.confirm()
}

func (r *runner) synced(at time.Time, ports int) {
	r.broken = false
	detail := fmt.Sprintf("receive buffer %d KiB", r.watch.buffer>>10)
	if r.watch.buffer < r.opts.ReceiveBuffer {
		detail += fmt.Sprintf(" of the %d KiB asked for: raise net.core.rmem_max, or run with CAP_NET_ADMIN in the initial user namespace", r.opts.ReceiveBuffer>>10)
	}
	if !knowsWakeups(r.opts.Clock) {
		detail += "; this kernel does not tell how late it lets a thread run: on a busy machine times may be that much too late"
	}
	if none := r.tracker.noLayout; none != "" {
		detail += "; no table of a known rule layout yet: " + none
	}
	r.emit(at, &collect.SourceState{State: collect.SourceSynced, Count: ports, Detail: detail})
}

// work applies everything that has been received.
func (r *runner) work(ctx context.Context) error {
	applied := false
	for {
		if len(r.backlog) == 0 {
			r.backlog = r.watch.inbox.take()
		}
		if len(r.backlog) == 0 {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		p := r.backlog[0]
		if p.lost != "" {
			if err := r.settle(ctx); err != nil {
				return err
			}
			r.tracker.pending, r.opened = nil, packet{}
			// Word of a generation that is already known may be lost: the
			// kernel sends it after the generation is in force.
			gen, err := r.query.generation()
			if err == nil && gen != r.tracker.gen {
				err = r.recover(ctx, p.lost)
			}
			if err != nil {
				return err
			}
			continue
		}
		r.backlog = r.backlog[1:]
		if p.settled {
			continue
		}
		news, err := r.apply(p)
		applied = applied || news
		if lost, ok := errors.AsType[*lostTrack](err); ok {
			if err := r.recover(ctx, lost.why); err != nil {
				return err
			}
		} else if err != nil {
			if err := r.recover(ctx, err.Error()); err != nil {
				return err
			}
		}
	}
	if applied {
		return r.confirm()
	}
	return nil
}

// apply decodes one datagram and emits what it completes. It reports whether a
// generation was closed. Its error means that the state is not certain any more.
//
// A generation came into force before the first of its notifications was sent
// (nf_tables_api.c, nf_tables_commit: nft_commit_notify stands at its end), so that
// one's time is its time, however long the others take.
func (r *runner) apply(p packet) (news bool, err error) {
	if r.opened.at.IsZero() {
		r.opened = packet{at: p.at, since: p.since}
	}
	err = split(p.data, func(typ, _ uint16, body []byte) error {
		m, ok, err := decode(typ, body)
		if err != nil || !ok {
			return err
		}
		g, err := r.tracker.add(m)
		if err != nil || g == nil {
			return err
		}
		began := r.opened
		r.opened, news = packet{}, true
		if g.changes() {
			at, since := began.at, began.since
			if !since.IsZero() && since.Before(r.sure) {
				since = r.sure // another generation was in force then
			}
			if r.last.After(at) {
				// What a look at legacy iptables found, or a confirmation, was
				// emitted meanwhile.
				if since.IsZero() {
					since = at
				}
				at = r.last
			}
			r.emitSince(since, at, r.opts.rules(r.tracker, g))
		}
		r.satisfy()
		return nil
	})
	return news, err
}

// confirm asks the kernel which generation is in force. When it is the one that
// was applied last, nothing is missing up to the moment before the question.
// Else the confirmation waits for that generation.
func (r *runner) confirm() error {
	at := r.opts.Clock.Now()
	r.lookAgain(at)
	gen, err := r.query.generation()
	if err != nil {
		return err
	}
	// A confirmation that already waits comes due first, unless this one can be
	// given now.
	if r.due == nil || gen == r.tracker.gen {
		r.due = &confirmation{at: at, gen: gen}
	}
	r.satisfy()
	return nil
}

// satisfy emits the confirmation that was waiting, once its generation has been
// applied.
func (r *runner) satisfy() {
	if r.due == nil || older(r.tracker.gen, r.due.gen) {
		return
	}
	at := r.seen(r.due.at)
	r.due = nil
	r.sure = at
	now := at
	if r.last.After(now) {
		now = r.last
	}
	r.emit(now, &collect.Vouch{Until: at, How: "heartbeat", Generation: r.tracker.gen})
}
