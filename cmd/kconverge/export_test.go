package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
	"github.com/kconverge/kconverge/ui"
)

// scenarioRecording is testdata/scenarios/scale-4-to-7-to-5 as a recording.
func scenarioRecording(t *testing.T) string {
	t.Helper()
	return recordScenario(t, recordingOptions())
}

func recordScenario(t *testing.T, o recording.Options) string {
	t.Helper()
	data, err := os.ReadFile("../../testdata/scenarios/scale-4-to-7-to-5.txtar")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "scale.kcrec")
	w, err := recording.Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	events := []collect.Event{{At: timelinetest.Epoch, Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: timelinetest.Epoch}}}
	for _, part := range txtar.Parse(data).Files {
		if part.Name == "events" {
			more, err := timelinetest.New().Parse(string(part.Data))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, more...)
		}
	}
	for i, e := range events {
		e.Seq = uint64(i + 1)
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// exportOf runs kconverge export.
func exportOf(args ...string) (string, error) { return outputOf(newExport(), args...) }

// outputOf runs one of kconverge's commands.
func outputOf(c *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func exported(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exportOf(args...)
	if err != nil {
		t.Fatalf("export %q: %v", args, err)
	}
	return out
}

func TestEachFormatIsWritten(t *testing.T) {
	file := scenarioRecording(t)
	for format, begins := range map[string]string{
		"json": "{\n  \"schema\": \"kconverge.report/v1\"", "csv": "namespace,service,path", "md": "## kconverge: `lab lab`", "html": "<!DOCTYPE html>",
		"svg": "<svg ", "png": "\x89PNG", "trace": `{"displayTimeUnit":"ms"`, "otlp": `{"resourceSpans":[`, "cast": `{"env":`,
	} {
		if out := exported(t, file, "--to", format); !strings.HasPrefix(out, begins) || len(out) < 500 {
			t.Errorf("--to %s: %.80q, %d bytes", format, out, len(out))
		}
		// Into a file, named by its ending; never over one that is there.
		out := filepath.Join(t.TempDir(), "x."+format)
		exported(t, file, "-o", out)
		if b, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(b), begins) {
			t.Errorf("-o %s: %v %.80q", out, err, b)
		}
		if _, err := exportOf(file, "-o", out); codeOf(err) != exitUsage || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("over a file that is there: %v", err)
		}
	}
	if _, err := png.Decode(strings.NewReader(exported(t, file, "--to", "png", "--width", "80", "--theme", "light"))); err != nil {
		t.Error(err)
	}
}

