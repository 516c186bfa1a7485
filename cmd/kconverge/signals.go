package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// stopDeadline is how long a stop may take before the process ends
	// regardless; what it leaves then is the guard's to remove.
	stopDeadline = 10 * time.Second
	// impatience is how long after the first signal another one means that
	// somebody does not want to wait. One Ctrl-C, or the guard's death, brings
	// several signals at once: from the terminal, the guard and the kernel.
	impatience = time.Second
)

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP
// ends. From then on the process has stopDeadline; a signal after impatience
// ends it at once.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			signal.Stop(signals)
			return
		}
		cancel()
		first, deadline := time.Now(), time.NewTimer(stopDeadline)
		for {
			select {
			case <-signals:
				if time.Since(first) < impatience {
					continue
				}
			case <-deadline.C:
			}
			os.Exit(130)
		}
	}()
	return ctx, cancel
}
