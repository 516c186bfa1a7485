package live

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/timeline"
)

// TestAReelShowsAnyMomentAsAPlainReplayDoes: forwards, backwards and at the end.
func TestAReelShowsAnyMomentAsAPlainReplayDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	w, err := recording.Create(path, recording.Options{Model: func() recording.Model { return NewModel(timeline.Options{}) }})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var events []collect.Event
	add := func(at time.Duration, source collect.SourceID, p collect.Payload) {
		events = append(events, collect.Event{Seq: uint64(len(events) + 1), At: start.Add(at), Source: source, Payload: p})
	}
	add(0, collect.SourceClock, &collect.Session{Kind: "lab", Name: "x", Started: start})
	for i := range 20 {
		add(time.Duration(i+1)*time.Second, collect.SourcePods, &collect.Gap{From: start.Add(time.Duration(i) * time.Second), Why: "lost"})
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := func(at time.Duration) *timeline.Snapshot {
		m := NewModel(timeline.Options{})
		for _, e := range events {
			if !e.At.After(start.Add(at)) {
				m.Apply(e)
			}
		}
		return m.Snapshot()
	}
	reel := NewReel(f)
	for _, at := range []time.Duration{3 * time.Second, 9 * time.Second, 9500 * time.Millisecond, 2 * time.Second, 15 * time.Second} {
		got, err := reel.To(start.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		if w := want(at); got.Seq != w.Seq || !reflect.DeepEqual(got.Gaps, w.Gaps) || !got.Now.Equal(w.Now) {
			t.Errorf("at %s: event %d, %d gaps, %s; want %d, %d, %s", at, got.Seq, len(got.Gaps), got.Now, w.Seq, len(w.Gaps), w.Now)
		}
		next, more := reel.Next()
		if !more || !next.After(start.Add(at)) {
			t.Errorf("at %s: the next event is at %s (%v)", at, next, more)
		}
	}
	// A moment between two events: time has passed.
	got, err := reel.At(start.Add(7500 * time.Millisecond))
	if err != nil || !got.Now.Equal(start.Add(7500*time.Millisecond)) || len(got.Gaps) == 0 {
		t.Errorf("between two events: %s, %d gaps, %v", got.Now, len(got.Gaps), err)
	}
	// And what is shown then is not spoilt by it.
	if again, err := reel.To(start.Add(7500 * time.Millisecond)); err != nil || again.Now.Equal(start.Add(7500*time.Millisecond)) {
		t.Errorf("after it: %v, %v", again.Now, err)
	}
	if end, err := reel.End(); err != nil || end.Seq < uint64(len(events)) {
		t.Errorf("the end: %d of %d, %v", end.Seq, len(events), err)
	}
	if _, more := reel.Next(); more {
		t.Error("there is more after the end")
	}
}
