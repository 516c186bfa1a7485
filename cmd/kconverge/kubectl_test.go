package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTheRealKubectlDoesWhatItDoesOnAnyCluster runs the checks of
// testdata/kubectl, one PASS or FAIL line each.
func TestTheRealKubectlDoesWhatItDoesOnAnyCluster(t *testing.T) {
	suite, err := filepath.Abs("../../testdata/kubectl/suite.sh")
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	h.env = append(h.env, "KUBECTL="+kubectl(t))
	// The Services that the checks leave need not converge: the command's
	// own result is what counts.
	code, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "3", "--run", suite)
	failed := false
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "FAIL") {
			failed = true
			t.Error(strings.TrimSpace(line))
		}
	}
	if i := strings.LastIndex(stderr, " passed, "); i < 0 || code == exitCommand && !failed {
		t.Errorf("exit code %d and no summary in\n%s", code, stderr)
	} else {
		t.Log(stderr[strings.LastIndex(stderr[:i], "\n")+1 : i+len(" passed, ")+8])
	}
}
