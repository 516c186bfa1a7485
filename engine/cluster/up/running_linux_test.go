package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standIn is what a stand-in for a cluster is told: the locked file, its folder, and
// what it leaves when it ends.
const standIn = "KCONVERGE_TEST_STAND_IN"

func TestMain(m *testing.M) {
	if told := os.Getenv(standIn); told != "" {
		if err := standInForACluster(strings.Split(told, "|")); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// standInForACluster does what run does, without Kubernetes: it has a folder and a
// program.
func standInForACluster(told []string) error {
	lock, dir, leaves := told[0], told[1], told[2]
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	held, _, err := hold(lock)
	if err != nil {
		return err
	}
	if err := held.say(record{PID: os.Getpid(), Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Since: time.Now()}); err != nil {
		return err
	}
	program := exec.Command("sleep", "1000")
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := program.Start(); err != nil {
		return err
	}
	os.Stdout.WriteString("up\n")
	<-signals
	if leaves != "program" {
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	if leaves != "folder" {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return held.release()
}

// startStandIn starts one and waits until it is up.
func startStandIn(t *testing.T, lock, leaves string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), dirPrefix)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), standIn+"="+lock+"|"+dir+"|"+leaves)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	up, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	if err != nil || up != "up\n" {
		t.Fatalf("the stand-in says %q (%v)", up, err)
	}
	return cmd, dir
}

func downSays(t *testing.T, lock string) (string, error) {
	t.Helper()
	var b strings.Builder
	err := down(lock, &b)
	return b.String(), err
}

func TestNothingRunsAndNothingIsEnded(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		if said, err := downSays(t, lock); err != nil || said != "No cluster runs.\n" {
			t.Errorf("says %q (%v)", said, err)
		}
		held, left, err := hold(lock)
		if err != nil || left != "" {
			t.Fatal(left, err)
		}
		if err := held.release(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is still there (%v)", err)
		}
	}
}

func TestASecondOneIsToldOfTheFirstAndOfTheWayOut(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	cmd, dir := startStandIn(t, lock, "")
	_, _, err := hold(lock)
	var running *runningError
	if !errors.As(err, &running) || running.PID != cmd.Process.Pid {
		t.Fatalf("says %v", err)
	}
	for _, part := range []string{"a cluster runs already", filepath.Join(dir, "kubeconfig"), "make cluster-down"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
	programs := family(cmd.Process.Pid)
	if len(programs) != 2 {
		t.Fatalf("the stand-in and its program are %v", programs)
	}
	said, err := downSays(t, lock)
	if err != nil || !strings.Contains(said, "its 1 programs") || !strings.HasSuffix(said, "nothing is left.\n") {
		t.Errorf("says %q (%v)", said, err)
	}
	for pid := range programs {
		if _, _, ok := stat(pid); ok {
			t.Errorf("process %d is still there", pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
	held, _, err := hold(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.release(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsLeftIsSaid(t *testing.T) {
	before := vanish
	vanish = 200 * time.Millisecond
	defer func() { vanish = before }()
	for _, leaves := range []string{"folder", "program"} {
		t.Run(leaves, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "lock")
			cmd, dir := startStandIn(t, lock, leaves)
			parts := family(cmd.Process.Pid)
			delete(parts, cmd.Process.Pid)
			_, err := downSays(t, lock)
			if err == nil || !strings.Contains(err.Error(), "this is left: "+map[string]string{"folder": dir, "program": "process "}[leaves]) {
				t.Errorf("says %v", err)
			}
			for pid := range parts { // what the stand-in left on purpose
				if _, _, ok := stat(pid); ok {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

func TestWhatAKilledOneLeftIsRemoved(t *testing.T) {
	for _, by := range []string{"down", "up"} {
		t.Run(by, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "lock")
			cmd, dir := startStandIn(t, lock, "")
			parts := family(cmd.Process.Pid)
			delete(parts, cmd.Process.Pid)
			_ = cmd.Process.Kill()
			for pid := range parts {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			deadline := time.Now().Add(time.Minute)
			for f, err := open(lock, 0); ; {
				if err != nil {
					t.Fatal(err)
				}
				if free, err := tryLock(f); err != nil {
					t.Fatal(err)
				} else if free {
					_ = f.Close()
					break
				} else if time.Now().After(deadline) {
					t.Fatal("it lives on")
				}
			}
			var told string
			if by == "down" {
				var err error
				if told, err = downSays(t, lock); err != nil || !strings.HasPrefix(told, "No cluster runs.\n") {
					t.Errorf("says %q (%v)", told, err)
				}
			} else {
				held, left, err := hold(lock)
				if err != nil {
					t.Fatal(err)
				}
				told = left
				if err := held.release(); err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(told, dir) {
				t.Errorf("%q does not name %s", told, dir)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there (%v)", dir, err)
			}
			if said, err := downSays(t, lock); err != nil || said != "No cluster runs.\n" {
				t.Errorf("and then says %q (%v)", said, err)
			}
		})
	}
}

// Nothing outside a cluster's own folder is ever removed.
func TestAStrangeRecordRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	held, _, err := hold(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.say(record{PID: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	_ = held.file.Close()
	if err := down(lock, io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
