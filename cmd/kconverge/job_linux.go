package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// handTerminal lets a command, the leader of the process group pgid and a child,
// have the terminal as a shell's foreground command has it. It returns when the
// command has ended, which is left for the caller to reap; back takes the
// terminal back.
//
// It is handed over at once when nobody else is in this process's group, so that
// Ctrl-C and Ctrl-Z reach the command. Others (a pager in the same pipeline) want
// the terminal too; then the command gets it once it has stopped for want of it.
// Ctrl-Z stops this process's group after the command's, which tells the shell,
// and both go on together.
func handTerminal(pgid int) (back func()) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return func() {} // there is none
	}
	own := unix.Getpgrp()
	hand := func() {
		if foreground(tty) == own && unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, pgid) == nil {
			// It may have asked for the terminal before it had it.
			_ = unix.Kill(-pgid, unix.SIGCONT)
		}
	}
	if term.IsTerminal(os.Stdin.Fd()) && alone(own) {
		hand()
	}
	for stopped(pgid) {
		switch foreground(tty) {
		case own: // it waits for what this group has
		case pgid:
			takeTerminal(pgid)
			suspend()
		default:
			suspend()
		}
		hand()
		_ = unix.Kill(-pgid, unix.SIGCONT)
	}
	return func() {
		takeTerminal(pgid)
		tty.Close()
	}
}

// foreground is the foreground process group of a terminal, or 0.
func foreground(tty *os.File) int {
	pgid, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgid
}

// alone tells whether a process group has no others than this process and its
// parent, the guard.
func alone(pgid int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(b), " ")
		n, err := strconv.Atoi(pid)
		if err != nil || n == os.Getpid() || n == os.Getppid() {
			continue
		}
		// After the name, which may hold anything: state, parent, group.
		fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) {
			return false
		}
	}
	return true
}

// takeTerminal makes this process's group the foreground group of its terminal,
// if another group is it now.
func takeTerminal(from int) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer tty.Close()
	if foreground(tty) != from {
		return
	}
	// Taking it from the background is met with SIGTTOU.
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}

// cldStopped is a value of si_code for SIGCHLD; see sigaction(2).
const cldStopped = 5

// stopped waits until a child has stopped or ended and tells which. It does not
// reap it.
func stopped(pid int) bool {
	for {
		var info unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil); err {
		case nil:
			return info.Code == cldStopped
		case unix.EINTR:
		default:
			return false
		}
	}
}

// suspend stops this process's group, as Ctrl-Z does, until the shell lets it go
// on. Without a shell to do so the kernel ignores it.
func suspend() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	_ = unix.Kill(0, unix.SIGTSTP)
	select {
	case <-resumed:
	case <-time.After(time.Second):
	}
}
