package live_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// TestDamageIsSeenBehindTheCheckpointsThatFollowIt: at any moment a damaged recording
// shows what playing it from the start shows, the gap with it.
func TestDamageIsSeenBehindTheCheckpointsThatFollowIt(t *testing.T) {
	whole := recordedSession(t, flapping(1_200), 500)
	if !whole.Intact() {
		t.Error("a whole recording is not said to be")
	}
	b, err := os.ReadFile(whole.Path())
	if err != nil {
		t.Fatal(err)
	}
	state, frame := whole.Checkpoint(whole.To)
	if state == nil || frame < 3 {
		t.Fatalf("the last checkpoint stands before frame %d of %d", frame, len(whole.Frames))
	}
	bad := whole.Frames[1]
	b[bad.Offset+bad.Size/2] ^= 0xff
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !file.Indexed || file.Intact() {
		t.Fatalf("indexed %v, intact %v", file.Indexed, file.Intact())
	}
	again, err := file.Reindexed(recording.Options{CheckpointEvery: 500, Model: func() recording.Model { return live.NewModel(timeline.Options{}) }})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var played []collect.Event
	for in := file.Read(0); ; {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		played = append(played, e)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := live.NewReplay(again)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for _, at := range []time.Time{whole.To, whole.Frames[frame].At.Add(time.Second), bad.At.Add(-time.Second)} {
			r.Seek(at)
			synctest.Wait()
			s := r.Latest()
			if got, want := text(t, s), after(t, played, func(e collect.Event) bool { return !e.At.After(at) }); got != want {
				t.Errorf("at %s it shows\n%.600s\nwant\n%.600s", at, got, want)
			}
			if behind := at.After(bad.At); behind != (len(s.Gaps) > 0) {
				t.Errorf("at %s: %d gaps, what is damaged begins at %s", at, len(s.Gaps), bad.At)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
