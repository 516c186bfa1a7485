package ui_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of the calling thread so far: what is measured
// with it does not depend on what else the machine does.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
