package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestANamespaceThatDoesNotExistIsSaidAndNotCalledConverged(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--nodes", "1")
	cluster := []string{"--kubeconfig", h.kubeconfig(), "-n", "nosuchns"}
	code, _, stderr := h.run(t, nil, append([]string{"watch", "--headless", "--for", "1s"}, cluster...)...)
	if code != exitNot || strings.Count(stderr, "\n") != 2 || strings.Count(stderr, `namespace "nosuchns" does not exist`) != 2 || !strings.Contains(stderr, "-A") {
		t.Errorf("exit code %d, want %d\n%s", code, exitNot, stderr)
	}
	// A command may create it.
	cluster[3] = "soon"
	code, _, stderr = h.run(t, nil, append(append([]string{"run"}, cluster...), "--", kubectl(t), "create", "namespace", "soon")...)
	if code != exitOK || !strings.Contains(stderr, `namespace "soon" does not exist yet`) {
		t.Errorf("exit code %d, want %d\n%s", code, exitOK, stderr)
	}
}

func TestAStateFolderThatCannotBeWrittenMovesTheLogAndIsSaid(t *testing.T) {
	h := newHome(t)
	h.env = slices.DeleteFunc(h.env, func(v string) bool { return strings.HasPrefix(v, "XDG_STATE_HOME=") })
	h.env = append(h.env, "XDG_STATE_HOME=/proc/nowhere") // root may write anywhere else
	code, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "1", "--run", "true")
	if code != exitOK || !strings.Contains(stderr, "/proc/nowhere") || !strings.Contains(stderr, "set XDG_STATE_HOME") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	_, rest, _ := strings.Cut(stderr, "it is ")
	file, _, _ := strings.Cut(rest, " instead")
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 || !strings.HasPrefix(file, h.dir) {
		t.Errorf("the log file %q: %v", file, err)
	}
}

func TestAReportThatCannotBeWrittenIsAPlainError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	h := newHome(t)
	for _, args := range [][]string{
		{"lab", "--headless", "--nodes", "1", "--run", "true"},
		{"lab", "--headless", "--nodes", "1", "--run", "true", "--output", "json"},
		{"version"},
	} {
		cmd := h.command(program, args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run()
		said := strings.TrimSpace(stderr.String())
		last := said[strings.LastIndex(said, "\n")+1:]
		if code := cmd.ProcessState.ExitCode(); code != exitNot || !strings.HasPrefix(last, "kconverge: ") || !strings.Contains(last, "no space left") {
			t.Errorf("%v: exit code %d, want %d\n%s", args, code, exitNot, said)
		}
	}
}
