package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Recorder takes every event that the model took, in the same order. Write is
// called from one goroutine. After an error it is not called again; the error
// is reported through Runtime.RecordError and the program goes on.
type Recorder interface {
	Write(collect.Event) error
}

// SourceRecording is the source of what becomes of the recording itself.
const SourceRecording = recording.SourceRecording

// Options configure a Runtime. The zero value of every field has a sensible
// meaning.
type Options struct {
	// Session heads the stream of events. Ignored when Replay is set.
	Session  collect.Session
	Timeline timeline.Options
	// Recorders get every event.
	Recorders []Recorder
	// SnapshotEvery is the least time between two snapshots, and twice that while
	// hundreds of events come a second and go on to; default 100 ms.
	SnapshotEvery time.Duration
	// IdleAdvance is how often the model's time moves when nothing happens;
	// default 1 s.
	IdleAdvance time.Duration
	// QueueLimit bounds the events waiting for the loop; default 1,000,000,
	// and 10,000 for a replay.
	QueueLimit int
	// Replay: events come from a recording. They keep their numbers, and
	// time moves only as recorded.
	Replay bool
	// Clock stamps the session and the passing of time; default the wall
	// clock.
	Clock collect.Clock
}

const (
	// defaultReorderWindow covers the disorder between two watches of one API
	// server: 11 ms was the most seen on an idle loopback.
	defaultReorderWindow = 30 * time.Millisecond
	// busyEvents is from how many events on a snapshot is one of a busy time. After
	// busySnapshots of these in a row there is twice as long between two: nobody can
	// follow what so many events do one by one, and making snapshots and drawing them
	// is a good part of what the program then costs.
	busyEvents    = 20
	busySnapshots = 5
	// settleMargin is added to the window when a burst has ended, so that its
	// last event is not held back until the next one.
	settleMargin = time.Millisecond
)

// Runtime is the owner of one model. Emit, Subscribe, Latest and Wait are safe
// for concurrent use; Run is called once.
type Runtime struct {
	o     Options
	queue *queue
	model *timeline.Model
	seq   uint64
	tail  collect.Event // the last one taken

	feed *feed

	mu        sync.Mutex
	recordErr error
}

