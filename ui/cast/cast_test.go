package cast

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
	"github.com/kconverge/kconverge/ui"
)

// reel is a Reel of events in memory.
type reel struct {
	m      *timeline.Model
	events []collect.Event
}

func (r *reel) To(t time.Time) (*timeline.Snapshot, error) {
	for len(r.events) > 0 && !r.events[0].At.After(t) {
		r.m.Apply(r.events[0])
		r.events = r.events[1:]
	}
	return r.m.Snapshot(), nil
}

func (r *reel) Next() (time.Time, bool) {
	if len(r.events) == 0 {
		return time.Time{}, false
	}
	return r.events[0].At, true
}

// scenario is testdata/scenarios/scale-4-to-7-to-5, of 4 s with two episodes.
func scenario(t *testing.T) *reel {
	t.Helper()
	data, err := os.ReadFile("../../testdata/scenarios/scale-4-to-7-to-5.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range txtar.Parse(data).Files {
		if part.Name == "events" {
			events, err := timelinetest.New().Parse(string(part.Data))
			if err != nil {
				t.Fatal(err)
			}
			return &reel{timeline.New(timeline.Options{}), events}
		}
	}
	t.Fatal("no events")
	return nil
}

type castLine struct {
	at         float64
	kind, data string
}

// read takes an asciicast apart as its format tells: a header, then events by time.
func read(t *testing.T, b []byte) (header map[string]any, lines []castLine) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&header); err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for dec.More() {
		var e [3]any
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		l := castLine{e[0].(float64), e[1].(string), e[2].(string)}
		if l.at < last {
			t.Errorf("%g comes after %g", l.at, last)
		}
		last = l.at
		lines = append(lines, l)
	}
	return header, lines
}

func options(speed float64) Options {
	return Options{Width: 100, Height: 30, Speed: speed, Screen: ui.Options{Title: "replay x", Focus: "default/web", Theme: "dark", Environ: []string{"TERM=xterm-256color"}}}
}

func TestACastEndsWithTheScreenOfTheRecordingsEnd(t *testing.T) {
	var b bytes.Buffer
	o := options(1)
	if err := Write(&b, scenario(t), o); err != nil {
		t.Fatal(err)
	}
	header, lines := read(t, b.Bytes())
	if header["version"] != 2.0 || header["width"] != 100.0 || header["height"] != 30.0 {
		t.Errorf("header %v", header)
	}
	emu := vt.NewEmulator(100, 30)
	frames := 0
	for _, l := range lines {
		if l.kind == "o" {
			frames++
			if _, err := emu.WriteString(l.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if frames < 10 || frames > 45 {
		t.Errorf("%d frames in 4 s at 10 a second", frames)
	}
	// A screen that saw each event by itself.
	all := scenario(t)
	now := &clock{timelinetest.Epoch}
	o.Screen.Clock, o.Screen.Recorded, o.Screen.NoActions = now, true, "this is a recording"
	m, err := ui.New(o.Screen)
	if err != nil {
		t.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	for {
		at, more := all.Next()
		if !more {
			break
		}
		snap, err := all.To(at)
		if err != nil {
			t.Fatal(err)
		}
		now.now = snap.Now
		m.Update(ui.Show(snap))
		m.Frame()
	}
	want, got := trimmed(m.Frame().String()), trimmed(emu.String())
	if want != got {
		t.Errorf("the cast ends with\n%s\nthe screen shows\n%s", got, want)
	}
	if !strings.Contains(got, "web") || !strings.Contains(got, "n1") {
		t.Errorf("the screen shows\n%s", got)
	}
}

func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestMarkersStandWhereEpisodesBeginAndEndAtAnySpeed(t *testing.T) {
	for _, speed := range []float64{0.5, 1, 10} {
		var b bytes.Buffer
		if err := Write(&b, scenario(t), options(speed)); err != nil {
			t.Fatal(err)
		}
		_, lines := read(t, b.Bytes())
		var got []castLine
		for _, l := range lines {
			if l.kind == "m" {
				got = append(got, l)
			}
		}
		// By the scenario: 500 ms to 900 ms, and 2 s to 2.5 s; a frame is 100 ms of the cast.
		want := []struct {
			at   float64
			says string
		}{{0.5, "begins"}, {0.9, "+2"}, {2, "begins"}, {2.5, "−1"}}
		for _, w := range want {
			if !slices.ContainsFunc(got, func(g castLine) bool {
				return g.at >= w.at/speed-0.001 && g.at <= w.at/speed+0.2 && strings.Contains(g.data, w.says)
			}) {
				t.Errorf("speed %g: no marker says %q at %g: %v", speed, w.says, w.at/speed, got)
			}
		}
		if end := lines[len(lines)-1].at; end < 3.9/speed || end > 4.2/speed {
			t.Errorf("at speed %g 4 s take %g", speed, end)
		}
	}
}

func TestAPartOfARecording(t *testing.T) {
	var b bytes.Buffer
	o := options(1)
	o.From, o.To = timelinetest.Epoch.Add(1500*time.Millisecond), timelinetest.Epoch.Add(2200*time.Millisecond)
	if err := Write(&b, scenario(t), o); err != nil {
		t.Fatal(err)
	}
	_, lines := read(t, b.Bytes())
	markers := 0
	for _, l := range lines {
		if l.kind == "m" {
			markers++
		}
	}
	if end := lines[len(lines)-1].at; markers != 1 || end > 0.71 {
		t.Errorf("%d markers, %g s", markers, end)
	}
}

func TestAnEmptyRecordingIsAnError(t *testing.T) {
	if err := Write(&bytes.Buffer{}, &reel{m: timeline.New(timeline.Options{})}, options(1)); err == nil {
		t.Error("no error")
	}
}
