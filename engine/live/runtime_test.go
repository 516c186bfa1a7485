package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// sourceFunc makes a function a Source.
type sourceFunc struct {
	name string
	run  func(context.Context, collect.Sink) error
}

func (s sourceFunc) Name() string                                     { return s.name }
func (s sourceFunc) Run(ctx context.Context, sink collect.Sink) error { return s.run(ctx, sink) }

// idle is a source that has nothing to say.
var idle = sourceFunc{"idle", func(ctx context.Context, _ collect.Sink) error { <-ctx.Done(); return nil }}

// memory is a Recorder.
type memory struct {
	mu     sync.Mutex
	events []collect.Event
	fail   int // fail from this event on; 0 never
}

func (m *memory) Write(e collect.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail > 0 && len(m.events) >= m.fail {
		return errors.New("no space left on device")
	}
	m.events = append(m.events, e)
	return nil
}

func service(name string) collect.Event {
	return collect.Event{
		At: time.Now(), Source: collect.SourceServices, Op: collect.OpAdded, ResourceVersion: 1,
		Object: collect.ObjectKey{Kind: "Service", Namespace: "default", Name: name}, UID: name, Payload: &collect.Service{},
	}
}

func TestTheFirstSnapshotComesAtOnceAndThenTenASecondAndFiveInABusyTime(t *testing.T) {
	for _, c := range []struct {
		pause       time.Duration // between two events
		least, most int
	}{{10 * time.Millisecond, 9, 11}, {time.Millisecond, 7, 9}} {
		snapshotsInASecond(t, c.pause, c.least, c.most)
	}
}

// snapshotsInASecond counts the snapshots of a second of steady events, after the first.
func snapshotsInASecond(t *testing.T, pause time.Duration, least, most int) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rt := New(Options{Session: collect.Session{Kind: "lab"}})
		feed, _ := rt.Subscribe()
		done := make(chan error)
		begin := time.Now()
		go func() { done <- rt.Run(ctx, idle) }()
		if <-feed; time.Since(begin) != 0 {
			t.Errorf("the first snapshot came after %s", time.Since(begin))
		}
		stop := time.After(time.Second)
		n := 0
	burst:
		for {
			select {
			case <-stop:
				break burst
			case <-feed:
				n++
			default:
				rt.Emit(service("web"))
				time.Sleep(pause) // of the bubble's clock
			}
		}
		if n < least || n > most {
			t.Errorf("%d snapshots in a second of an event every %s, want %d to %d", n, pause, least, most)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheLastEventOfABurstIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rt := New(Options{IdleAdvance: time.Hour})
		go func() { _ = rt.Run(ctx, idle) }()
		synctest.Wait()
		begin := time.Now()
		rt.Emit(service("web"))
		s, _, err := rt.Wait(ctx, func(s *timeline.Snapshot) (bool, string) { return s.Service("default", "web") != nil, "web" })
		if err != nil || s == nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Errorf("seen after %s, want within 150 ms", took)
		}
	})
}

func TestASlowReaderGetsTheNewestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rt := New(Options{})
		feed, _ := rt.Subscribe()
		go func() { _ = rt.Run(ctx, idle) }()
		for i := range 50 {
			rt.Emit(service("web-" + string(rune('a'+i%26)) + string(rune('a'+i/26))))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if s := <-feed; len(s.Services) != 50 {
			t.Errorf("the one waiting snapshot has %d Services, want all 50", len(s.Services))
		}
	})
}

func TestEventsAreNumberedAndRecordedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rec := &memory{}
		rt := New(Options{Recorders: []Recorder{rec}})
		done := make(chan error)
		go func() { done <- rt.Run(ctx, idle) }()
		for range 100 {
			rt.Emit(service("web"))
		}
		synctest.Wait()
		cancel()
		<-done
		for i, e := range rec.events {
			if e.Seq != uint64(i+1) {
				t.Fatalf("event %d has number %d", i+1, e.Seq)
			}
		}
		if _, ok := rec.events[0].Payload.(*collect.Session); !ok {
			t.Errorf("the stream starts with %T, want the session", rec.events[0].Payload)
		}
	})
}