// New returns a Runtime that is ready to take events; Run starts it.
func New(o Options) *Runtime {
	if o.SnapshotEvery <= 0 {
		o.SnapshotEvery = 100 * time.Millisecond
	}
	if o.IdleAdvance <= 0 {
		o.IdleAdvance = time.Second
	}
	if o.QueueLimit <= 0 {
		o.QueueLimit = 1_000_000
		if o.Replay {
			o.QueueLimit = 10_000
		}
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	return &Runtime{
		o:     o,
		queue: newQueue(o.QueueLimit, o.Replay),
		model: NewModel(o.Timeline),
		feed:  newFeed(),
	}
}

// NewModel makes a model with the settings that a Runtime gives its own: what replays
// the events that one took must have them too.
func NewModel(o timeline.Options) *timeline.Model {
	if o.ReorderWindow <= 0 {
		o.ReorderWindow = defaultReorderWindow
	}
	return timeline.New(o)
}

// Emit implements collect.Sink. It never blocks, except in a replay, where it
// waits for room.
func (r *Runtime) Emit(e collect.Event) { r.queue.put(e) }

// Run runs the sources and the model until ctx ends or, when every source is a
// finite one, until all of them returned and their events were taken in. The
// error joins those of the sources that could not go on; the others go on
// meanwhile, and the failure is also an event (SourceState stopped).
func (r *Runtime) Run(ctx context.Context, sources ...collect.Source) error {
	if !r.o.Replay {
		s := r.o.Session
		if s.Started.IsZero() {
			s.Started = r.o.Clock.Now()
		}
		r.take(collect.Event{At: s.Started, Source: collect.SourceClock, Payload: &s})
	}
	var wg sync.WaitGroup
	errs := make([]error, len(sources))
	for i, src := range sources {
		wg.Go(func() {
			if err := src.Run(ctx, r); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("%s: %w", src.Name(), err)
				r.Emit(collect.Event{
					At: r.o.Clock.Now(), Source: collect.SourceID(src.Name()),
					Payload: &collect.SourceState{State: collect.SourceStopped, Detail: err.Error()},
				})
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	if len(sources) == 0 {
		ended = nil
	}
	r.loop(ctx, ended)
	r.queue.close()
	wg.Wait()
	return errors.Join(errs...)
}

// loop owns the model.
//
// An event is not worth a snapshot before the model has let it out of its
// reordering window: a snapshot right away would show nothing new and hold up
// the one that does. So the first event after a quiet moment sets the release
// timer, and what the release lets out is published, at most every
// SnapshotEvery. Those that come meanwhile wait in the queue, since being woken up
// for each of hundreds a second costs as much as taking them in; they are taken
// before time moves on, in their order.
func (r *Runtime) loop(ctx context.Context, ended <-chan struct{}) {
	var (
		buf       []collect.Event
		last      time.Time // of the last snapshot
		taken     int       // events since then
		busy      int       // snapshots of a busy time in a row
		dirty     = true
		releasing = false // the release timer runs
		idle      = time.NewTicker(r.o.IdleAdvance)
		release   = time.NewTimer(time.Hour)
		throttled = time.NewTimer(time.Hour) // until the next snapshot may go out
	)
	defer idle.Stop()
	defer release.Stop()
	defer throttled.Stop()
	if r.o.Replay {
		idle.Stop()
	}
	publish := func(force bool) {
		if !dirty {
			return
		}
		every := r.o.SnapshotEvery
		if busy >= busySnapshots && !r.o.Replay {
			every *= 2
		}
		if wait := every - time.Since(last); wait > 0 && !force && !last.IsZero() {
			throttled.Reset(wait)
			return
		}
		r.feed.publish(r.model.Snapshot())
		if busy++; taken < busyEvents {
			busy = 0
		}
		last, dirty, taken = time.Now(), false, 0
	}
	// takeIn takes what came, and has it let out in time.
	takeIn := func() (some bool) {
		n := r.drain(&buf)
		taken += n
		if n > 0 && !releasing && !r.o.Replay {
			release.Reset(r.model.ReorderWindow() + settleMargin)
			releasing = true
		}
		return n > 0
	}
	publish(true)
	for {
		wake := r.queue.wake
		if releasing {
			wake = nil
		}
		select {
		case <-ctx.Done():
			r.drain(&buf)
			r.finish(func() { publish(true) }, &dirty)
			return
		case <-ended:
			r.drain(&buf)
			r.finish(func() { publish(true) }, &dirty)
			return
		case <-wake:
			if takeIn() && r.o.Replay { // time passes only as recorded
				dirty = true
				publish(false)
			}
		case <-release.C:
			releasing = false
			takeIn()
			r.advance()
			dirty = true
			publish(false)
		case <-idle.C:
			takeIn()
			r.advance()
			dirty = true
			publish(false)
		case <-throttled.C:
			takeIn()
			publish(false)
		}
	}
}

// finish moves time on past the reordering window, so that nothing stays held
// back, and publishes the last snapshot.
func (r *Runtime) finish(publish func(), dirty *bool) {
	_, whole := r.tail.Payload.(*collect.Advance)
	switch {
	case !r.o.Replay:
		r.advance()
		r.take(collect.Event{At: r.o.Clock.Now().Add(r.model.ReorderWindow()), Source: collect.SourceClock, Payload: &collect.Advance{}})
	case !whole && r.tail.Payload != nil: // a recording that was cut off
		r.take(collect.Event{Seq: r.tail.Seq + 1, At: r.tail.At.Add(r.model.ReorderWindow()), Source: collect.SourceClock, Payload: &collect.Advance{}})
	}
	*dirty = true
	publish()
	r.feed.close()
}

func (r *Runtime) advance() {
	r.take(collect.Event{At: r.o.Clock.Now(), Source: collect.SourceClock, Payload: &collect.Advance{}})
}

// drain takes everything queued into the model, and tells how many events that were.
func (r *Runtime) drain(buf *[]collect.Event) int {
	events, _ := r.queue.take(*buf)
	for i := range events {
		r.take(events[i])
		events[i] = collect.Event{}
	}
	*buf = events
	return len(events)
}

// take numbers, records and applies one event.
func (r *Runtime) take(e collect.Event) {
	if !r.o.Replay || e.Seq == 0 {
		r.seq++
		e.Seq = r.seq
	}
	r.tail = e
	r.record(e)
	r.model.Apply(e)
}

func (r *Runtime) record(e collect.Event) {
	if len(r.o.Recorders) == 0 {
		return
	}
	keep := r.o.Recorders[:0:0]
	for _, rec := range r.o.Recorders {
		if err := rec.Write(e); err != nil {
			r.mu.Lock()
			r.recordErr = errors.Join(r.recordErr, err)
			r.mu.Unlock()
			// Said at once, not only at the end.
			r.Emit(collect.Event{
				At: r.o.Clock.Now(), Source: SourceRecording,
				Payload: &collect.SourceState{State: collect.SourceBroken, Detail: err.Error()},
			})
			continue
		}
		keep = append(keep, rec)
	}
	r.o.Recorders = keep
}

// RecordError tells why recording stopped, or nil.
func (r *Runtime) RecordError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recordErr
}

// Latest returns the newest snapshot, or nil before the first.
func (r *Runtime) Latest() *timeline.Snapshot { return r.feed.last() }

// Subscribe returns a channel on which the newest snapshot always waits: a slow
// reader misses those in between. It is closed when Run has ended, after the
// last snapshot, or by cancel.
func (r *Runtime) Subscribe() (feed <-chan *timeline.Snapshot, cancel func()) {
	return r.feed.subscribe()
}
