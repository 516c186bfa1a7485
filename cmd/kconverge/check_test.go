package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/findings"
)

// TestCheckFindsWhatIsWrongInALab: a Service with a mistyped selector and one with a
// target port that no pod has are found in a lab beside one that is right, also in a
// recording of the same, and once they are gone nothing is.
func TestCheckFindsWhatIsWrongInALab(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--seed")
	check := func(args ...string) (int, string, string) {
		return h.run(t, nil, append([]string{"check", "--kubeconfig", h.kubeconfig()}, args...)...)
	}
	h.kubectl(t, "wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
	// Nothing is wrong, but no agent runs, so that nothing can be said of the rules.
	if code, _, stderr := check(); code != exitCannotTell || !strings.Contains(stderr, "nothing wrong was found in what can be seen") {
		t.Errorf("a quiet lab: %d %s", code, stderr)
	}

	manifest := filepath.Join(h.dir, "wrong.yaml")
	if err := os.WriteFile(manifest, []byte(`
{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: wbe}, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: grpc}]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.kubectl(t, "apply", "-f", manifest)
	// What is new is left alone for a while.
	var code int
	var stdout, stderr string
	eventually(t, "both are found", func() bool {
		code, stdout, stderr = check("-o", "json")
		return code == exitNot && strings.Count(stdout, `"code": "KC1`) == 2
	})
	got := map[string]string{}
	for _, f := range parse(t, stdout).Findings {
		got[f.Object] = f.Severity + " " + f.Code
		if f.Message == "" || f.Fix == "" {
			t.Errorf("%+v", f)
		}
	}
	if got["Service default/shop"] != "warning KC102" || got["Service default/api"] != "error KC120" {
		t.Errorf("found %v", got)
	}
	if !strings.Contains(stderr, "found 2 things to look at") {
		t.Errorf("said %q", stderr)
	}

	// One Service alone, and one that does not exist.
	file := filepath.Join(h.dir, "session")
	code, stdout, _ = check("svc/web", "--record", file)
	if code != exitCannotTell || strings.Contains(stdout, "KC1") {
		t.Errorf("svc/web: %d %s", code, stdout)
	}
	if code, _, stderr = check("svc/nobody"); code != exitNot || !strings.Contains(stderr, "does not exist") {
		t.Errorf("svc/nobody: %d %s", code, stderr)
	}

	// The recording says the same of all of them, without a cluster.
	code, stdout, _ = h.run(t, nil, "check", "--recording", file)
	if code != exitNot || !strings.Contains(stdout, "KC102  Service default/shop") || !strings.Contains(stdout, "KC120  Service default/api") {
		t.Errorf("recording: %d %s", code, stdout)
	}
	if code, stdout, _ = h.run(t, nil, "check", "--recording", file, "svc/web.default"); code != exitCannotTell || strings.Contains(stdout, "KC1") {
		t.Errorf("recording of svc/web: %d %s", code, stdout)
	}

	h.kubectl(t, "delete", "-f", manifest)
	if code, stdout, stderr = check(); code != exitCannotTell || strings.Contains(stdout, "KC1") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

// TestCheckFindsNothingWhereAllIsSeenAndWell: a lab's own recording has the rules of all
// nodes.
func TestCheckFindsNothingWhereAllIsSeenAndWell(t *testing.T) {
	h := newHome(t)
	file := filepath.Join(h.dir, "session")
	if code, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--seed", "--record", file,
		"--run", "kubectl wait --for=condition=Available deployment/web --timeout=60s"); code != exitOK {
		t.Fatalf("lab: %d %s", code, stderr)
	}
	code, stdout, stderr := h.run(t, nil, "check", "--recording", file)
	if code != exitOK || !strings.Contains(stdout, "nothing found") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

func TestExplain(t *testing.T) {
	h := newHome(t)
	code, stdout, _ := h.run(t, nil, "explain")
	if code != exitOK || strings.Count(stdout, "\n") != len(findings.Codes()) {
		t.Errorf("%d\n%s", code, stdout)
	}
	for _, c := range findings.Codes() {
		if !strings.Contains(stdout, c.ID) {
			t.Errorf("%s is not listed", c.ID)
		}
	}
	code, stdout, _ = h.run(t, nil, "explain", "kc302", "KC101")
	for _, want := range []string{"KC302  error  a node's rules are behind", "What it is", "How it is recognised", "What to do", "KC101  error"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%d: %q is missing in\n%s", code, want, stdout)
		}
	}
	if code, _, stderr := h.run(t, nil, "explain", "KC999"); code != exitUsage || !strings.Contains(stderr, "kconverge explain lists all") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestCheckRefuses(t *testing.T) {
	h := newHome(t)
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"check", "-o", "events"}, exitUsage, "text or json"},
		{[]string{"check", "--for", "-1s"}, exitUsage, "--for -1s: choose 0 or more"},
		{[]string{"check", "--recording", "x", "--for", "1s"}, exitUsage, "at its end"},
		{[]string{"check", "--recording", filepath.Join(h.dir, "none")}, exitUnreachable, "none"},
		{[]string{"check", "--recording", "x", "pod/x"}, exitUsage, "svc/NAME"},
	} {
		if code, _, stderr := h.run(t, nil, tc.args...); code != tc.code || !strings.Contains(stderr, tc.says) {
			t.Errorf("%v: %d %s", tc.args, code, stderr)
		}
	}
}
