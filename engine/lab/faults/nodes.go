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
