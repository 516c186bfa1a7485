package faults

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrInjected is wrapped by every error that a fault made.
var ErrInjected = errors.New("fault")

// BeforeSync gives what a node's rule sync is to call before it writes: it makes the
// sync slow or lets it fail (rulesync.Options.Before).
func (f *Faults) BeforeSync(node string) func(ctx context.Context, full bool) error {
	return func(ctx context.Context, _ bool) error {
		for _, t := range f.of("sync-delay") {
			if t.target.node(node) {
				f.wait(ctx, "sync-delay", t)
			}
		}
		for _, t := range f.of("sync-fail") {
			if t.target.node(node) && t.strikes() {
				return fmt.Errorf("%w %s: the sync of %s was made to fail", ErrInjected, t.Setting, node)
			}
		}
		return ctx.Err()
	}
}

// wait waits for as long as a term says, until the term is cleared or ctx ends.
func (f *Faults) wait(ctx context.Context, name string, t *term) {
	timer := time.NewTimer(t.amount.d)
	defer timer.Stop()
	for {
		now := f.state.Load()
		if !inForce(now, name, t) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-now.over:
		}
	}
}

// inForce reports that a term still is.
func inForce(s *state, name string, t *term) bool {
	for _, x := range s.terms[name] {
		if x == t {
			return true
		}
	}
	return false
}

// Dead reports that a node is dead now.
func (f *Faults) Dead(node string) bool {
	for _, t := range f.of("node-death") {
		if t.target.node(node) {
			return true
		}
	}
	return false
}

// ReuseAtOnce reports that a node gives out the address that came back last.
func (f *Faults) ReuseAtOnce(node string) bool {
	for _, t := range f.of("address-reuse") {
		if t.target.node(node) {
			return true
		}
	}
	return false
}

// ClockOff is how far a node's clock is ahead of the true time.
func (f *Faults) ClockOff(node string) (d time.Duration) {
	for _, t := range f.of("clock-skew") {
		if t.target.node(node) {
			d += t.amount.d
		}
	}
	return d
}

// WhileAlive runs something of a node until ctx ends, but not while the node is dead:
// it is stopped when the node dies, and started anew when it comes back.
func (f *Faults) WhileAlive(ctx context.Context, node string, run func(context.Context) error) error {
	for {
		if err := f.await(ctx, func() bool { return !f.Dead(node) }); err != nil {
			return nil
		}
		life, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			err := run(life)
			end() // it ended by itself, unless life did
			ended <- err
		}()
		died := f.await(life, func() bool { return f.Dead(node) }) == nil
		end()
		if err := <-ended; !died {
			return err
		}
	}
}

// await waits until cond holds, which can change with the faults; the error is ctx's.
func (f *Faults) await(ctx context.Context, cond func() bool) error {
	for {
		changed := f.Changed()
		if cond() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
