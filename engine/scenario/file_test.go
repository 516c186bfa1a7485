package scenario_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/scenario"
)

// TestAMistakeIsNamedWithItsPlaceAndTheWayOut goes through mistakes in a file.
func TestAMistakeIsNamedWithItsPlaceAndTheWayOut(t *testing.T) {
	for name, c := range map[string]struct{ steps, want string }{
		"nothing":               {"", "steps are missing"},
		"an unknown step":       {"- skale: 3", "line 3: field skale not found in a step"},
		"an unknown check":      {"- expect: {that: x, pots: 3}", "line 3: field pots not found in Check"},
		"two things":            {"- say: x\n  wait: converged", "line 3: step 1: it has say and wait"},
		"the second step":       {"- say: x\n- wait: soon", "line 4: step 2: wait: \"soon\": write converged"},
		"no range":              {"- expect: {that: x, pods: many}", "\"many\" is not a number: write 3"},
		"a range upside down":   {"- expect: {that: x, lag: {hop: nodes, worst: 5s..2s}}", "is not a range of time"},
		"an unknown fault":      {"- fault: sync-deley=3s", "did you mean sync-delay?"},
		"an unknown kubectl":    {"- kubectl: explain pods", "\"explain\" is not among what a scenario can do"},
		"a scale to nowhere":    {"- kubectl: scale deployment/web", "--replicas=N is missing"},
		"an open quote":         {"- kubectl: patch svc web -p '{", "a quote is not closed"},
		"a place that is wrong": {"- kubectl: delete pod {pod web}", "write {pod SERVICE N}"},
		"an unknown mark":       {"- expect: {that: x, since: later, pods: 3}", "no step before this one marks \"later\""},
		"no words":              {"- expect: {pods: 3}", "that is missing"},
		"checks nothing":        {"- expect: {that: x}", "it checks nothing"},
		"an unknown finding":    {"- expect: {that: x, findings: KC999}", "no finding has the code \"KC999\""},
		"an unknown hop":        {"- expect: {that: x, lag: {worst: 3s}}", "hop is missing"},
		"over the others":       {"- expect: {that: x, lag: {hop: nodes, over: 3s..4s}}", "over compares a node with the others"},
		"half seconds":          {"- deploy: {name: web, probe: 500ms}", "is not in whole seconds"},
		"no number":             {"- expect: {that: x, official: {node: node-1}}", "official: give known or missing"},
		"no manifest":           {"- apply: '{kind: Pod}'", "kind, apiVersion and metadata.name are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse("mine.yaml", []byte("title: t\nsteps:\n"+c.steps+"\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "mine.yaml") {
				t.Errorf("error %q, want mine.yaml and %q", err, c.want)
			}
		})
	}
}

func TestAReportIsNamedByItsRepositoryAndNumber(t *testing.T) {
	if _, err := scenario.Parse("mine.yaml", []byte("title: t\nreports: \"76338\"\nsteps: [{say: x}]\n")); err == nil || !strings.Contains(err.Error(), "kubernetes/kubernetes#76338") {
		t.Errorf("a bare number: %v", err)
	}
}

func TestAFileHoldsOneScenario(t *testing.T) {
	if _, err := scenario.Parse("mine.yaml", []byte("title: t\nsteps: [{say: x}]\n---\ntitle: u\n")); err == nil || !strings.Contains(err.Error(), "one scenario") {
		t.Errorf("two documents: %v", err)
	}
	if _, err := scenario.Parse("mine.yaml", nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty file: %v", err)
	}
}

// TestTheTableOfReportsIsTrue holds the README's table against the scenarios.
func TestTheTableOfReportsIsTrue(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "## Reports that cannot")
	var says, have []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "#") {
			continue
		}
		for report := range strings.SplitSeq(cells[1], ",") {
			for _, name := range strings.Fields(cells[3]) {
				says = append(says, strings.TrimSpace(report)+" "+strings.Trim(name, "`"))
			}
		}
	}
	all, err := scenario.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, r := range s.Reports {
			have = append(have, r+" "+s.Name)
		}
	}
	slices.Sort(says)
	slices.Sort(have)
	if !slices.Equal(says, have) || len(says) < 20 {
		t.Errorf("the README's table has\n%s\nand the scenarios have\n%s", strings.Join(says, "\n"), strings.Join(have, "\n"))
	}
}

// TestEveryScenarioOfTheProgramCanBeOpenedByItsName and tells what it expects, in words.
func TestEveryScenarioOfTheProgramCanBeOpenedByItsName(t *testing.T) {
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := scenario.All()
	if err != nil || len(all) != len(files) || len(all) < 30 {
		t.Fatalf("%d scenarios of %d files, %v", len(all), len(files), err)
	}
	for _, s := range all {
		if again, err := scenario.Open(s.Name); err != nil || again.Name != s.Name || s.About == "" {
			t.Errorf("%s: %v", s.Name, err)
		}
		if text, err := scenario.Text(s.Name); err != nil || !strings.Contains(text, s.Title) {
			t.Errorf("%s: text %q, %v", s.Name, text, err)
		}
	}
	if _, err := scenario.Open("scale-upp"); err == nil || !strings.Contains(err.Error(), "kconverge lab scenarios") {
		t.Errorf("an unknown name: %v", err)
	}
}
