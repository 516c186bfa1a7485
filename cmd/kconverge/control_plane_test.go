package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// realPrograms are those of a real control plane, by name.
var realPrograms = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// realPlane gives the directory of the real control plane's programs.
func realPlane(t testing.TB) string {
	t.Helper()
	for _, name := range realPrograms {
		if _, err := os.Stat(filepath.Join(clusterBin, name)); err != nil {
			t.Fatalf("%v: build it with `make cluster-bin`", err)
		}
	}
	return clusterBin
}

// programs lists the processes of the real control plane in a home, by name.
func (h *home) programs(t testing.TB) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, pid := range h.descendants(t) {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if name := filepath.Base(exe); err == nil && slices.Contains(realPrograms, name) {
			out[name] = pid
		}
	}
	return out
}

const scaledInTwoSteps = `kubectl create deployment web --image=nginx --replicas=4 &&
 kubectl expose deployment web --port=80 --target-port=8080 &&
 kubectl rollout status deployment/web &&
 kubectl scale deployment/web --replicas=2 &&
 until [ "$(kubectl get pods -l app=web -o name | wc -l)" = 2 ]; do sleep 0.1; done
 kubectl scale deployment/web --replicas=7 &&
 kubectl rollout status deployment/web`

// converged checks the report of scaledInTwoSteps against a real control plane.
func converged(t *testing.T, stdout string, nodes int) {
	t.Helper()
	r := parse(t, stdout)
	if !strings.HasPrefix(r.Source.ControlPlane, "Kubernetes' own programs v1.37.2, etcd 3.7.0 (") {
		t.Errorf("control plane %q", r.Source.ControlPlane)
	}
	s := web(t, r)
	agree(t, s, 7, nodes)
	ops := map[string]int{}
	for i := range s.Paths {
		p := &s.Paths[i]
		if p.Status != "arrived" || p.Endpoint.IP == "" {
			continue
		}
		if p.Op == "add" {
			causal(t, p, nodes)
		}
		ops[p.Op]++
	}
	if ops["add"] < 7 || ops["remove"] < 2 {
		t.Errorf("arrived: %v, want at least 7 additions and 2 removals", ops)
	}
}

func TestARealControlPlaneConvergesInTheLab(t *testing.T) {
	dir := realPlane(t)
	h := newHome(t)
	code, stdout, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "3", "--control-plane", dir, "--output", "json", "--run", scaledInTwoSteps)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	converged(t, stdout, 3)
	log, err := os.ReadFile(filepath.Join(h.dir, "state", "kconverge", "kconverge.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range realPrograms[1:] {
		if !strings.Contains(string(log), "\n"+name+": ") {
			t.Errorf("nothing of %s is in the log", name)
		}
		if strings.Contains(stderr, name) {
			t.Errorf("%s wrote to standard error:\n%s", name, stderr)
		}
	}
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
	if running := h.descendants(t); len(running) > 0 {
		t.Errorf("still running: %v", running)
	}
}

func TestARealControlPlaneWithNodesInMemory(t *testing.T) {
	dir := realPlane(t)
	h := newHome(t)
	name, args := withoutNetNS("lab", "--headless", "--nodes", "2", "--control-plane", dir, "--output", "json", "--run", threeReplicas)
	cmd := exec.Command(name, args...)
	stdout, stderr := h.output(t, cmd)
	inMemory(t, stderr, "user.max_net_namespaces")
	r := parse(t, stdout)
	if r.Source.Rules != "in memory: network namespaces are refused" || !strings.HasPrefix(r.Source.ControlPlane, "Kubernetes' own programs") {
		t.Errorf("source %+v", r.Source)
	}
	agree(t, web(t, r), 3, 2)
}

