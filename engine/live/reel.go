package live

import (
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Reel is a Replay without a clock: it shows the moments of a recording as fast as they
// are asked for. It holds no more than the model does. It belongs to one goroutine.
type Reel struct{ r *Replay }

// NewReel opens a recording. A moment of one that is indexed (recording.File.Reindexed)
// is found by the checkpoint before it; else everything before it is read.
func NewReel(f *recording.File) *Reel { return &Reel{NewReplay(f)} }

// To shows a moment: all that was observed up to then.
func (x *Reel) To(t time.Time) (*timeline.Snapshot, error) {
	in := func(e collect.Event) bool { return !e.At.After(t) }
	if x.r.model == nil || t.Before(x.r.shown) {
		x.r.seek(in, t, 0)
	}
	for x.r.more && in(x.r.next) {
		x.r.take()
	}
	return x.snapshot()
}

// At is To for who looks at one moment only: time has passed up to t, as it does in a
// program that runs, also where the recording's next word of that is later.
func (x *Reel) At(t time.Time) (*timeline.Snapshot, error) {
	if _, err := x.To(t); err != nil {
		return nil, err
	}
	if t.After(x.r.shown) {
		x.r.model.Apply(collect.Event{Seq: x.r.seen + 1, At: t, Source: collect.SourceClock, Payload: &collect.Advance{}})
	}
	snap, err := x.snapshot()
	x.r.model = nil // which is not what the events after t are for
	return snap, err
}

// End shows the last moment.
func (x *Reel) End() (*timeline.Snapshot, error) {
	x.r.seek(func(collect.Event) bool { return true }, x.r.file.To, 0)
	return x.snapshot()
}

// Next is when the next event was observed; false at the end.
func (x *Reel) Next() (time.Time, bool) { return x.r.next.At, x.r.more }

func (x *Reel) snapshot() (*timeline.Snapshot, error) {
	if err := x.r.Status().Err; err != nil {
		return nil, err
	}
	return x.r.model.Snapshot(), nil
}
