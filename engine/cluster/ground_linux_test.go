package cluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/process"
)

// onGround is what the tests run on a ground, as a container runtime might: a
// process in a cgroup of its own whose parent ends, and a mount.
const onGround = `mount -t tmpfs none /var/lib
mkdir "$1/below"
setsid sh -c 'echo $$ >"$1/below/cgroup.procs"; exec sleep 1000' sh "$1" >/dev/null 2>&1 &
until grep -q . "$1/below/cgroup.procs"; do :; done
touch /run/well`

func groundAllowed(t *testing.T) {
	t.Helper()
	if err := RealRefused(); err != nil {
		t.Skipf("no node can be real here: %v", err)
	}
}

// makeGround makes a ground with something on it, below dir.
func makeGround(t *testing.T, dir string) *ground {
	t.Helper()
	net, err := nodes.Start(t.Context(), nodes.Options{Names: []string{"node"}, Path: nodes.PathRouted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := newGround(t.Context(), net.Node("node"), filepath.Join(dir, "real"), process.Start)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := g.exec(t.Context(), "sh", "-euc", onGround, "sh", g.all[0]); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(g.dir, "run/well")); err != nil {
		t.Errorf("what was written to /run is not in the directory: %v", err)
	}
	return g
}

// sleeper is the process on a ground, as the machine numbers it.
func sleeper(t *testing.T, cgroup string) *os.Process {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cgroup, "below/cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	p, err := os.FindProcess(pid) // by a pidfd, so that it stays this one
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNothingIsLeftOfAGround(t *testing.T) {
	groundAllowed(t)
	before, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	setting, err := os.ReadFile("/proc/sys/kernel/panic_on_oops")
	if err != nil {
		t.Fatal(err)
	}
	g := makeGround(t, t.TempDir())
	if out, err := g.exec(t.Context(), "sh", "-euc", "echo 7 >/proc/sys/kernel/panic_on_oops"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if now, err := os.ReadFile("/proc/sys/kernel/panic_on_oops"); err != nil || string(now) != string(setting) {
		t.Errorf("the machine's setting was %q and is %q (%v)", setting, now, err)
	}
	p, all := sleeper(t, g.all[0]), g.all
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if err := p.Signal(unix.Signal(0)); err == nil {
		t.Error("a process is left")
	}
	for _, path := range all {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if after, err := os.ReadFile("/proc/self/mounts"); err != nil || string(after) != string(before) {
		t.Errorf("mounts were\n%s\nand are\n%s", before, after)
	}
}

// TestGroundToBeKilled is the process that the next test kills.
func TestGroundToBeKilled(t *testing.T) {
	dir := os.Getenv("GROUND_TO_BE_KILLED")
	if dir == "" {
		t.Skip("for another test only")
	}
	fmt.Println("ground " + makeGround(t, dir).all[0])
	<-t.Context().Done()
}

// What was killed with its ground leaves cgroups alone, without a process, and the
// next ground removes them.
func TestAGroundDiesWithItsProcess(t *testing.T) {
	groundAllowed(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGroundToBeKilled$", "-test.v")
	cmd.Env = append(os.Environ(), "GROUND_TO_BE_KILLED="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var cgroup string
	for lines := bufio.NewScanner(out); cgroup == "" && lines.Scan(); {
		cgroup, _ = strings.CutPrefix(lines.Text(), "ground ")
		if cgroup == lines.Text() {
			cgroup = ""
		}
	}
	if cgroup == "" {
		t.Fatal("it made no ground")
	}
	p := sleeper(t, cgroup)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(cgroupPatience); p.Signal(unix.Signal(0)) == nil; time.Sleep(cgroupRetry) {
		if time.Now().After(deadline) {
			t.Fatal("what ran on the ground still runs")
		}
	}
	for deadline := time.Now().Add(cgroupPatience); ; time.Sleep(cgroupRetry) {
		g := &ground{}
		if err := g.makeCgroups(); err != nil {
			t.Fatal(err)
		}
		if err := g.removeCgroups(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cgroup); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is left", cgroup)
		}
	}
}