func TestAFullDiskStopsTheRecordingAndNotTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broken, whole := &memory{fail: 3}, &memory{}
		rt := New(Options{Recorders: []Recorder{broken, whole}})
		go func() { _ = rt.Run(ctx, idle) }()
		for range 10 {
			rt.Emit(service("web"))
		}
		synctest.Wait()
		if err := rt.RecordError(); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("record error %v", err)
		}
		said, giveUp := context.WithTimeout(ctx, time.Minute)
		defer giveUp()
		if _, _, err := rt.Wait(said, func(s *timeline.Snapshot) (bool, string) {
			return slices.ContainsFunc(s.Sources, func(s timeline.SourceStatus) bool {
				return s.ID == SourceRecording && s.State == collect.SourceBroken && strings.Contains(s.Detail, "no space left")
			}), "the recording to be said broken"
		}); err != nil {
			t.Error(err)
		}
		whole.mu.Lock()
		defer whole.mu.Unlock()
		if len(broken.events) != 3 || len(whole.events) < 11 {
			t.Errorf("the broken recording has %d events, the other %d", len(broken.events), len(whole.events))
		}
	})
}

func TestAnOverrunIsAGapAndNotASilence(t *testing.T) {
	q := newQueue(10, false)
	for i := range 25 {
		e := service("web")
		e.At = time.Unix(int64(i), 0)
		q.put(e)
	}
	events, lost := q.take(nil)
	g, ok := events[len(events)-1].Payload.(*collect.Gap)
	switch {
	case len(events) != 11 || lost != 15:
		t.Errorf("%d events and %d lost, want 10 with a gap, and 15", len(events), lost)
	case !ok || g.Lost != 15 || g.From.Unix() != 10 || !g.To.IsZero():
		t.Errorf("gap %+v", events[len(events)-1].Payload)
	case events[10].Source != collect.SourceServices:
		t.Errorf("the gap is of %s", events[10].Source)
	}
	if events, lost = q.take(nil); len(events) != 0 || lost != 0 {
		t.Errorf("a second take gives %d and %d", len(events), lost)
	}
}

func TestAReplayLosesNothingHoweverFastItIsRead(t *testing.T) {
	const n = 500
	burst := sourceFunc{"burst", func(_ context.Context, s collect.Sink) error {
		for i := range n {
			e := service("web")
			e.Seq = uint64(i + 1)
			s.Emit(e)
		}
		return nil
	}}
	rec := &memory{}
	rt := New(Options{Replay: true, QueueLimit: 3, Recorders: []Recorder{rec}})
	if err := rt.Run(t.Context(), burst); err != nil {
		t.Fatal(err)
	}
	for i, e := range rec.events[:n] {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
	}
	if rt.Latest().Dropped != 0 {
		t.Errorf("%d were lost", rt.Latest().Dropped)
	}

	// A replay that is stopped holds nobody.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slow := &blocking{until: ctx.Done()}
		rt := New(Options{Replay: true, QueueLimit: 3, Recorders: []Recorder{slow}})
		done := make(chan error)
		go func() { done <- rt.Run(ctx, burst) }()
		synctest.Wait() // the source waits for room
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// blocking is a Recorder that takes its time.
type blocking struct{ until <-chan struct{} }

func (b *blocking) Write(collect.Event) error { <-b.until; return nil }

func TestAFailedSourceIsReportedAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rec := &memory{}
		rt := New(Options{Recorders: []Recorder{rec}})
		broken := sourceFunc{"broken", func(context.Context, collect.Sink) error { return errors.New("cannot go on") }}
		done := make(chan error)
		go func() { done <- rt.Run(ctx, broken, idle) }()
		time.Sleep(time.Second)
		rt.Emit(service("web"))
		time.Sleep(time.Second)
		if rt.Latest().Service("default", "web") == nil {
			t.Error("an event after the failure was not taken")
		}
		cancel()
		if err := <-done; err == nil || !strings.Contains(err.Error(), "broken: cannot go on") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestWaitEndsWithTheSourcesOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := New(Options{Replay: true})
		short := sourceFunc{"short", func(_ context.Context, s collect.Sink) error { s.Emit(service("web")); return nil }}
		never := func(*timeline.Snapshot) (bool, string) { return false, "the impossible" }
		done := make(chan error)
		go func() { done <- rt.Run(t.Context(), short) }()
		s, why, err := rt.Wait(t.Context(), never)
		if !errors.Is(err, ErrEnded) || why != "the impossible" || s == nil {
			t.Errorf("%v, %q, %v", s, why, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		late, _ := rt.Subscribe()
		if s := <-late; s == nil || s.Service("default", "web") == nil {
			t.Error("who subscribes after the end does not get the last snapshot")
		}
		if _, open := <-late; open {
			t.Error("the feed stays open after the end")
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		running := New(Options{})
		go func() { _ = running.Run(ctx, idle) }()
		if _, _, err := running.Wait(ctx, never); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrEnded) {
			t.Errorf("after its context: %v", err)
		}
	})
}
