package noderules

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"golang.org/x/sys/unix"
)

// waiter waits for a notification and learns when it came, although this thread
// may have been let run much later: on a busy machine tens of milliseconds. It
// belongs to one thread that is locked to its goroutine.
type waiter struct {
	clock collect.Clock
	// stat is the thread's /proc/thread-self/schedstat, whose second number is
	// how long it has waited on run queues so far, in nanoseconds
	// (Documentation/scheduler/sched-stats.rst); -1 where the kernel has none
	// (CONFIG_SCHED_INFO).
	stat int
}

func newWaiter(clock collect.Clock) *waiter {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &waiter{clock: clock, stat: fd}
}

// knowsWakeups reports that this kernel tells how long threads wait to be let run.
func knowsWakeups(clock collect.Clock) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := newWaiter(clock)
	defer w.close()
	_, ok := w.queued()
	return ok
}

func (w *waiter) close() {
	if w.stat >= 0 {
		_ = unix.Close(w.stat) // read only
	}
}

// queued is how long the thread has waited to be let run so far.
func (w *waiter) queued() (time.Duration, bool) {
	if w.stat < 0 {
		return 0, false
	}
	var buf [128]byte
	n, err := unix.Pread(w.stat, buf[:], 0)
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(buf[:n])
	// A thread that asks has run: all zero is a kernel that does not count.
	if len(f) < 3 || string(f[0]) == "0" && string(f[2]) == "0" {
		return 0, false
	}
	ns, err := strconv.ParseInt(string(f[1]), 10, 64)
	return time.Duration(ns), err == nil
}

// wakeup is the end of one wait.
type wakeup struct {
	// idle is when there was nothing to read for sure, shortly before the wait
	// began.
	idle, began time.Time
	// slept is how long the kernel's wait took, until it returned; queued is
	// how much of that, or of the moments around it, the thread was ready and
	// not let run.
	slept, queued time.Duration
	known         bool
}

// waitMost bounds one wait.
const waitMost = time.Hour

// wait waits until one of the files is ready; none was at the time idle. An
// interruption by a signal is no error.
func (w *waiter) wait(idle time.Time, fds []unix.PollFd) (wakeup, error) {
	u := wakeup{idle: idle, began: w.clock.Now()}
	before, ok1 := w.queued()
	// ppoll(2): the system call, unlike the function of the C library, leaves in
	// the time limit what remained of it when it returned to the thread.
	left := unix.NsecToTimespec(int64(waitMost))
	_, err := unix.Ppoll(fds, &left, nil)
	after, ok2 := w.queued()
	u.slept, u.queued, u.known = waitMost-time.Duration(left.Nano()), after-before, ok1 && ok2
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return u, err
}

// bounds tells between which moments what ended the wait happened, when what it
// brought was read at now.
//
// From the beginning of the wait to now there was: the way into the kernel, the
// sleep until it happened, the time on a run queue, the way back to Go, which may
// have to wait for a processor of Go's, and the read. The kernel tells the sum of
// the second and third, and the thread's time on run queues; what is not told (u)
// is the first and the last two, and the time on a run queue may be of those.
//
// What neither tells, and no bounds hold: how long a hypervisor kept the processor
// from running anything, and how long whoever wrote the rules was kept from running
// after the commit, before this listener's copy of the notification.
func (u wakeup) bounds(now time.Time) (from, to time.Time) {
	untold := max(0, now.Sub(u.began)-u.slept) + clocksApart
	from, to = now.Add(-u.queued-untold), now.Add(-max(0, u.queued-untold))
	// Where there was hardly a sleep it may have happened on the way in.
	if from.Before(u.idle) || u.slept-u.queued < noSleep {
		from = u.idle
	}
	return from, to
}

const (
	// clocksApart is how far the scheduler's clock and that of ppoll(2) may be
	// apart, the former being read now and then, and how long a sleeping
	// processor may take to hear that it is to run the thread: tens of
	// microseconds in a virtual machine.
	clocksApart = 100 * time.Microsecond
	// noSleep is longer than ppoll takes when it need not wait.
	noSleep = 100 * time.Microsecond
)
