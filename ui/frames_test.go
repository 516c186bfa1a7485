package ui_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

var update = flag.Bool("update", false, "write the frames in testdata/frames anew")

const framesDir = "../testdata/frames"

// golden compares a frame with its file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(framesDir, name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got+"\n" {
		t.Errorf("%s differs (go test ./ui -update writes it anew):\n%s", file, got)
	}
}

var sizes = []struct {
	name string
	w, h int
}{{"80x24", 80, 24}, {"120x40", 120, 40}, {"200x50", 200, 50}}

// scenes are the frames that are kept as files.
var scenes = []struct {
	name  string
	setup func(*screen)
}{
	{"starting", func(*screen) {}},
	{"converged", func(s *screen) { s.show(lanestest.Converged()) }},
	{"quiet", func(s *screen) { s.show(lanestest.Quiet()) }},
	{"quiet-cursor", func(s *screen) {
		s.show(lanestest.Quiet()).press(strings.Fields(strings.Repeat("left ", 30))...)
	}},
	{"timeline", func(s *screen) { s.show(lanestest.Converging()) }},
	{"fallback", func(s *screen) { s.show(lanestest.Fallback()) }},
	{"dual-stack", func(s *screen) { s.show(lanestest.DualStack()) }},
	{"timeline-marks", func(s *screen) {
		s.show(lanestest.Converging()).press("left", "left", "left", "m")
		s.press(strings.Fields(strings.Repeat("left ", 24))...).press("m")
	}},
	{"timeline-cursor", func(s *screen) {
		s.show(lanestest.Converging()).press("end", "up", "left", "left", "left", "left", "left")
	}},
	{"timeline-unfolded", func(s *screen) { s.show(lanestest.Converging()).press("u", "-") }},
	{"path-added", func(s *screen) { s.show(lanestest.Converging()).press("3", "p", "p", "p", "p") }},
	{"path-open", func(s *screen) { s.show(lanestest.Converging()).press("3") }},
	{"services", func(s *screen) { s.show(manyServices()).press("1") }},
	{"services-filtered", func(s *screen) {
		s.show(manyServices()).press("1", "/", "s", "h", "o", "space", "!", "c", "a", "r", "t")
	}},
	{"nodes", func(s *screen) { s.show(manyServices()).press("4") }},
	{"matrix", func(s *screen) { s.show(manyServices()).press("4", "x", "l", "l") }},
	{"matrix-large", func(s *screen) { s.show(manyEndpoints(100, 50)).press("4", "x", "L", "L", "G") }},
	{"engine", func(s *screen) { s.show(lanestest.Converging()).press("5") }},
	{"events", func(s *screen) { s.show(withGap()).press("6") }},
	{"findings", func(s *screen) { s.show(troubled()).press("7") }},
	{"findings-none", func(s *screen) { s.show(lanestest.Quiet()).press("7") }},
	{"findings-filtered", func(s *screen) {
		s.show(troubled()).press("7", "/", "n", "o", "d", "e", "space", "!", "3", "1", "1", "enter")
	}},
	{"services-found", func(s *screen) { s.show(troubled()).press("1") }},
	{"help", func(s *screen) { s.show(lanestest.Converging()).press("?") }},
	{"palette", func(s *screen) { s.show(lanestest.Converging()).press(":", "e", "p", "i") }},
	{"scale", func(s *screen) { s.show(lanestest.Converging()).press("s") }},
	{"path-compared", func(s *screen) { s.show(oneSlowNode()).press("3", "G") }},
	{"path-compared-log", func(s *screen) { s.show(oneSlowNode()).press("3", "j", "j", "j", "j", "e") }},
	{"unreachable", func(s *screen) { s.show(unreachable()) }},
	{"ended", func(s *screen) { s.show(lanestest.Converging()).send(ui.Ended()) }},
}

