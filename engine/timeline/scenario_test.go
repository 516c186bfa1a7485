package timeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// TestScenarios plays testdata/scenarios/*.txtar: the parts of a file are taken
// in order, events are applied, and every other part must read exactly as the
// snapshot at that point does. Expectations are written by hand from the rules;
// nothing here writes them.
func TestScenarios(t *testing.T) {
	eachScenario(t, nil)
}

// TestScenariosWithACheckpointAfterEachEvent: a model that is taken from a
// checkpoint after every event says the same.
func TestScenariosWithACheckpointAfterEachEvent(t *testing.T) {
	eachScenario(t, func(m *Model) *Model { return restored(t, m) })
}

func eachScenario(t *testing.T, after func(*Model) *Model) {
	files, err := filepath.Glob("../../testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runScenario(t, txtar.Parse(data), after)
		})
	}
}

func runScenario(t *testing.T, a *txtar.Archive, after func(*Model) *Model) {
	m, sc := New(Options{}), newScenario()
	checked := false
	for _, part := range a.Files {
		word, _, _ := strings.Cut(part.Name, " ")
		if word == "events" {
			events, err := sc.parse(string(part.Data))
			if err != nil {
				t.Fatalf("%s: %v", part.Name, err)
			}
			for _, e := range events {
				m.Apply(e)
				if after != nil {
					m = after(m)
				}
			}
			continue
		}
		checked = true
		if word == "findings" {
			continue // engine/findings plays those
		}
		got, err := section(m.Snapshot(), part.Name)
		if err != nil {
			t.Fatalf("%s: %v", part.Name, err)
		}
		if want := timelinetest.Uncomment(string(part.Data)); got != want {
			t.Errorf("-- %s --\ngot:\n%s\nwant:\n%s", part.Name, got, want)
		}
	}
	if !checked {
		t.Error("the scenario expects nothing")
	}
}
