package consumers

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

// speedscope is a reader of Chrome's trace events, by other people. It knows complete
// events (slices), not asynchronous spans.
const speedscope = "speedscope@1.25.0"

// speedscopePage is its page, from its npm package.
func speedscopePage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, c := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "npm", "pack", "--silent", speedscope),
		exec.CommandContext(t.Context(), "sh", "-c", "tar xzf *.tgz"),
	} {
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c, err, out)
		}
	}
	return filepath.Join(dir, "package/dist/release/index.html")
}

// its is what speedscope saves: its own file format.
type its struct {
	Shared   struct{ Frames []struct{ Name string } }
	Profiles []struct {
		Name, Unit string
		Events     []struct {
			Type  string
			Frame int
			At    float64
		}
	}
}

// slice is one on a thread: when it began, and for how long, in microseconds.
type slice struct {
	name      string
	from, dur float64
}

// since are slices by their time, which counts from the first one's.
func since(list []slice) (out []string) {
	slices.SortFunc(list, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s at %.0f for %.0f", s.name, s.from-list[0].from, s.dur))
	}
	return out
}

// slices are those that a profile holds. Of a name speedscope makes one with the arguments.
func (f *its) slices(profile int) (out []slice) {
	opened := map[int]float64{}
	for _, e := range f.Profiles[profile].Events {
		if e.Type == "O" {
			opened[e.Frame] = e.At
			continue
		}
		name, _, _ := strings.Cut(f.Shared.Frames[e.Frame].Name, " {")
		out = append(out, slice{name, opened[e.Frame], e.At - opened[e.Frame]})
	}
	return out
}

// TestSpeedscopeReadsTheTrace: each lane that something arrived on is a profile of its
// own name, which holds those arrivals, each when it was and as long as in the trace.
func TestSpeedscopeReadsTheTrace(t *testing.T) {
	trace := exported(t, document(t, lanestest.Converging()).Trace)
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			PID, TID int
			TS, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(trace, &file); err != nil {
		t.Fatal(err)
	}
	want, thread := map[string][]slice{}, map[[2]int]string{}
	for _, e := range file.TraceEvents {
		if e.Name == "thread_name" {
			thread[[2]int{e.PID, e.TID}] = e.Args["name"].(string)
		}
	}
	for _, e := range file.TraceEvents {
		if name := thread[[2]int{e.PID, e.TID}]; e.Ph == "X" {
			want[name] = append(want[name], slice{e.Name, e.TS, e.Dur})
		}
	}
	if len(want) < 4 {
		t.Fatalf("slices on %d threads alone", len(want))
	}

	script := filepath.Join(t.TempDir(), "profile.js")
	if err := os.WriteFile(script, fmt.Appendf(nil, "speedscope.loadFileFromBase64(%q, %q)", "web.json", base64.StdEncoding.EncodeToString(trace)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := chromium(t)
	b.do(chromedp.Navigate("file://"+speedscopePage(t)+"#localProfilePath="+script),
		chromedp.Poll(`document.body.innerText.includes("Sandwich") && !document.body.innerText.includes("Loading")`, nil),
		chromedp.Evaluate(`{ const make = URL.createObjectURL; URL.createObjectURL = blob => { window.saved = blob; return make.call(URL, blob) } }`, nil),
		chromedp.Poll(`(window.dispatchEvent(new KeyboardEvent("keydown", {key: "s", code: "KeyS", ctrlKey: true, bubbles: true})), window.saved != undefined)`, nil),
		chromedp.Evaluate(`saved.text().then(text => { window.savedText = text })`, nil),
		chromedp.Poll(`window.savedText != undefined`, nil))
	var got its
	if err := json.Unmarshal([]byte(ask[string](b, `savedText`)), &got); err != nil {
		t.Fatal(err)
	}
	b.picture("speedscope")
	found := map[string][]slice{}
	for i, p := range got.Profiles {
		for name := range want {
			if strings.Contains(p.Name, name) {
				found[name] = got.slices(i)
			}
		}
		if p.Unit != "microseconds" {
			t.Errorf("%s is in %s", p.Name, p.Unit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, want := since(found[name]), since(want[name]); !slices.Equal(got, want) {
			t.Errorf("%s holds\n%q, want\n%q", name, got, want)
		}
	}
}
