package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saying makes programs that say the versions and nothing else.
func saying(t *testing.T, said map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, says := range said {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = --version ] || exit 1\nprintf '%%s\\n' '%s'\n", says)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func with(change map[string]string) map[string]string {
	all := map[string]string{
		Etcd: "etcd Version: 3.7.0\nGit SHA: x", APIServer: "Kubernetes v1.37.2", ControllerManager: "Kubernetes v1.37.2", Scheduler: "Kubernetes v1.37.2",
	}
	for name, says := range change {
		all[name] = says
	}
	return all
}

func TestOnlyProgramsThatFitTogetherAreTaken(t *testing.T) {
	another := map[string]string{APIServer: "Kubernetes v1.37.0-rc.1", ControllerManager: "Kubernetes v1.37.0-rc.1", Scheduler: "Kubernetes v1.37.0-rc.1"}
	for _, c := range []struct {
		name string
		said map[string]string
		says []string // of the error; none when they are taken
	}{
		{"the right ones", with(nil), nil},
		{"another patch release", with(another), nil},
		{"an older minor", with(map[string]string{APIServer: "Kubernetes v1.36.4"}), []string{APIServer + " is version v1.36.4", "v1.37.2", "make cluster-bin"}},
		{"a mixture", with(map[string]string{Scheduler: "Kubernetes v1.37.3"}), []string{Scheduler + " is version v1.37.3", APIServer + " is v1.37.2", "one version"}},
		{"an older etcd", with(map[string]string{Etcd: "etcd Version: 3.5.21"}), []string{"etcd is version 3.5.21", "3.7.x", "make cluster-bin"}},
		{"another program", with(map[string]string{ControllerManager: "Hello 1"}), []string{ControllerManager + " --version says", "Hello 1", "make cluster-bin"}},
		{"the wrong name", with(map[string]string{Etcd: "Kubernetes v1.37.2"}), []string{"etcd --version says", "Kubernetes v1.37.2"}},
	} {
		dir := saying(t, c.said)
		p, err := Find(t.Context(), dir, "v1.37.2")
		if len(c.says) == 0 {
			if err != nil || "Kubernetes "+p.Kubernetes != c.said[APIServer] || p.Etcd != "3.7.0" || p.Dir != dir {
				t.Errorf("%s: %+v, %v", c.name, p, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s were taken", c.name)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %v", c.name, part, err)
			}
		}
	}
}

func TestAMissingProgramIsNamedWithTheWayOut(t *testing.T) {
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler} {
		said := with(nil)
		delete(said, name)
		dir := saying(t, said)
		_, err := Find(t.Context(), dir, "v1.37.2")
		if err == nil || !strings.Contains(err.Error(), "no "+name+" in "+dir) || !strings.Contains(err.Error(), "make cluster-bin") {
			t.Errorf("without %s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err = Find(t.Context(), dir, "v1.37.2"); err == nil || !strings.Contains(err.Error(), "no program that can be run") {
			t.Errorf("with a %s that cannot be run: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 7\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err = Find(t.Context(), dir, "v1.37.2"); err == nil || !strings.Contains(err.Error(), name+" --version: exit status 7") {
			t.Errorf("with a broken %s: %v", name, err)
		}
	}
	if _, err := Find(t.Context(), filepath.Join(t.TempDir(), "absent"), "v1.37.2"); err == nil || !strings.Contains(err.Error(), "make cluster-bin") {
		t.Errorf("without a directory: %v", err)
	}
}
