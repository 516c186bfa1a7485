package live

import (
	"context"
	"errors"

	"github.com/kconverge/kconverge/engine/timeline"
)

// ErrEnded is returned by Wait when the sources ended before the condition
// held.
var ErrEnded = errors.New("the source ended before that happened")

// Condition judges a snapshot. Why tells, for people, what is still awaited.
type Condition func(*timeline.Snapshot) (ok bool, why string)

// Wait returns the first snapshot for which cond holds. When ctx ends first it
// returns the last snapshot (nil when there was none), what was still awaited,
// and the context's error; when the sources end first, ErrEnded.
func (r *Runtime) Wait(ctx context.Context, cond Condition) (s *timeline.Snapshot, why string, err error) {
	feed, cancel := r.Subscribe()
	defer cancel()
	why = "the first event"
	for {
		select {
		case <-ctx.Done():
			return s, why, ctx.Err()
		case next, open := <-feed:
			if !open {
				return s, why, ErrEnded
			}
			s = next
			var ok bool
			if ok, why = cond(s); ok {
				return s, "", nil
			}
		}
	}
}
