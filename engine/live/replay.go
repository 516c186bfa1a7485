package live

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Speeds that a replay can run at, in recorded seconds a second.
var Speeds = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}

// ReplayStatus is where a replay stands.
type ReplayStatus struct {
	// From and To are the recording's first and last moment, At the one that is
	// shown.
	From, To, At time.Time
	Playing      bool
	Speed        float64
	// Event is the number of the last event that is shown, Events that of the
	// recording's last.
	Event, Events uint64
	// Err is why it cannot go on.
	Err error
}

// Replay shows a recording at any of its moments. Its methods are safe for concurrent
// use; Run is called once. What it shows at a moment is what a program that plays the
// recording from its start shows after the same event.
type Replay struct {
	file     *recording.File
	commands chan func()
	ended    chan struct{} // closed with the end of Run
	feed     *feed

	// Of Run's goroutine.
	model  *timeline.Model
	reader *recording.Reader
	next   collect.Event // the one after what is shown, when there is one
	more   bool
	seen   uint64 // the number of the last event that is shown
	shown  time.Time
	begun  time.Time // when playing began, at the moment from
	from   time.Time

	mu     sync.Mutex
	status ReplayStatus
}

// NewReplay shows a recording, which must be indexed (recording.File.Reindexed), from
// its end on.
func NewReplay(f *recording.File) *Replay {
	return &Replay{
		file: f, commands: make(chan func(), 16), ended: make(chan struct{}), feed: newFeed(),
		status: ReplayStatus{From: f.From, To: f.To, Speed: 1, Events: f.LastSeq()},
	}
}

// publishEvery is the least time between two snapshots of a replay that plays.
const publishEvery = 50 * time.Millisecond

// Run shows the end, and then what it is told to, until ctx ends. The error is why the
// recording cannot be read.
func (r *Replay) Run(ctx context.Context) error {
	defer r.feed.close()
	defer close(r.ended)
	r.seek(func(e collect.Event) bool { return true }, r.file.To, 0)
	r.publish()
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		var due <-chan time.Time // nothing to wake for while it stands still
		if r.Status().Playing {
			due = tick.C
		}
		select {
		case <-ctx.Done():
			return nil
		case command := <-r.commands:
			command()
		case <-due:
			r.play()
		}
		if err := r.Status().Err; err != nil {
			return err
		}
		r.publish()
	}
}

