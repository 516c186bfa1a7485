package frame

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

var update = flag.Bool("update", false, "write the files in testdata/export anew")

func poster(s *timeline.Snapshot, w int) *draw.Screen {
	return Poster{Snapshot: s, Report: report.Build(s, nil), Width: w, Theme: &theme.Light, Glyphs: &draw.Unicode}.Draw()
}

// scenario plays one of testdata/scenarios to its end.
func scenario(t *testing.T, name string) *timeline.Snapshot {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/scenarios", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	m, sc := timeline.New(timeline.Options{}), timelinetest.New()
	for _, part := range txtar.Parse(data).Files {
		if word, _, _ := strings.Cut(part.Name, " "); word == "events" {
			events, err := sc.Parse(string(part.Data))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				m.Apply(e)
			}
		}
	}
	return m.Snapshot()
}

func TestPostersLookAsTheyWereApproved(t *testing.T) {
	for _, name := range []string{"scale-4-to-7-to-5", "gap-in-rules", "finding-selection", "dual-stack"} {
		var b bytes.Buffer
		if err := SVG(&b, poster(scenario(t, name), 100), LightColors); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("../../testdata/export", name+".svg")
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s differs (go test ./ui/frame -update writes it anew): %s", file, poster(scenario(t, name), 100))
		}
	}
}

// TestAPosterShowsEveryLaneAndChange: also what a screen would scroll to, at any width.
func TestAPosterShowsEveryLaneAndChange(t *testing.T) {
	snap := lanestest.Converging()
	for _, w := range []int{0, 60, 80, 120, 200, 400} {
		s := poster(snap, w)
		got := s.String()
		want := []string{"kconverge", "wanted", "slices (1)", "node-1", "node-2", "node-3", "reconciler", "agrees"}
		for _, p := range snap.Services[0].Paths {
			want = append(want, p.Origin.At.Format("15:04:05.000"))
		}
		for _, x := range want {
			if !strings.Contains(got, x) {
				t.Errorf("width %d: no %q in\n%s", w, x, got)
			}
		}
		if w >= 120 && !strings.Contains(got, "not yet on 1 of 3 nodes") {
			t.Errorf("an open change is not said to be open:\n%s", got)
		}
	}
}

// TestAPosterOfManyServicesCountsTheRest.
func TestAPosterOfManyServicesCountsTheRest(t *testing.T) {
	snap := lanestest.Converging()
	for i := range posterServices + 5 {
		spec := lanestest.Web(0)
		spec.Name = "web-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		snap.Services = append(snap.Services, spec.Service())
	}
	if got := poster(snap, 100).String(); !strings.Contains(got, "and 6 more Services") && !strings.Contains(got, "and 6 Services more") {
		t.Errorf("the rest is not counted:\n%s", got[len(got)-500:])
	}
}
