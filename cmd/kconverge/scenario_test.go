package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const ownScenario = `title: two pods are routed to
nodes: 1
steps:
- say: two pods, please
- deploy: {name: web, replicas: 2}
  cause: true
- deploy: {name: web, replicas: 1}
  instead: true
- wait: converged
- expect:
    that: both are in the rules
    rules: {have: 2, behind: false}
`

// TestAnOwnScenarioIsPlayedAndJudged from its file, with its cause and without.
func TestAnOwnScenarioIsPlayedAndJudged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(ownScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	code, stdout, stderr := h.run(t, nil, "lab", "--headless", "--scenario", file)
	if code != exitOK || !strings.Contains(stdout, "two pods, please") || !strings.Contains(stdout, "✓ both are in the rules") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = h.run(t, nil, "lab", "--headless", "--scenario", file, "--control", "--output", "json", "--ascii")
	if code != exitNot || !strings.Contains(stderr, "NOT MET both are in the rules") || !strings.Contains(stderr, "1 of 1 expectation not met") {
		t.Errorf("without its cause: exit code %d\n%s", code, stderr)
	}
	if s := web(t, parse(t, stdout)); s.Planes.Rules["node-1"].Have != 1 {
		t.Errorf("the report has %+v", s.Planes)
	}
}

// TestAScenarioThatIsLeftSaysSo: what was met until then is not all that it expects.
func TestAScenarioThatIsLeftSaysSo(t *testing.T) {
	h := newHome(t)
	file := filepath.Join(h.dir, "mine.yaml")
	if err := os.WriteFile(file, []byte(ownScenario+"- wait: 1h\n- expect: {that: never seen, pods: 9}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := newTerminal(120, 40)
	cmd, master, done := h.startOnTerminal(t, 40, 120, x, "lab", "--scenario", file)
	go func() { _, _ = io.Copy(master, x.emu) }()
	eventually(t, "the first expectation is met", func() bool { return strings.Contains(x.screen(), "met: both are in the rules") })
	if _, err := master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	<-done
	if got := x.screen(); !strings.Contains(got, "Scenario mine was left before its end: 1 of 1 expectation until then met.") {
		t.Errorf("it says\n%s", got)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	h := newHome(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--scenario", "scale-upp"}, "kconverge lab scenarios"},
		{[]string{"--scenario", "tour", "--tour"}, "exclude each other"},
		{[]string{"--tour", "--run", "true"}, "exclude each other"},
		{[]string{"--control"}, "--scenario"},
		{[]string{"--traffic", "1000"}, "0 to 200"},
	} {
		code, _, stderr := h.run(t, nil, append([]string{"lab", "--headless"}, c.args...)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s; want %q", c.args, code, stderr, c.want)
		}
	}
	code, stdout, _ := h.run(t, nil, "lab", "scenarios")
	if code != exitOK || !strings.Contains(stdout, "slow-sync ") || strings.Count(stdout, "\n") < 30 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if code, stdout, _ = h.run(t, nil, "lab", "scenarios", "slow-sync"); code != exitOK || !strings.HasPrefix(stdout, "title:") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}
