package findings

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

const scenarios = "../../testdata/scenarios/"

// sections are what the "findings" parts of a scenario expect.
func sections(a *txtar.Archive) (out []string) {
	for _, part := range a.Files {
		if word, _, _ := strings.Cut(part.Name, " "); word == "findings" {
			out = append(out, timelinetest.Uncomment(string(part.Data)))
		}
	}
	return out
}

// codesIn are the codes in an expectation.
func codesIn(section string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(section) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "KC") {
			out[f[1]] = true
		}
	}
	return out
}

func all(t *testing.T) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob(scenarios + "*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	out := map[string]*txtar.Archive{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".txtar")] = txtar.Parse(data)
	}
	return out
}

func text(list []Finding, fixes bool) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s", f.Code.Severity, f.Code.ID, f.Object)
		if !f.Since.IsZero() {
			fmt.Fprintf(&b, " since %s", f.Since.Sub(timelinetest.Epoch))
		}
		fmt.Fprintf(&b, ": %s\n", f.Message)
		if fixes {
			fmt.Fprintf(&b, "  %s\n", f.Fix)
		}
	}
	return b.String()
}

// TestScenarios plays all scenarios. The parts "findings" must read exactly as what is
// found then; and after no event of any scenario may anything be found that none of
// its parts expects and justified does not list.
func TestScenarios(t *testing.T) {
	for name, a := range all(t) {
		t.Run(name, func(t *testing.T) {
			allowed := map[string]bool{}
			for _, s := range sections(a) {
				maps.Copy(allowed, codesIn(s))
			}
			for id := range strings.FieldsSeq(justified[name]) {
				if strings.HasPrefix(id, "KC") {
					allowed[strings.Trim(id, ",:")] = true
				}
			}
			m, sc := timeline.New(timeline.Options{}), timelinetest.New()
			for _, part := range a.Files {
				word, rest, _ := strings.Cut(part.Name, " ")
				switch word {
				case "events":
					events, err := sc.Parse(string(part.Data))
					if err != nil {
						t.Fatalf("%s: %v", part.Name, err)
					}
					for _, e := range events {
						m.Apply(e)
						for _, f := range Find(m.Snapshot(), nil) {
							if !allowed[f.Code.ID] {
								t.Errorf("at %s: %s", e.At.Sub(timelinetest.Epoch), text([]Finding{f}, true))
								allowed[f.Code.ID] = true // once is enough
							}
						}
					}
				case "findings":
					found := Find(m.Snapshot(), nil)
					if got, want := text(found, strings.Contains(rest, "fixes")), timelinetest.Uncomment(string(part.Data)); got != want {
						t.Errorf("-- %s --\ngot:\n%s\nwant:\n%s", part.Name, got, want)
					}
					if again := Find(m.Snapshot(), nil); !reflect.DeepEqual(found, again) {
						t.Error("another judgement of the same is different")
					}
				}
			}
		})
	}
}

// TestEachCodeHasItsCaseAndANearMiss: a scenario shows it in one part "findings", and
// does not in another of the same file.
func TestEachCodeHasItsCaseAndANearMiss(t *testing.T) {
	shown, missed := map[string]bool{}, map[string]bool{}
	for _, a := range all(t) {
		parts := sections(a)
		for _, s := range parts {
			for id := range codesIn(s) {
				shown[id] = true
				for _, other := range parts {
					if !codesIn(other)[id] {
						missed[id] = true
					}
				}
			}
		}
	}
	for _, c := range Codes() {
		if !shown[c.ID] {
			t.Errorf("%s (%s): no scenario shows it", c.ID, c.Title)
		} else if !missed[c.ID] {
			t.Errorf("%s (%s): no scenario stays silent about it", c.ID, c.Title)
		}
		delete(shown, c.ID)
	}
	for id := range shown {
		t.Errorf("%s is expected and does not exist", id)
	}
}

// TestJustified: what is allowed without being expected is found indeed.
func TestJustified(t *testing.T) {
	scs := all(t)
	for name, why := range justified {
		a := scs[name]
		if a == nil {
			t.Errorf("%s: no such scenario", name)
			continue
		}
		m, sc := timeline.New(timeline.Options{}), timelinetest.New()
		found := map[string]bool{}
		for _, part := range a.Files {
			if word, _, _ := strings.Cut(part.Name, " "); word != "events" {
				continue
			}
			events, err := sc.Parse(string(part.Data))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				m.Apply(e)
				for _, f := range Find(m.Snapshot(), nil) {
					found[f.Code.ID] = true
				}
			}
		}
		for id := range strings.FieldsSeq(why) {
			if id = strings.Trim(id, ",:"); strings.HasPrefix(id, "KC") && !found[id] {
				t.Errorf("%s: %s is allowed and not found", name, id)
			}
		}
	}
}

func TestCodesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.ID] || len(c.ID) != 5 || c.Severity.rank() < 0 || c.Title == "" || c.Means == "" || c.Seen == "" || c.Do == "" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		if Lookup(strings.ToLower(c.ID)) != c {
			t.Errorf("%s is not found by its name", c.ID)
		}
	}
	if Lookup("KC999") != nil {
		t.Error("a code that does not exist is found")
	}
	if !slices.IsSortedFunc(Codes(), func(a, b *Code) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("not sorted")
	}
}
