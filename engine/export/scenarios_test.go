package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// scenarios are those of testdata/scenarios, each played to its end.
func scenarios(t *testing.T) map[string]*timeline.Snapshot {
	t.Helper()
	files, err := filepath.Glob("../../testdata/scenarios/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("scenarios: %d, %v", len(files), err)
	}
	out := map[string]*timeline.Snapshot{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, sc := timeline.New(timeline.Options{}), timelinetest.New()
		for _, part := range txtar.Parse(data).Files {
			if word, _, _ := strings.Cut(part.Name, " "); word != "events" {
				continue
			}
			events, err := sc.Parse(string(part.Data))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, e := range events {
				m.Apply(e)
			}
		}
		out[strings.TrimSuffix(filepath.Base(file), ".txtar")] = m.Snapshot()
	}
	return out
}

// document makes the whole Document of a Snapshot.
func document(t *testing.T, s *timeline.Snapshot) *Document {
	t.Helper()
	d, err := New(s, Options{Tool: "kconverge test"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
