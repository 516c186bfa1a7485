package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a condition is awaited: far beyond what anything takes.
const patience = time.Minute

// parentEnv makes this test a program that starts another one and waits.
const parentEnv = "KCONVERGE_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		p, err := Start(Command{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

// log is a buffer that can be read while a program writes to it.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("still not: %s", what)
		case <-tick.C:
		}
	}
}

func shell(t *testing.T, script string, c Command) *Process {
	t.Helper()
	c.Name, c.Path, c.Args = "prog", "/bin/sh", []string{"-c", script}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Stop(ctx)
	})
	return p
}

func TestWhatItPrintsIsLinesOfTheLogAndItsLastOnesAreInTheError(t *testing.T) {
	var l log
	p := shell(t, `for i in 1 2 3 4 5 6 7 8; do echo "line $i"; done; printf '\n\n'; printf 'no end' >&2; exit 3`, Command{Log: &l})
	ended := p.Ended()
	var want strings.Builder
	for i := range 8 {
		fmt.Fprintf(&want, "prog: line %d\n", i+1)
	}
	want.WriteString("prog: no end\n")
	if l.String() != want.String() {
		t.Errorf("the log is\n%s", l.String())
	}
	if last := []string{"line 4", "line 5", "line 6", "line 7", "line 8", "no end"}; !slices.Equal(ended.Last, last) {
		t.Errorf("the last lines are %q", ended.Last)
	}
	if s := ended.Error(); s != "prog ended by itself (exit status 3); its last lines: line 4 | line 5 | line 6 | line 7 | line 8 | no end" {
		t.Errorf("it says %q", s)
	}
	if s := shell(t, "exit 0", Command{}).Ended().Error(); s != "prog ended by itself (exit status 0) and printed nothing" {
		t.Errorf("a silent one says %q", s)
	}
}

func TestALongLineIsCutAndNothingOfItIsLost(t *testing.T) {
	var l log
	const n = 3*lineBytes + 5
	p := shell(t, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; echo after", n), Command{Log: &l})
	ended := p.Ended()
	parts := strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n")
	got := 0
	for _, part := range parts[:len(parts)-1] {
		got += strings.Count(part, "x")
	}
	if got != n || parts[len(parts)-1] != "prog: after" {
		t.Errorf("%d characters of %d in %d lines, the last %.40q", got, n, len(parts), parts[len(parts)-1])
	}
	for _, line := range ended.Last {
		if len(line) > tailWidth+len("…") {
			t.Errorf("a quoted line has %d bytes", len(line))
		}
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	_, err := Start(Command{Name: "prog", Path: "/nowhere/prog"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "start prog") {
		t.Errorf("got %v", err)
	}
}

func TestItIsAskedToStopAndKilledWhenItDoesNot(t *testing.T) {
	var polite, deaf log
	p := shell(t, `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done`, Command{Log: &polite})
	eventually(t, "it is ready", func() bool { return strings.Contains(polite.String(), "ready") })
	p.Stop(t.Context())
	if !strings.HasSuffix(polite.String(), "prog: bye\n") {
		t.Errorf("it was not asked: %q", polite.String())
	}
	p.Stop(t.Context()) // again is nothing

	d := shell(t, `trap '' TERM; echo ready; while :; do sleep 0.02; done`, Command{Log: &deaf})
	eventually(t, "it is ready", func() bool { return strings.Contains(deaf.String(), "ready") })
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { d.Stop(ctx); close(stopped) }()
	cancel()
	<-stopped
	if how := d.Ended().How; how != "signal: killed" {
		t.Errorf("it ended by %q", how)
	}
}

func TestItIsInAGroupOfItsOwnThatTheGuardIsToldOf(t *testing.T) {
	var told []string
	c := Command{Guard: func(pgid int) func() {
		told = append(told, strconv.Itoa(pgid))
		return func() { told = append(told, "ended") }
	}}
	p := shell(t, "exec sleep 1000", c)
	pgid, err := syscall.Getpgid(p.PID())
	if err != nil || pgid != p.PID() {
		t.Errorf("its group is %d, its id %d (%v)", pgid, p.PID(), err)
	}
	p.Stop(t.Context())
	if want := []string{strconv.Itoa(p.PID()), "ended"}; !slices.Equal(told, want) {
		t.Errorf("the guard was told %q, want %q", told, want)
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestItDoesNotOutliveAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a program with its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if !alive(child) {
		t.Fatal("it does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventually(t, "it is gone", func() bool { return !alive(child) })
}

func TestItOutlivesTheThreadOfWhoeverStartsIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a program with a thread")
	}
	var l log
	started := make(chan *Process)
	thread := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		thread <- fmt.Sprintf("/proc/self/task/%d", syscall.Gettid())
		started <- shell(t, `trap 'echo still here' HUP; echo ready; while :; do sleep 0.02; done`, Command{Log: &l})
	}()
	task := <-thread
	p := <-started
	eventually(t, "it is ready", func() bool { return strings.Contains(l.String(), "ready") })
	if task != fmt.Sprintf("/proc/self/task/%d", os.Getpid()) { // the first thread of a process never ends
		eventually(t, "the thread is gone", func() bool { _, err := os.Stat(task); return err != nil })
	}
	if err := syscall.Kill(p.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it answers", func() bool { return strings.Contains(l.String(), "still here") })
}
