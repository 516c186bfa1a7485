package faults

import (
	"context"
	"fmt"
	"time"
)

// BeforeReconcile is called before each sync of a Service ("namespace/name") by an
// endpoint controller: it makes it slow or lets it fail (reconcile.Options.Before).
func (f *Faults) BeforeReconcile(ctx context.Context, controller, key string) error {
	for _, t := range f.of("reconcile-delay") {
		if t.target.service(key) {
			f.wait(ctx, "reconcile-delay", t)
		}
	}
	for _, t := range f.of("reconcile-fail") {
		if t.target.service(key) && t.strikes() {
			return fmt.Errorf("%w %s: the sync of %s was made to fail", ErrInjected, t.Setting, key)
		}
	}
	return ctx.Err()
}

// Lost reports whether what a changed pod means to a Service gets lost on its way to an
// endpoint controller (reconcile.Options.Lost).
func (f *Faults) Lost(controller, key string) bool {
	for _, t := range f.of("event-lost") {
		if t.target.service(key) && t.strikes() {
			return true
		}
	}
	return false
}

// Tuned is what the control plane's parameters are set to.
type Tuned struct {
	// Workers of each endpoint controller; 0 for the usual.
	Workers int
	// Resync is how often they look at every Service, NodeGrace how long a node may be
	// silent; 0 for the usual.
	Resync, NodeGrace time.Duration
}

// Tuned gives the parameters that are set now.
func (f *Faults) Tuned() (out Tuned) {
	for _, t := range f.of("workers") {
		out.Workers = t.amount.n
	}
	for _, t := range f.of("resync") {
		out.Resync = t.amount.d
	}
	for _, t := range f.of("node-grace") {
		out.NodeGrace = t.amount.d
	}
	return out
}

// Tune calls set with the parameters, now and whenever they change, until ctx ends.
func (f *Faults) Tune(ctx context.Context, set func(Tuned)) error {
	for {
		changed := f.Changed()
		set(f.Tuned())
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