// oneSlowNode is a Service with twelve additions, the last of which met two conflicts and
// a node that was late.
func oneSlowNode() *timeline.Snapshot {
	var all []lanestest.Addition
	for i := range 11 {
		a := lanestest.Stretched(0.7 + 0.06*float64(i))
		if i == 4 {
			a.Sync[2] = 1400 * time.Millisecond
		}
		all = append(all, a)
	}
	last := lanestest.Stretched(1.1)
	last.Conflicts, last.Sync[2], last.Waited[2] = 2, 2900*time.Millisecond, 400*time.Millisecond
	return lanestest.Additions(append(all, last)...)
}

// unreachable is a cluster whose API server does not answer.
func unreachable() *timeline.Snapshot {
	at := time.Date(2026, 3, 1, 12, 4, 0, 0, time.UTC)
	return &timeline.Snapshot{
		Session: collect.Session{Kind: "cluster", Name: "prod", Namespaces: []string{"default"}, Rules: "not read"},
		First:   at, Now: at.Add(3 * time.Second),
		Sources: []timeline.SourceStatus{{
			ID: collect.SourcePods, State: collect.SourceBroken, Needed: true,
			Detail: `cannot watch pods in namespace "default": connection refused at https://10.0.0.1:6443; retrying`,
		}},
	}
}

func TestFramesLookAsTheyWereApproved(t *testing.T) {
	for _, size := range sizes {
		for _, scene := range scenes {
			t.Run(scene.name+"-"+size.name, func(t *testing.T) {
				s := newScreen(t, size.w, size.h, func(o *ui.Options) { o.Actions = &doer{} })
				scene.setup(s)
				golden(t, scene.name+"-"+size.name, s.text())
			})
		}
	}
}

// inASCII are the scenes whose frames in ASCII are kept too: each view once.
var inASCII = []string{"services", "timeline-marks", "path-open", "nodes", "engine", "events", "findings", "help", "palette", "fallback"}

func TestFramesInASCIIHoldNothingElse(t *testing.T) {
	kept := 0
	for _, size := range sizes {
		for _, scene := range scenes {
			s := newScreen(t, size.w, size.h, func(o *ui.Options) { o.Actions, o.ASCII = &doer{}, true })
			scene.setup(s)
			for i, l := range strings.Split(s.text(), "\n") {
				if at := strings.IndexFunc(l, func(r rune) bool { return r >= 0x80 }); at >= 0 {
					t.Errorf("%s %s, line %d: %q", scene.name, size.name, i, l)
				}
			}
			if size.w == 120 && slices.Contains(inASCII, scene.name) {
				kept++
				golden(t, scene.name+"-ascii-"+size.name, s.text())
			}
		}
	}
	if kept != len(inASCII) {
		t.Errorf("%d of %d scenes are there", kept, len(inASCII))
	}
}

func TestFramesOfOtherTerminals(t *testing.T) {
	s := newScreen(t, 120, 40, func(o *ui.Options) { o.ASCII = true })
	golden(t, "timeline-ascii-120x40", s.show(lanestest.Converging()).text())
	s = newScreen(t, 120, 40, func(o *ui.Options) { o.ASCII = true })
	golden(t, "quiet-ascii-120x40", s.show(lanestest.Quiet()).text())
	s = newScreen(t, 120, 40, func(o *ui.Options) { o.ASCII = true })
	golden(t, "matrix-ascii-120x40", s.show(manyEndpoints(7, 9)).press("4", "x").text())
	s = newScreen(t, 120, 40, func(o *ui.Options) { o.ASCII = true })
	golden(t, "path-compared-ascii-120x40", s.show(oneSlowNode()).press("3", "G").text())
	s = newScreen(t, 60, 34, nil)
	golden(t, "timeline-stacked-60x34", s.show(lanestest.Converging()).text())
	s = newScreen(t, 40, 10, nil)
	golden(t, "too-small-40x10", s.show(lanestest.Converging()).text())
	s = newScreen(t, 120, 40, nil)
	spec := lanestest.Web(10600 * time.Millisecond)
	spec.Blind = []string{"node-2"}
	golden(t, "timeline-blind-120x40", s.show(spec.Snapshot()).text())
}
