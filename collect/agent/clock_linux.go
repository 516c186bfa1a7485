package agent

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

// timeError is adjtimex's state of a clock that is not synchronised (TIME_ERROR
// in linux/timex.h).
const timeError = 5

// ReadClock asks the kernel how far its clock may be trusted. It only reads.
func ReadClock() collect.NodeClock {
	var c collect.NodeClock
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.Boot = strings.TrimSpace(string(b))
	}
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	if err != nil || state == timeError || tx.Status&unix.STA_UNSYNC != 0 {
		return c
	}
	c.Synchronised = true
	c.MaxError = time.Duration(tx.Maxerror) * time.Microsecond
	return c
}
