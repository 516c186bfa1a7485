package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// drain is how long after a process's end its output may stay open, which only
// what it started itself can keep so.
const drain = time.Second

// Command says what to run.
type Command struct {
	// Name is for people: in errors and before each line of the log.
	Name string
	Path string
	Args []string
	// Env is the whole environment; nil means this process's.
	Env []string
	// Files are inherited as descriptors from 3 on.
	Files []*os.File
	// Log takes what the program prints, a line at a time; nil discards it. It is
	// written to from another goroutine.
	Log io.Writer
	// Guard, when set, is told the process group once it is there, and the
	// function that it returns is called when the group has ended: for a parent of
	// this process that cleans up after it.
	Guard func(pgid int) (done func())
}

// Process is a program that was started. Its methods are safe for concurrent use.
type Process struct {
	name string
	cmd  *exec.Cmd
	last *lines
	done chan struct{}
	err  error // readable once done is closed
}

// Start runs the program. It is in a process group of its own, so that Ctrl-C on
// the terminal reaches this process alone, which stops it in its own time; it has
// no terminal and no standard input.
//
// When this process dies the kernel kills the program (Linux: PR_SET_PDEATHSIG).
func Start(c Command) (*Process, error) {
	log := c.Log
	if log == nil {
		log = io.Discard
	}
	p := &Process{name: c.Name, last: &lines{name: c.Name, to: log}, done: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env, p.cmd.ExtraFiles = c.Env, c.Files
	p.cmd.Stdout, p.cmd.Stderr = p.last, p.last
	p.cmd.WaitDelay = drain
	p.cmd.SysProcAttr = diesWithUs(&syscall.SysProcAttr{Setpgid: true})
	started := make(chan error)
	go func() {
		// The kernel's signal comes at the end of the thread that started the
		// program: this one is kept for as long as the program runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		ended := func() {}
		if c.Guard != nil {
			ended = c.Guard(p.cmd.Process.Pid)
		}
		started <- nil
		err := p.cmd.Wait()
		p.last.flush()
		ended()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // the program itself ended well
		}
		p.err = err
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

// Name is the Command's.
func (p *Process) Name() string { return p.name }

// PID is the process's id, and its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// EndedError says how a program ended that should have gone on.
type EndedError struct {
	Name string
	// How it ended: "exit status 1", "signal: killed".
	How string
	// Last are the last lines that it printed, oldest first.
	Last []string
}

// Error names the program, how it ended and what it said last.
func (e *EndedError) Error() string {
	if len(e.Last) == 0 {
		return fmt.Sprintf("%s ended by itself (%s) and printed nothing", e.Name, e.How)
	}
	return fmt.Sprintf("%s ended by itself (%s); its last lines: %s", e.Name, e.How, strings.Join(e.Last, " | "))
}

// Ended says how the program ended; call it when Done is closed and nobody has
// called Stop.
func (p *Process) Ended() *EndedError {
	<-p.done
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return &EndedError{Name: p.name, How: how, Last: p.last.tail()}
}

// Last are the last lines that the program printed so far, oldest first.
func (p *Process) Last() []string { return p.last.tail() }

// Stop asks the program to end (SIGTERM) and returns when it has. When ctx ends
// before that the program is killed. Stopping one that has ended is nothing.
func (p *Process) Stop(ctx context.Context) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // refused when it has ended already
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
