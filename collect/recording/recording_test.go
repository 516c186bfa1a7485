package recording

import (
	"bytes"
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
	path := filepath.Join(t.TempDir(), "a.kconverge")
	w, err := Create(path, Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events(n) {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// events are those of a session, and n advances a second apart.
func events(n int) []collect.Event {
	events := []collect.Event{{Seq: 1, At: start, Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: start}}}
	for i := range n {
		events = append(events, collect.Event{Seq: uint64(i + 2), At: start.Add(time.Duration(i+1) * time.Second), Source: collect.SourceClock, Payload: &collect.Advance{}})
	}
	return events
}

func play(t *testing.T, path string, speed float64) ([]collect.Event, error) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Session.Kind != "lab" {
		t.Errorf("session %+v", f.Session)
	}
	var got []collect.Event
	err = NewPlayer(f, speed).Run(t.Context(), collect.SinkFunc(func(e collect.Event) { got = append(got, e) }))
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

// A plain file is what versions before wrote.
func plain(t *testing.T, n int) (path string, lines []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.jsonl")
	var b bytes.Buffer
	w := collect.NewWriter(&b)
	for _, e := range events(n) {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestAPlainFileThatWasCutLosesItsLastLine(t *testing.T) {
	path, lines := plain(t, 3)
	whole := strings.Join(lines, "") + "\n"
	for cut := len(lines[0]) + 1; cut < len(whole); cut++ {
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := play(t, path, 0)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if want := strings.Count(whole[:cut], "\n"); len(got) < want {
			t.Fatalf("cut at byte %d: %d events, want %d", cut, len(got), want)
		}
	}
}

func TestADamagedLineIsAGapOfEverySource(t *testing.T) {
	path, lines := plain(t, 4)
	lines[2] = "damaged\n"
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := play(t, path, 0)
	if err != nil || len(got) != 5 {
		t.Fatalf("%d events and %v, want the 4 that are left and a gap", len(got), err)
	}
	gap, ok := got[2].Payload.(*collect.Gap)
	if !ok || !gap.From.Equal(start.Add(time.Second)) || !gap.To.IsZero() || got[2].Source != collect.SourceClock || got[3].Seq != 4 {
		t.Errorf("%+v %+v", got[2], gap)
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
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		n := 0
		if err := NewPlayer(f, 1).Run(ctx, collect.SinkFunc(func(collect.Event) { n++ })); err != nil || n != 3 {
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
	session := func(format string) string {
		b, err := collect.Marshal(collect.Event{Seq: 1, At: start, Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Format: format, Started: start}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "no such file",
		dir:                          "but a folder",
		file("empty", ""):            "is empty",
		file("text", "hello\n"):      "not a kconverge recording",
		file("headless", `{"at":"2026-03-01T12:00:00Z","src":"clock","type":"advance"}`+"\n"): "instead of the session's",
		file("later", session("kconverge.recording/v2")):                                      "has the format kconverge.recording/v2, written by a newer kconverge",
		file("other", session("something/v1")):                                                `but "something/v1"`,
		file("zstd", "\x28\xb5\x2f\xfd and then nothing of the kind"):                         "holds nothing whole: it was cut off",
	} {
		f, err := Open(path)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
	if f, err := Open(file("now", session(Format))); err != nil {
		t.Errorf("its own format is refused: %v", err)
	} else {
		f.Close()
	}
	path := file("there", "x")
	if _, err := Create(path, Options{}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("overwriting %s: %v", path, err)
	}
}
