package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
)

// descendants lists the processes whose environment names the home: everything
// that a run in it started, wherever it hangs in the process tree.
func (h *home) descendants(t testing.TB) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains(string(env), "HOME="+h.dir) && alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// alive tells a running process from one that only waits to be reaped.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// mountedNamespaces lists the namespaces that are mounted somewhere. Those that
// are not go with the last process that holds them.
func mountedNamespaces(t *testing.T) (out []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(mounts)) {
		if strings.HasPrefix(l, "nsfs ") {
			out = append(out, l)
		}
	}
	return out
}

// startOnTerminal runs kconverge on a pseudo terminal and hands on what it draws.
// It returns the terminal's own end.
func (h *home) startOnTerminal(t testing.TB, rows, cols uint16, drawn io.Writer, args ...string) (cmd *exec.Cmd, term *os.File, done chan struct{}) {
	t.Helper()
	cmd = exec.Command(program, args...)
	term, done = h.commandOnTerminal(t, rows, cols, drawn, cmd)
	return cmd, term, done
}

func (h *home) commandOnTerminal(t testing.TB, rows, cols uint16, drawn io.Writer, cmd *exec.Cmd) (term *os.File, done chan struct{}) {
	t.Helper()
	cmd.Env = h.env
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	if err := pty.Setsize(master, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			_, _ = drawn.Write(b[:n])
		}
	}()
	done = make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		for _, pid := range h.descendants(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-done
	})
	return master, done
}

func TestNothingIsLeftHoweverItEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the lab many times")
	}
	before := mountedNamespaces(t)
	rng := rand.New(rand.NewPCG(1, 2))
	// From before the first frame to well into the running lab.
	for _, c := range []struct {
		signal syscall.Signal
		all    bool // every process at once, not only the first
	}{
		{syscall.SIGINT, false}, {syscall.SIGTERM, false}, {syscall.SIGKILL, false}, {syscall.SIGKILL, true},
	} {
		for _, least := range []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond} {
			moment := least + time.Duration(rng.Int64N(int64(200*time.Millisecond)))
			name := fmt.Sprintf("%s after %s", c.signal, moment.Round(time.Millisecond))
			if c.all {
				name += " to all"
			}
			t.Run(name, func(t *testing.T) {
				h := newHome(t)
				var drawn buffer
				cmd, master, done := h.startOnTerminal(t, 40, 120, &drawn, "lab", "--nodes", "2")
				saved, err := term.GetState(master.Fd())
				if err != nil {
					t.Fatal(err)
				}
				// The moment is the input of this test, not something awaited.
				<-time.After(moment)
				if c.all {
					for _, pid := range h.descendants(t) {
						_ = syscall.Kill(pid, c.signal)
					}
				} else if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
				<-done
				eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
				if now := mountedNamespaces(t); !slices.Equal(now, before) {
					t.Errorf("namespaces are mounted: %q, before it was %q", now, before)
				}
				if now, err := term.GetState(master.Fd()); err != nil || *now != *saved {
					if !c.all { // nobody is left to restore it then; the shell does
						t.Errorf("the terminal is left changed (%v)", err)
					}
				}
				if left := h.left(t); len(left) > 0 && !c.all {
					t.Errorf("left behind: %s", left)
				}
				if c.all {
					// A kubeconfig may lie there: the next start takes it over.
					for _, l := range h.left(t) {
						if l != "run/kconverge" {
							t.Errorf("left behind: %s", l)
						}
					}
					p := h.lab(t, "--nodes", "1")
					if !strings.Contains(p.stderr.String(), h.kubeconfig()) {
						t.Errorf("the next start does not take the name over: %s", p.stderr.String())
					}
				}
			})
		}
	}
}

func TestASecondLabTakesItsOwnNameAndTouchesNothingOfTheFirst(t *testing.T) {
	h := newHome(t)
	first := h.lab(t, "--nodes", "1", "--seed")
	second := h.lab(t, "--nodes", "1")
	if !strings.Contains(second.stderr.String(), "lab-2.kubeconfig") {
		t.Errorf("the second says %s", second.stderr.String())
	}
	if out := h.kubectl(t, "get", "deployments", "-o", "name"); !strings.Contains(out, "deployment.apps/web") {
		t.Errorf("the first lab has %q", out)
	}
	for _, p := range []*process{first, second} {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		p.wait()
	}
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// below finds the program below its guard.
func (h *home) below(t testing.TB, guard int) int {
	t.Helper()
	for _, pid := range h.descendants(t) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // state, parent, ...
		if strings.Fields(rest)[1] == strconv.Itoa(guard) {
			return pid
		}
	}
	t.Fatal("the program below its guard was not found")
	return 0
}

func TestAKilledLabLeavesNoKubeconfigThatWasNamed(t *testing.T) {
	h := newHome(t)
	file := filepath.Join(h.dir, "my.kubeconfig")
	p := h.lab(t, "--nodes", "1", "--kubeconfig", file)
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	for _, pid := range h.descendants(t) {
		if pid != p.cmd.Process.Pid { // not the guard
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	p.wait()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s is left (%v)", file, err)
	}
}

func TestTheLabEndsWhenNobodyReadsItsEvents(t *testing.T) {
	h := newHome(t)
	cmd := exec.Command(program, "lab", "--headless", "--nodes", "1", "--output", "events")
	cmd.Env = h.env
	var stderr buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	out.Close()
	_ = cmd.Wait()
	if !strings.Contains(stderr.String(), "the output of events ended") {
		t.Errorf("it says %q", stderr.String())
	}
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
}
