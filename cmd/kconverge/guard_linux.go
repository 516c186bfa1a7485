package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// cleanupFD is where the guarded process tells which files are to be removed
// should it die before it can do so itself.
const cleanupFD = 3

// guard runs the program as a child and stays behind: whatever becomes of the
// child (a panic in any goroutine, a SIGKILL), the terminal is given back as it
// was and its files are removed. When the guard itself is killed the kernel
// sends the child SIGTERM (PR_SET_PDEATHSIG), and the child cleans up. It
// returns done=false in the child and when no guard is wanted.
//
// For an ordinary user's lab the child starts in a user namespace of its own,
// with a mount namespace (for storage in memory) but the user's network, so
// that other terminals reach the API server.
func guard() (code int, done bool) {
	if id, guarded := os.LookupEnv(guardedEnv); guarded {
		os.Unsetenv(guardedEnv)
		if n, err := strconv.Atoi(id); err == nil {
			userID = n
		}
		syscall.CloseOnExec(cleanupFD)
		toGuard = os.NewFile(cleanupFD, "cleanup")
		// With the guard gone standard error leads nowhere; writing to it must
		// not end the clean-up.
		signal.Ignore(syscall.SIGPIPE)
		return 0, false
	}
	if !wantsGuard(os.Args[1:]) {
		return 0, false
	}
	// The death signal is bound to the thread that starts the child.
	runtime.LockOSThread()

	tty := draws(os.Args[1:])
	var saved *term.State
	if tty {
		saved, _ = term.GetState(os.Stdin.Fd())
	}
	cleanup, child3, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kconverge:", err)
		return exitUsage, true
	}
	child := guarded(child3, userID)
	if wantsNamespace(os.Args[1:]) {
		child.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	said := &tail{max: 1 << 20}
	if tty {
		child.Stderr = said // printed once the screen is gone
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err = child.Start(); err != nil && namespacesRefused(err) && child.SysProcAttr.Cloneflags != 0 {
		// Without them the lab finds out for itself that it has to do with
		// nodes in memory, and says so.
		again := guarded(child3, userID)
		again.Stderr = child.Stderr
		child = again
		err = child.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kconverge:", err)
		return exitUnreachable, true
	}
	child3.Close()
	told := collectLines(cleanup)
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	err = child.Wait()
	signal.Stop(signals)

	cleanUp(told())

	code = child.ProcessState.ExitCode()
	status, _ := child.ProcessState.Sys().(syscall.WaitStatus)
	if tty {
		if saved != nil {
			_ = term.Restore(os.Stdin.Fd(), saved)
		}
		if code < 0 || panicked(said.String()) {
			fmt.Print(resetScreen)
		}
		_, _ = io.WriteString(os.Stderr, said.String())
	}
	if code < 0 {
		fmt.Fprintf(os.Stderr, "kconverge: stopped by signal %d (%s)\n", status.Signal(), status.Signal())
		code = 128 + int(status.Signal())
	}
	_ = err // told by the exit code
	return code, true
}

// cleanUp does what the child could not do itself.
func cleanUp(told []string) {
	for _, line := range told {
		pid, isGroup := strings.CutPrefix(line, "-")
		if !isGroup {
			removeUnused(line)
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil && n > 1 {
			takeTerminal(n)
			_ = syscall.Kill(-n, syscall.SIGKILL)
		}
	}
}

// removeUnused removes a file that nobody has locked, or an empty folder. The
// child may have removed its file itself and another lab taken the name since.
func removeUnused(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && !fi.IsDir() {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return
		}
	}
	_ = os.Remove(path)
}

// resetScreen leaves every mode that the screen may have entered.
const resetScreen = ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable +
	ansi.ResetModeMouseNormal + ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseAnyEvent + ansi.ResetModeMouseExtSgr +
	ansi.ResetModeBracketedPaste + ansi.ResetModeFocusEvent + ansi.ResetModeSynchronizedOutput + ansi.ResetStyle

func panicked(stderr string) bool {
	return strings.Contains(stderr, "\ngoroutine ") || strings.HasPrefix(stderr, "fatal error:")
}

// guarded is this program with the same arguments, to be run below the guard for
// the user with the id, which tells what to clean up through told.
func guarded(told *os.File, userID int) *exec.Cmd {
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(os.Environ(), guardedEnv+"="+strconv.Itoa(userID))
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{told}
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return child
}

// namespacesRefused tells from the error of a start that the system allows no
// user namespaces to this user.
func namespacesRefused(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES)
}

// collectLines reads what is to be cleaned up until the child's end of the pipe
// is closed: absolute paths, and "-PID" for a process group. "+PID" takes that
// back.
func collectLines(r io.ReadCloser) func() []string {
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			if pid, ok := strings.CutPrefix(s.Text(), "+"); ok {
				lines = slices.DeleteFunc(lines, func(l string) bool { return l == "-"+pid })
				continue
			}
			lines = append(lines, s.Text())
		}
	}()
	return func() []string { <-done; return lines }
}

// toGuard leads to the guard; nil without one.
var toGuard *os.File

// removeOnDeath asks the guard to remove a file, or an empty folder, when this
// process is gone. Files are removed in the order in which they were named.
func removeOnDeath(path string) {
	if path, err := filepath.Abs(path); err == nil && toGuard != nil && !strings.Contains(path, "\n") {
		_, _ = fmt.Fprintln(toGuard, path)
	}
}

// killOnDeath asks the guard to kill a process group when this process is gone.
// The group's end is told by calling done.
func killOnDeath(pgid int) (done func()) {
	if toGuard == nil {
		return func() {}
	}
	_, _ = fmt.Fprintf(toGuard, "-%d\n", pgid)
	return func() { _, _ = fmt.Fprintf(toGuard, "+%d\n", pgid) }
}

// tail keeps the last max bytes written to it.
type tail struct {
	mu  sync.Mutex
	max int
	b   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
