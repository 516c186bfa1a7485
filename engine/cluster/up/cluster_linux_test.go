package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The whole of it, as `make cluster` and `make cluster-down` start it: a second
// cluster is refused, and the first one's end leaves no process, namespace or file.
func TestAClusterIsEndedFromAnotherTerminal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces for real kube-proxies: needs root")
	}
	if testing.Short() {
		t.Skip("-short: building Kubernetes takes minutes the first time")
	}
	build := exec.CommandContext(t.Context(), "../../../testdata/cluster/build.sh", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kwok")
	build.Stderr = os.Stderr // building takes minutes: say so
	built, err := build.Output()
	if err != nil {
		t.Fatalf("build Kubernetes' programs: %v", err)
	}
	dir := t.TempDir()
	for name, pkg := range map[string]string{"up": ".", "kconverge-agent": "../../../cmd/kconverge-agent"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	temp := t.TempDir()
	up := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "up"), append([]string{
			"-lock", filepath.Join(dir, "lock"), "-bin", strings.TrimSpace(string(built)), "-agent", filepath.Join(dir, "kconverge-agent"), "-nodes", "1",
		}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	first := up()
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	first.Stderr = os.Stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "make cluster-down") {
	}
	go func() {
		for lines.Scan() { // so that it is not held up
		}
	}()
	programs, spaces := family(first.Process.Pid), namespaces(first.Process.Pid)
	// etcd, three of the control plane, kwok, kube-proxy, the agent, and itself.
	if len(programs) < 8 || len(spaces) < 2 {
		t.Errorf("it has processes %v and namespaces %v", programs, spaces)
	}
	if said, err := up().CombinedOutput(); err == nil || !strings.Contains(string(said), "a cluster runs already") || !strings.Contains(string(said), "make cluster-down") {
		t.Errorf("a second one says %q (%v)", said, err)
	}
	said, err := up("-down").CombinedOutput()
	if err != nil || !strings.HasSuffix(string(said), "nothing is left.\n") {
		t.Errorf("its end says %q (%v)", said, err)
	}
	t.Logf("%s", said)
	for pid, start := range programs {
		if now, _, ok := stat(pid); ok && now == start {
			t.Errorf("process %d is still there", pid)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the first one ended with %v", err)
	}
	if said, err := up("-down").CombinedOutput(); err != nil || string(said) != "No cluster runs.\n" {
		t.Errorf("without a cluster it says %q (%v)", said, err)
	}
}