// Status is where it stands.
func (r *Replay) Status() ReplayStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Replay) set(change func(*ReplayStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}

// do hands a command to Run; after its end there is nothing to do.
func (r *Replay) do(command func()) {
	select {
	case r.commands <- command:
	case <-r.ended:
	}
}

// Play goes on from the moment that is shown, or from the start when that is the end.
func (r *Replay) Play() {
	r.do(func() {
		if !r.more {
			r.seek(func(e collect.Event) bool { return !e.At.After(r.file.From) }, r.file.From, 0)
		}
		r.start()
		r.set(func(s *ReplayStatus) { s.Playing = true })
	})
}

// Pause stands still.
func (r *Replay) Pause() { r.do(func() { r.set(func(s *ReplayStatus) { s.Playing = false }) }) }

// SetSpeed changes the recorded seconds that pass in a second. It must be above zero.
func (r *Replay) SetSpeed(x float64) {
	r.do(func() {
		r.set(func(s *ReplayStatus) { s.Speed = x })
		r.start()
	})
}

// Seek shows a moment: all that was observed up to then.
func (r *Replay) Seek(t time.Time) {
	r.do(func() {
		r.seek(func(e collect.Event) bool { return !e.At.After(t) }, t, 0)
		r.start()
	})
}

// Step shows n events more, or with a negative n fewer, and stands still. The passing
// of time is no event.
func (r *Replay) Step(n int) {
	r.do(func() {
		r.set(func(s *ReplayStatus) { s.Playing = false })
		if n < 0 {
			r.back(-n)
			return
		}
		for ; n > 0 && r.more; n-- {
			for r.more && passing(r.next) {
				r.take()
			}
			if r.more {
				r.take()
			}
		}
	})
}

// Stop is what StepTo goes on to.
type Stop uint8

// StopStep is the next step of any change, its beginning or an arrival; StopEpisode
// the next start or end of an episode.
const (
	StopStep Stop = iota
	StopEpisode
)

// StepTo shows the events up to the next one that brings about what is asked for, or
// all there are, and stands still.
func (r *Replay) StepTo(what Stop) {
	r.do(func() {
		r.set(func(s *ReplayStatus) { s.Playing = false })
		was := landmarks(r.model.Snapshot(), what)
		for r.more {
			passes := passing(r.next)
			r.take()
			if !passes && landmarks(r.model.Snapshot(), what) != was {
				return
			}
		}
	})
}

// landmarks counts what StepTo stops at.
func landmarks(s *timeline.Snapshot, what Stop) (n int) {
	for _, svc := range s.Services {
		if what == StopEpisode {
			n += len(svc.Episodes)
			for i := range svc.Episodes {
				if !svc.Episodes[i].End.IsZero() {
					n++
				}
			}
			continue
		}
		for _, p := range svc.Paths {
			hops := p.Rules
			if p.Slice != nil {
				hops = append(hops[:len(hops):len(hops)], *p.Slice)
			}
			for i := range hops {
				if n++; hops[i].Status != timeline.StatusOpen {
					n++
				}
			}
		}
	}
	return n
}

// passing tells that an event is nothing but time that passes, or a source's word.
func passing(e collect.Event) bool {
	switch e.Payload.(type) {
	case *collect.Advance, *collect.Vouch, *collect.AgentState, *collect.ProxyState, *collect.ClockBound:
		return true
	}
	return false
}

// back shows all but the last n events that are no mere passing of time.
func (r *Replay) back(n int) {
	if r.seen == 0 {
		return
	}
	// The numbers of the last events before, from the latest frames.
	var seqs []uint64
	for frame := r.file.FrameOf(r.seen); frame >= 0 && len(seqs) <= n; frame-- {
		var here []uint64
		in := r.file.Read(frame)
		for {
			e, err := in.Next()
			if err != nil || e.Seq > r.seen || frame+1 < len(r.file.Frames) && e.Seq >= r.file.Frames[frame+1].First {
				break
			}
			if !passing(e) {
				here = append(here, e.Seq)
			}
		}
		seqs = append(here, seqs...)
	}
	if len(seqs) == 0 {
		return
	}
	target := seqs[0]
	if len(seqs) > n {
		target = seqs[len(seqs)-1-n]
	}
	r.seek(func(e collect.Event) bool { return e.Seq <= target }, time.Time{}, target)
}

// start counts from here on.
func (r *Replay) start() { r.begun, r.from = time.Now(), r.shown }

// play takes what is due.
func (r *Replay) play() {
	passed := float64(time.Since(r.begun)) * r.Status().Speed
	due := r.file.To // as good as the end, where a duration would overflow
	if passed < float64(due.Sub(r.from)) {
		due = r.from.Add(time.Duration(passed))
	}
	deadline := time.Now().Add(publishEvery)
	for r.more && !r.next.At.After(due) {
		r.take()
		if time.Now().After(deadline) { // as fast as it goes: the rest later
			break
		}
	}
	if !r.more {
		r.set(func(s *ReplayStatus) { s.Playing = false })
	}
}

// seek brings the model to the last event for which in holds, from the latest
// checkpoint that is not beyond: by the time t or, when that is zero, the number seq.
func (r *Replay) seek(in func(collect.Event) bool, t time.Time, seq uint64) {
	if r.onward(t) {
		for r.more && in(r.next) {
			r.take()
		}
		return
	}
	var state []byte
	var frame int
	if t.IsZero() {
		state, frame = r.file.CheckpointOf(seq)
	} else {
		state, frame = r.file.Checkpoint(t)
	}
	r.model = nil
	if state != nil {
		if m, err := timeline.Restore(state); err == nil {
			r.model = m
		}
	}
	if r.model == nil {
		r.model, frame = NewModel(timeline.Options{}), 0
	}
	r.reader = r.file.Read(frame)
	if frame > 0 {
		r.reader.Knows(r.model.Now(), r.model.Sources()...)
	}
	r.seen, r.shown = r.model.Seq(), r.model.Now()
	r.advance()
	for r.more && in(r.next) {
		r.take()
	}
}

// restoring is how many events can be read and applied in the time that a checkpoint of
// a busy cluster takes.
const restoring = 2_000

// onward tells that going on from what is shown is the shorter way to a moment.
func (r *Replay) onward(t time.Time) bool {
	return r.model != nil && r.more && !t.Before(r.shown) && r.file.CheckpointSeq(t) <= r.seen+restoring
}

// advance reads the next event.
func (r *Replay) advance() {
	e, err := r.reader.Next()
	r.next, r.more = e, err == nil
	if err != nil && !errors.Is(err, io.EOF) {
		r.set(func(s *ReplayStatus) { s.Err = err })
	}
}

// take applies the next event.
func (r *Replay) take() {
	r.model.Apply(r.next)
	if r.next.Seq > 0 {
		r.seen = r.next.Seq
	}
	if r.next.At.After(r.shown) {
		r.shown = r.next.At
	}
	last := r.next
	r.advance()
	if _, whole := last.Payload.(*collect.Advance); !r.more && !whole {
		// It was cut off: nothing may stay held back.
		r.model.Apply(collect.Event{Seq: last.Seq + 1, At: last.At.Add(r.model.ReorderWindow()), Source: collect.SourceClock, Payload: &collect.Advance{}})
	}
}

func (r *Replay) publish() {
	r.set(func(s *ReplayStatus) { s.At, s.Event = r.shown, r.seen })
	r.feed.publish(r.model.Snapshot())
}

// Subscribe is Runtime.Subscribe.
func (r *Replay) Subscribe() (feed <-chan *timeline.Snapshot, cancel func()) {
	return r.feed.subscribe()
}

// Latest is Runtime.Latest.
func (r *Replay) Latest() *timeline.Snapshot { return r.feed.last() }
