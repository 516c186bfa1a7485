package collect

import (
	"context"
	"time"
)

// Sink takes events. Implementations must be safe for concurrent use, must not
// block for longer than it takes to append to a queue, and must keep the order
// of each caller's events. An implementation that has to lose events says so
// with a Gap event of the same source.
type Sink interface {
	Emit(Event)
}

// SinkFunc makes a function a Sink.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// Source produces events until its context ends. Run returns nil when ctx was
// cancelled, and an error only when the source cannot go on at all (what it can
// ride out, such as a broken watch, it reports as events and retries). An error
// names what was tried and the way out.
type Source interface {
	// Name is for people: "cluster kind-dev", "rules of node-1".
	Name() string
	// Run emits into sink until ctx is done. It is called once.
	Run(ctx context.Context, sink Sink) error
}

// Voucher is a Source that can be asked to confirm that nothing is missing.
// Vouch returns soon; the confirmation itself arrives as a Vouch event. It is
// safe for concurrent use and may be called at any time while Run runs.
type Voucher interface {
	Vouch()
}

// Clock tells the time. Packages that stamp events take one, so that tests can
// inject theirs.
type Clock interface {
	Now() time.Time
}

// SystemClock is the wall clock (with Go's monotonic reading).
type SystemClock struct{}

// Now returns time.Now().
func (SystemClock) Now() time.Time { return time.Now() }

// Multi emits every event to each of its sinks, in order.
type Multi []Sink

// Emit passes e to every sink.
func (m Multi) Emit(e Event) {
	for _, s := range m {
		s.Emit(e)
	}
}
