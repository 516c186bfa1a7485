package consumers

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
	"github.com/kconverge/kconverge/ui"
	"github.com/kconverge/kconverge/ui/cast"
)

// reel is a cast.Reel of events in memory.
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

// TestAsciinemaPlaysACastToItsLastScreen: on a terminal of that size it shows what an
// emulator shows that is fed with the cast's own lines.
func TestAsciinemaPlaysACastToItsLastScreen(t *testing.T) {
	asciinema, err := exec.LookPath("asciinema")
	if err != nil {
		t.Fatalf("a cast is to be played by asciinema: make deps installs it: %v", err)
	}
	const w, h = 100, 30
	data, err := os.ReadFile("../scenarios/scale-4-to-7-to-5.txtar")
	if err != nil {
		t.Fatal(err)
	}
	r := &reel{m: timeline.New(timeline.Options{})}
	for _, part := range txtar.Parse(data).Files {
		if part.Name == "events" {
			if r.events, err = timelinetest.New().Parse(string(part.Data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := exported(t, func(w1 io.Writer) error {
		return cast.Write(w1, r, cast.Options{Width: w, Height: h, Screen: ui.Options{Title: "replay", Focus: "default/web", Theme: "dark", Environ: []string{"TERM=xterm-256color"}}})
	})
	file := filepath.Join(t.TempDir(), "x.cast")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	want := vt.NewEmulator(w, h)
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	for _, l := range lines[1:] {
		var e [3]any
		if err := json.Unmarshal(l, &e); err != nil {
			t.Fatal(err)
		}
		if e[1] == "o" {
			if _, err := want.WriteString(e[2].(string)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := vt.NewEmulator(w, h)
	cmd := exec.CommandContext(t.Context(), asciinema, "play", "-s", "100", file)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "ASCIINEMA_CONFIG_HOME="+t.TempDir())
	p, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: h, Cols: w})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, _ := io.ReadAll(p) // which ends with an error when the terminal closes
	if err := cmd.Wait(); err != nil {
		t.Fatalf("asciinema: %v\n%s", err, out)
	}
	if _, err := got.Write(out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(want.String(), "slices") || trimmed(got.String()) != trimmed(want.String()) {
		t.Errorf("asciinema ends with\n%s\nthe cast with\n%s", got, want)
	}
}

func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
