package mutations

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// mutation is a small change of the model that would make it wrong.
type mutation struct {
	name, file, why, old, new string
}

// mutationsFile says what each of its parts consists of.
const mutationsFile = "mutations.txtar"

// model is the folder of the package that is changed.
const model = ".."

func readMutations() (out []mutation, err error) {
	a, err := txtar.ParseFile(mutationsFile)
	if err != nil {
		return nil, err
	}
	for _, part := range a.Files {
		i := strings.LastIndex(part.Name, ", ")
		if i < 0 {
			return nil, fmt.Errorf("%s: %q names no file", mutationsFile, part.Name)
		}
		m := mutation{name: part.Name[:i], file: part.Name[i+2:]}
		body := string(part.Data)
		for strings.HasPrefix(body, "# ") {
			line, rest, _ := strings.Cut(body, "\n")
			m.why, body = strings.TrimSpace(m.why+" "+line[2:]), rest
		}
		old, now, ok := strings.Cut(body, "\n=>\n")
		if m.old, m.new = old, strings.TrimSuffix(now, "\n"); !ok || m.why == "" || m.old == "" || m.old == m.new {
			return nil, fmt.Errorf("%s: %q needs a reason, an old text, a line =>, and another new text", mutationsFile, part.Name)
		}
		out = append(out, m)
	}
	return out, nil
}

// apply gives the file with the change made.
func (m *mutation) apply() (string, error) {
	src, err := os.ReadFile(filepath.Join(model, m.file))
	if err != nil {
		return "", fmt.Errorf("%q: %w", m.name, err)
	}
	if n := strings.Count(string(src), m.old); n != 1 {
		return "", fmt.Errorf("%q: its old text stands %d times in %s and not once:\n%s", m.name, n, m.file, m.old)
	}
	return strings.Replace(string(src), m.old, m.new, 1), nil
}

// TestMutationsAreWellFormed: every mutation still has its place. It runs with
// -short, too, since whoever changes the model has to take them along.
func TestMutationsAreWellFormed(t *testing.T) {
	all, err := readMutations()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Errorf("%d mutations, there should be at least 20", len(all))
	}
	seen := map[string]bool{}
	for _, m := range all {
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
		if seen[m.name] {
			t.Errorf("two mutations are called %q", m.name)
		}
		seen[m.name] = true
	}
}

// checksOfMutations is how many random worlds each property gets to catch a
// mutation.
const checksOfMutations = "150"

// TestMutationsAreCaught: with each of the mutations the model still builds, and its
// ordinary tests fail. The tree is not changed: the compiler reads the mutated
// file in the place of the real one.
func TestMutationsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the package's tests once for each mutation")
	}
	all, err := readMutations()
	if err != nil {
		t.Fatal(err)
	}
	// What fails by itself would catch everything.
	if out, err := testWith(t, "", ""); err != nil {
		t.Fatalf("the tests fail without any mutation: %v\n%s", err, out)
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			src, err := m.apply()
			if err != nil {
				t.Fatal(err)
			}
			out, err := testWith(t, m.file, src)
			var exit *exec.ExitError
			switch {
			case errors.Is(err, errBuild):
				t.Fatalf("the mutation in %s does not build, so nothing is shown:\n%s", m.file, out)
			case err == nil:
				t.Fatalf("the mutation in %s survived. It would be wrong: %s", m.file, m.why)
			case !errors.As(err, &exit):
				t.Fatal(err)
			case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic:"):
				t.Fatalf("the tests ended with %v, but no test failed:\n%s", err, out)
			}
			t.Log(firstFailure(out))
		})
	}
}

var errBuild = errors.New("does not build")

// testWith builds the package's tests with another content of one file and runs
// them until the first fails.
func testWith(t *testing.T, file, src string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(dir, "timeline.test")}
	if file != "" {
		path, err := filepath.Abs(filepath.Join(model, file))
		if err != nil {
			t.Fatal(err)
		}
		mutant, overlay := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(mutant, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, model)...).CombinedOutput(); err != nil {
		return string(out), fmt.Errorf("%w: %w", errBuild, err)
	}
	cmd := exec.Command(filepath.Join(dir, "timeline.test"), "-test.short", "-test.failfast", "-test.timeout=60s",
		"-rapid.seed=1", "-rapid.checks="+checksOfMutations, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	cmd.Dir = model
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFailure names the test that failed.
func firstFailure(out string) string {
	name := "caught by a panic"
	for line := range strings.Lines(out) {
		if _, test, ok := strings.Cut(line, "--- FAIL: "); ok {
			name = "caught by " + strings.TrimSpace(test)
		}
	}
	return name
}
