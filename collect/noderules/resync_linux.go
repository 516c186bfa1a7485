package noderules

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// recover bridges a loss: an open Gap, a fresh dump, what differs, the closed
// Gap.
func (r *runner) recover(ctx context.Context, why string) error {
	from := r.sure
	r.due = nil
	r.emit(r.opts.Clock.Now(), &collect.Gap{From: from, Why: why})
	t, s, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	was := r.tracker
	if r.legacy != nil {
		t.setLegacy(r.legacy.tables, r.legacy.err)
	}
	r.tracker, r.opened, r.sure = t, packet{}, r.seen(s.sure)
	now := t.ports()
	g := &generation{id: t.gen, ports: difference(was.ports(), now), oddChanged: !slices.Equal(was.odd, t.odd),
		layoutChanged: was.layout() != t.layout() || was.noLayout != t.noLayout}
	if g.changes() {
		r.emitSince(from, s.at, r.opts.rules(t, g))
	}
	lost := int(int32(t.gen - was.gen))
	r.emit(s.at, &collect.Gap{From: from, To: s.at, Why: why, Lost: max(lost, 0)})
	if r.broken {
		r.synced(s.at, len(now))
	}
	return r.confirm()
}

// settledTries is how often a dump is tried that one generation covers, before
// one is bridged with notifications.
const settledTries = 8

// fresh returns a tracker that stands at the generation of a new dump, and the
// dump for its times.
func (r *runner) fresh(ctx context.Context) (*tracker, *snapshot, error) {
	for tries := 1; ; tries++ {
		s, err := r.query.dump(ctx, settledTries)
		if err != nil && errors.Is(err, errUnsettled) {
			s, err = r.query.bridge(ctx)
		}
		switch {
		case err == nil:
			t, ok, err := r.catchUp(ctx, s)
			if err != nil || ok {
				return t, s, err
			}
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case !unsettled(err):
			return nil, nil, err
		}
		r.broken = true
		r.emit(r.opts.Clock.Now(), &collect.SourceState{State: collect.SourceBroken,
			Detail: fmt.Sprintf("the rules change faster than they can be read (attempt %d), trying on", tries)})
	}
}

// catchUp makes a tracker of a dump, applying the notifications of what changed
// during it. It is not ok when some of those were lost.
func (r *runner) catchUp(ctx context.Context, s *snapshot) (*tracker, bool, error) {
	t := newTracker(s.from, s.tables, r.opts.known()...)
	r.backlog = append(r.backlog, r.watch.inbox.take()...)
	for i := 0; ; i++ {
		for i == len(r.backlog) {
			if t.gen == s.gen {
				// Everything up to the dump's generation is in; what waits is
				// applied by work.
				return t, true, nil
			}
			if err := r.arrive(ctx); err != nil {
				return nil, false, err
			}
		}
		p := r.backlog[i]
		if p.lost != "" {
			r.backlog = r.backlog[i:]
			if err := r.settle(ctx); err != nil {
				return nil, false, err
			}
			// Only word of what the dump contains may be lost.
			gen, err := r.query.generation()
			t.pending = nil
			return t, err == nil && t.gen == s.gen && gen == s.gen, err
		}
		if t.gen == s.gen {
			continue // looking for losses only
		}
		if err := split(p.data, func(typ, _ uint16, body []byte) error {
			m, ok, err := decode(typ, body)
			if err != nil || !ok {
				return err
			}
			_, err = t.add(m)
			return err
		}); err != nil {
			return nil, false, nil
		}
		// Until here every packet before this one was taken out, too.
		r.backlog = r.backlog[1:]
		i--
	}
}

// arrive waits for packets and appends them to the backlog.
func (r *runner) arrive(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-r.watch.done:
		r.watch.done <- err // close waits for it as well
		if err == nil {
			err = errors.New("the receiver of notifications ended")
		}
		return err
	case <-r.watch.inbox.ready:
		r.backlog = append(r.backlog, r.watch.inbox.take()...)
		return nil
	}
}

// settle throws away what was received up to the point where the socket was
// read empty after the loss at the head of the backlog.
func (r *runner) settle(ctx context.Context) error {
	for {
		for i := range r.backlog {
			if r.backlog[i].settled {
				r.backlog = r.backlog[i+1:]
				return nil
			}
		}
		r.backlog = nil
		if err := r.arrive(ctx); err != nil {
			return err
		}
	}
}
