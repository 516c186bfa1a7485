package netns

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs f on a thread of its own, which ends with it, so that f may
// leave the thread in another namespace. (Going back is not possible for root
// of a user namespace: it may not enter the host's network.) Goroutines that f
// starts are elsewhere. Safe for concurrent use.
//
// The thread is never the process's first one: that one shows as /proc/self,
// must not be in another namespace, and cannot end on its own. A goroutine that
// finds itself there keeps it busy until another one, which therefore runs
// elsewhere, is done.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			// Not unlocked: the runtime ends the thread with the goroutine.
			done <- f()
			return
		}
		defer runtime.UnlockOSThread()
		other := make(chan struct{})
		go func() { defer close(other); run() }()
		<-other
	}
	go run()
	return <-done
}

// Do is OnThread inside the network namespace of a file descriptor. Processes
// that f starts are inside as well, and so are sockets it opens, wherever they
// are used later.
func Do(fd int, f func() error) error {
	return OnThread(func() error {
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network namespace: %w", err)
		}
		return f()
	})
}