func TestAPartOfTheTimeIsExported(t *testing.T) {
	file := scenarioRecording(t)
	get := func(args ...string) (r report.Report) {
		t.Helper()
		if err := json.Unmarshal([]byte(exported(t, append([]string{file, "--to", "json"}, args...)...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ops := func(r report.Report) string {
		s := ""
		for _, p := range r.Services[0].Paths {
			s += p.Op + " " + p.Status + ", "
		}
		return s
	}
	if got := ops(get()); strings.Count(got, "arrived") != 6 {
		t.Errorf("all: %s", got)
	}
	// At 600 ms the two additions are on their way, and the removal is not yet known of.
	r := get("--until", "+600ms")
	if got := ops(r); got != "change arrived, change arrived, add open, add open, " {
		t.Errorf("until 600 ms: %s", got)
	}
	if !r.Window.To.Equal(timelinetest.Epoch.Add(600 * time.Millisecond)) {
		t.Errorf("the window ends at %s", r.Window.To)
	}
	// From 1 s on nothing is left of them.
	if got := ops(get("--from", "+1s")); got != "remove arrived, change arrived, " {
		t.Errorf("from 1 s: %s", got)
	}
	if got := ops(get("--from", "+600ms", "--until", "-1900ms")); got != "add arrived, add arrived, remove open, " {
		t.Errorf("from 600 ms to 1.9 s before the end: %s", got)
	}
}

// damagedRecording is scenarioRecording in several frames, of which the second is not as
// it was written.
func damagedRecording(t *testing.T) string {
	t.Helper()
	path := recordScenario(t, recording.Options{Model: recordingModel, CheckpointEvery: 10})
	f, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Frames) < 3 {
		t.Fatalf("%d frames", len(f.Frames))
	}
	bad := f.Frames[1]
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bad.Offset+bad.Size/2] ^= 0xff
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	file := damagedRecording(t)
	for _, format := range formatNames() {
		out, err := exportOf(file, "--to", format)
		if codeOf(err) != exitCannotTell || !strings.Contains(err.Error(), "cannot be read") || len(out) < 100 {
			t.Errorf("--to %s: %v, %d bytes", format, err, len(out))
		}
		if format != "json" {
			continue
		}
		var r report.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Gaps) == 0 {
			t.Error("the report has no gap")
		}
	}
	anonymised := filepath.Join(t.TempDir(), "anonymised")
	if _, err := outputOf(newAnonymise(), file, "-o", anonymised); codeOf(err) != exitCannotTell || !strings.Contains(err.Error(), "1 part of "+file+" cannot be read") {
		t.Errorf("anonymise: %v", err)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(exported(t, anonymised, "--to", "json")), &r); err != nil || len(r.Gaps) == 0 {
		t.Errorf("anonymised, the report has no gap: %v", err)
	}
	whole := scenarioRecording(t)
	for _, args := range [][]string{{file, whole}, {whole, file}} {
		if _, err := outputOf(newDiff(), args...); codeOf(err) != exitCannotTell || !strings.Contains(err.Error(), "of "+file+" cannot be read") {
			t.Errorf("diff %q: %v", args, err)
		}
	}
}

// TestNothingListedIsUnknown: when the lists themselves cannot be read, a Service is not
// called converged.
func TestNothingListedIsUnknown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.kcrec")
	w, err := recording.Create(path, recordingOptions())
	if err != nil {
		t.Fatal(err)
	}
	session := collect.Event{At: timelinetest.Epoch, Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: timelinetest.Epoch}}
	events, err := timelinetest.New().Parse(`
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
1s    now
`)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range append([]collect.Event{session}, events...) {
		e.Seq = uint64(i + 1)
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(exported(t, path, "--to", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if s := r.Services[0]; s.State != "unknown" {
		t.Errorf("%s is %s", s.Name, s.State)
	}
}

func TestRefusalsOfExportSayTheWayOut(t *testing.T) {
	file := scenarioRecording(t)
	for want, args := range map[string][]string{
		"which format? --to json|":                      {file},
		"choose one of json, csv, md":                   {file, "--to", "pdf"},
		"not in the recording":                          {file, "--to", "md", "--service", "default/none"},
		"which has default/web":                         {file, "--to", "md", "--service", "default/none"},
		"the recording goes from":                       {file, "--to", "md", "--until", "+1h"},
		"write 15:04:05, +10s":                          {file, "--to", "md", "--until", "soon"},
		"is not before --until":                         {file, "--to", "md", "--from", "+2s", "--until", "+1s"},
		"write WIDTHxHEIGHT":                            {file, "--to", "cast", "--size", "wide"},
		"choose more than 0":                            {file, "--to", "cast", "--speed", "0"},
		"--width 5: choose 60 to 1000":                  {file, "--to", "svg", "--width", "5"},
		"--size: svg has none":                          {file, "--to", "svg", "--size", "80x24"},
		"--theme: csv has none":                         {file, "--to", "csv", "--theme", "light"},
		"no theme is called":                            {file, "--to", "svg", "--theme", "pink"},
		"no such file":                                  {filepath.Join(t.TempDir(), "none"), "--to", "md"},
		"export takes one recording: kconverge export ": {},
	} {
		if _, err := exportOf(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

func TestMomentsOfARecording(t *testing.T) {
	loc := time.FixedZone("X", 3600)
	start := time.Date(2026, 3, 1, 23, 50, 0, 0, loc)
	end := start.Add(30 * time.Minute)
	for s, want := range map[string]time.Time{
		"23:55:00":             start.Add(5 * time.Minute),
		"00:10":                start.Add(20 * time.Minute), // the next day's
		"+90s":                 start.Add(90 * time.Second),
		"-1m":                  end.Add(-time.Minute),
		"2026-03-02 00:01:00":  start.Add(11 * time.Minute),
		"2026-03-01T22:55:00Z": start.Add(5 * time.Minute),
		"23:55:00.250":         start.Add(5*time.Minute + 250*time.Millisecond),
	} {
		if got, err := recordedMoment(s, start, end, loc); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"12:00", "+1h", "-1h", "x", ""} {
		if got, err := recordedMoment(s, start, end, loc); err == nil {
			t.Errorf("%q: %s", s, got)
		}
	}
}

func TestTheScreenExportsByTheEnding(t *testing.T) {
	file, err := recording.Open(scenarioRecording(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f := exportFlags{}
	snap, err := f.document(file, time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shownFormats() {
		out := filepath.Join(t.TempDir(), "x."+name)
		if err := exportShown(ui.Export{Path: out, Snapshot: snap.Snapshot, Service: "default/web"}); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(out); err != nil || info.Size() < 500 {
			t.Errorf("%s: %v", out, err)
		}
	}
	if err := exportShown(ui.Export{Path: "x.cast", Snapshot: snap.Snapshot}); err == nil || !strings.Contains(err.Error(), ".json .csv .md .html") {
		t.Errorf("x.cast: %v", err)
	}
}