func TestAnOrdinaryUserRunsARealControlPlane(t *testing.T) {
	dir := realPlane(t)
	h := newHome(t)
	if err := exec.Command("chown", "-R", "65534:65534", h.dir).Run(); err != nil {
		t.Fatal(err)
	}
	// Root's folders may be closed to others: the user has programs of its own.
	theirs := filepath.Join(h.dir, "bin")
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"kubectl"}, realPrograms...) {
		if err := exec.Command("cp", filepath.Join(dir, name), theirs).Run(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program,
		"lab", "--headless", "--nodes", "2", "--control-plane", theirs, "--output", "json", "--run", "PATH="+theirs+":$PATH\n"+scaledInTwoSteps)
	stdout, _ := h.output(t, cmd)
	converged(t, stdout, 2)
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

func TestARealControlPlaneEndsWithTheLabHoweverItEnds(t *testing.T) {
	dir := realPlane(t)
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		whom   func(h *home, guard int) []int
	}{
		{"SIGTERM to the guard", syscall.SIGTERM, func(_ *home, guard int) []int { return []int{guard} }},
		{"SIGKILL of the guard", syscall.SIGKILL, func(_ *home, guard int) []int { return []int{guard} }},
		{"SIGKILL of the lab", syscall.SIGKILL, func(h *home, guard int) []int { return h.labs(t, guard) }},
		{"SIGKILL of both", syscall.SIGKILL, func(h *home, guard int) []int { return append([]int{guard}, h.labs(t, guard)...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			p := h.lab(t, "--nodes", "2", "--control-plane", dir)
			if running := h.programs(t); len(running) != len(realPrograms) {
				t.Fatalf("running are %v", running)
			}
			whom := c.whom(h, p.cmd.Process.Pid)
			if len(whom) == 0 {
				t.Fatal("nobody to send a signal to")
			}
			for _, pid := range whom {
				// The second may have ended for want of the first.
				if err := syscall.Kill(pid, c.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Fatal(err)
				}
			}
			p.wait()
			eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
			// With them every namespace is gone that they had open, and all that was in
			// memory.
			for _, l := range h.left(t) {
				// With both killed the kubeconfig stays, and the next start takes it over.
				if len(whom) < 2 || l != "run/kconverge" {
					t.Errorf("left behind: %s", l)
				}
			}
		})
	}
}

// labs are the processes right below the guard.
func (h *home) labs(t testing.TB, guard int) (out []int) {
	t.Helper()
	for _, pid := range h.descendants(t) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // state, parent, ...
		if strings.Fields(rest)[1] == strconv.Itoa(guard) {
			out = append(out, pid)
		}
	}
	return out
}

func TestTheLabSaysWhichProgramOfARealControlPlaneDied(t *testing.T) {
	dir := realPlane(t)
	h := newHome(t)
	p := h.lab(t, "--nodes", "1", "--control-plane", dir)
	pid := h.programs(t)["kube-controller-manager"]
	if pid == 0 {
		t.Fatal("it does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != exitUnreachable {
		t.Errorf("exit code %d, want %d", code, exitUnreachable)
	}
	said := p.stderr.String()
	said = said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]
	for _, part := range []string{"kconverge: ", "kube-controller-manager ended by itself (signal: killed)", "its last lines: ", "kconverge.log", "start anew"} {
		if !strings.Contains(said, part) {
			t.Errorf("no %q in the last line: %s", part, said)
		}
	}
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

func TestTheScreenSaysThatTheControlPlaneIsReal(t *testing.T) {
	dir := realPlane(t)
	for _, cols := range []uint16{80, 120} {
		h := newHome(t)
		x := &terminal{emu: vt.NewEmulator(int(cols), 36)}
		_, keys, _ := h.startOnTerminal(t, 36, cols, x, "lab", "--control-plane", dir)
		go func() { _, _ = io.Copy(keys, x.emu) }() // the terminal's answers
		t.Cleanup(func() {
			if t.Failed() {
				t.Log("\n" + x.screen())
			}
		})
		eventually(t, "the seeded Service converged, and which control plane it is", func() bool {
			s := x.screen()
			return strings.Contains(s, "lab v1.37.2, real programs") && strings.Contains(s, "default/web  ● converged") && strings.Contains(s, "rules 4 4 4")
		})
		if _, err := keys.WriteString("5"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Engine view says whose the controllers are", func() bool {
			s := x.screen()
			return strings.Contains(s, "the controllers are Kubernetes' own programs v1.37.2") && strings.Contains(s, "are not seen")
		})
	}
}
