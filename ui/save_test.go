package ui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

// exporter writes down what it is asked for.
type exporter struct {
	exports []ui.Export
	saves   []string
	fail    error
}

func (e *exporter) options(o *ui.Options) {
	o.Export = func(x ui.Export) error { e.exports = append(e.exports, x); return e.fail }
	o.ExportFormats = []string{"html", "md", "csv"}
	o.Save = func(path string) error { e.saves = append(e.saves, path); return e.fail }
}

// named types a name over the one that is offered.
func (s *screen) named(name string) {
	s.press("ctrl+u")
	for _, r := range name {
		s.press(string(r))
	}
	s.pressed("enter")
}

func TestTheEndingOfANameSaysWhatIsSaved(t *testing.T) {
	for name, want := range map[string]string{
		"a.kcrec": "save a.kcrec", "a": "save a", "a.kconverge": "save a.kconverge", "a.html": "export a.html", "b.MD": "export b.MD", "~/x.csv": "export ~/x.csv", "a.pdf": "",
	} {
		var e exporter
		s := newScreen(t, 120, 40, e.options).show(lanestest.Converging())
		s.press("ctrl+s")
		if got := s.text(); !strings.Contains(got, ".kcrec") || !strings.Contains(got, ".html .md .csv") {
			t.Fatalf("the prompt:\n%s", got)
		}
		s.named(name)
		got := ""
		for _, x := range e.saves {
			got += "save " + x
		}
		for _, x := range e.exports {
			got += "export " + x.Path
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if want == "" && !strings.Contains(s.text(), ".pdf is no format: choose .kcrec .html .md .csv") {
			t.Errorf("nobody says that .pdf is no format:\n%s", s.text())
		}
	}
}

func TestWhatIsExportedIsWhatIsShown(t *testing.T) {
	snap := manyServices()
	for _, c := range []struct {
		keys    string
		service string
		window  bool
	}{{"", "default/web", true}, {"1", "", false}, {"3", "default/web", false}, {"7", "", false}} {
		var e exporter
		s := newScreen(t, 120, 40, e.options).show(snap)
		s.press(strings.Fields(c.keys)...)
		s.press("E")
		s.named("x.html")
		if len(e.exports) != 1 {
			t.Fatalf("after %q: %d exports\n%s", c.keys, len(e.exports), s.text())
		}
		x := e.exports[0]
		if x.Service != c.service || x.From.IsZero() == c.window || x.Snapshot != snap {
			t.Errorf("after %q: %s from %s to %s", c.keys, x.Service, x.From, x.To)
		}
		if c.window && (x.From.Before(snap.First) || x.To.After(snap.Now) || !x.From.Before(x.To)) {
			t.Errorf("the window is %s to %s", x.From, x.To)
		}
	}
	// Two marks are the window.
	var e exporter
	s := newScreen(t, 120, 40, e.options).show(snap)
	s.press("left", "left", "m", "left", "left", "left", "left", "m", "E")
	s.named("x.html")
	if d := e.exports[0].To.Sub(e.exports[0].From); d != 500*time.Millisecond {
		t.Errorf("between the marks is %s", d)
	}
}

func TestWhyNothingIsExportedIsSaid(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("E")
	if !strings.Contains(s.text(), "nothing can be exported here") {
		t.Error(s.text())
	}
	e := exporter{fail: errors.New("x.html exists already")}
	s = newScreen(t, 120, 40, e.options).show(lanestest.Converging())
	s.press("E")
	s.cmds = nil
	s.named("x.html")
	for _, c := range s.cmds {
		for _, msg := range run(c) {
			s.send(msg)
		}
	}
	if !strings.Contains(s.text(), "x.html exists already") {
		t.Error(s.text())
	}
}
