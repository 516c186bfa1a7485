package main

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// job is a command in a process group of its own, as a shell runs one: what it
// starts can be ended with it.
type job struct {
	*exec.Cmd
}

// newJob prepares a command that ctx interrupts: SIGINT to the whole group, and
// SIGKILL to the command five seconds later.
func newJob(ctx context.Context, name string, args ...string) *job {
	j := &job{exec.CommandContext(ctx, name, args...)}
	j.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	j.Cancel = func() error { return j.signal(syscall.SIGINT) }
	j.WaitDelay = 5 * time.Second
	return j
}

// run starts the command and waits for its end. While it runs it has the
// terminal, and the guard knows that the group is to be killed should this
// process die.
func (j *job) run() error {
	if err := j.Start(); err != nil {
		return err
	}
	told := killOnDeath(j.Process.Pid)
	back := handTerminal(j.Process.Pid)
	err := j.Wait()
	back()
	if !j.left() {
		told()
	}
	return err
}

// left tells whether anything of the group is still there.
func (j *job) left() bool { return j.signal(0) == nil }

// end kills what is left of the group. The number of a group cannot be another's
// while anything of it is there.
func (j *job) end() {
	if j.Process != nil && j.left() {
		_ = j.signal(syscall.SIGKILL)
	}
}

func (j *job) signal(s syscall.Signal) error { return syscall.Kill(-j.Process.Pid, s) }

// interrupted tells whether Ctrl-C ended a command, from its ExitError. A shell
// that catches it to clean up has exit code 130.
func interrupted(e *exec.ExitError) bool {
	s, ok := e.Sys().(syscall.WaitStatus)
	return ok && (s.Signaled() && s.Signal() == syscall.SIGINT || s.ExitStatus() == 128+int(syscall.SIGINT))
}
