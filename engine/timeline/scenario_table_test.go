package timeline

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryNamedScenarioExists holds the tables of testdata/scenarios/README.md to
// what is there: each name is a file, each file has a name, each of the twenty
// reports has a line that names one or says why there is none.
func TestEveryNamedScenarioExists(t *testing.T) {
	const dir = "../../testdata/scenarios/"
	data, err := os.ReadFile(dir + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, ok := strings.Cut(string(data), "\n## What is covered\n")
	if !ok {
		t.Fatal("no tables")
	}
	name := regexp.MustCompile("`([a-z0-9-]+)`")
	named := map[string]bool{}
	reports := map[string]string{}
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(line, "|")
		last := cells[len(cells)-2]
		names := name.FindAllStringSubmatch(last, -1)
		for _, m := range names {
			named[m[1]] = true
			if _, err := os.Stat(dir + m[1] + ".txtar"); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[1]), err)
			}
		}
		if len(cells) == 5 {
			reports[strings.TrimSpace(cells[1])] = last
			if len(names) == 0 && !strings.HasPrefix(last, " none: ") && !strings.Contains(last, "scenarios") && !strings.HasPrefix(last, "---") {
				t.Errorf("%s: neither a scenario nor a reason", strings.TrimSpace(cells[2]))
			}
		}
	}
	for n := 1; n <= 20; n++ {
		if _, ok := reports[fmt.Sprint(n)]; !ok {
			t.Errorf("no line for report %d", n)
		}
	}
	files, err := filepath.Glob(dir + "*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if n := strings.TrimSuffix(filepath.Base(f), ".txtar"); !named[n] {
			t.Errorf("%s is in no table", n)
		}
	}
}
