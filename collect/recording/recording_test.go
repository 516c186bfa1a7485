package recording

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/collect"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// write makes a recording of a session and n advances, a second apart.
func write(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	events := []collect.Event{{Seq: 1, At: start, Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: start}}}
	for i := range n {
		events = append(events, collect.Event{Seq: uint64(i + 2), At: start.Add(time.Duration(i+1) * time.Second), Source: collect.SourceClock, Payload: &collect.Advance{}})
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func play(t *testing.T, path string, speed float64) ([]collect.Event, error) {
	t.Helper()
	p, s, err := Open(path, speed)
	if err != nil {
		t.Fatal(err)
	}
	if s.Kind != "lab" {
		t.Errorf("session %+v", s)
	}
	var got []collect.Event
	err = p.Run(t.Context(), collect.SinkFunc(func(e collect.Event) { got = append(got, e) }))
	return got, err
}

func TestARecordingPlaysBackWhatWasWritten(t *testing.T) {
	got, err := play(t, write(t, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[3].Seq != 4 || !got[3].At.Equal(start.Add(3*time.Second)) {
		t.Errorf("played %+v", got)
	}
}

func TestAKilledProgramLosesOnlyTheLineItWasWriting(t *testing.T) {
	path := write(t, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for cut := len(lines[0]) + 1; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := play(t, path, 0)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if want := strings.Count(string(whole[:cut]), "\n"); len(got) < want {
			t.Fatalf("cut at byte %d: %d events, want %d", cut, len(got), want)
		}
	}
}

func TestADamagedMiddleIsAnErrorThatNamesTheLine(t *testing.T) {
	path := write(t, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	lines[1] = "damaged\n"
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := play(t, path, 0); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one about line 2", err)
	}
}

func TestSpeedIsRecordedSecondsInASecond(t *testing.T) {
	path := write(t, 10)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if _, err := play(t, path, 5); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("10 s at 5x took %s", took)
		}
	})
}

func TestPlayingStopsWithItsContext(t *testing.T) {
	path := write(t, 10)
	synctest.Test(t, func(t *testing.T) {
		p, _, err := Open(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		n := 0
		if err := p.Run(ctx, collect.SinkFunc(func(collect.Event) { n++ })); err != nil || n != 3 {
			t.Errorf("%d events and %v, want the 3 of the first 2.5 s", n, err)
		}
	})
}

func TestWhatIsNoRecordingIsRefusedPlainly(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "no such file",
		file("empty", ""):            "is empty",
		file("text", "hello\n"):      "not a kconverge recording",
		file("headless", `{"at":"2026-03-01T12:00:00Z","src":"clock","type":"advance"}`+"\n"): "instead of the session's",
	} {
		if _, _, err := Open(path, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
	path := file("there", "x")
	if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("overwriting %s: %v", path, err)
	}
}
