package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// observation is one run of the program: what to observe and how to show it.
type observation struct {
	flags   *outputFlags
	session collect.Session
	sources []collect.Source
	scope   live.Scope
	screen  bool
	ui      ui.Options
	replay  bool
	// during, when set, decides when a headless run is over and with what
	// verdict. It runs beside the sources.
	during func(context.Context, *live.Runtime) error
	// beside, when set, goes on beside a screen until that is left.
	beside func(context.Context, *live.Runtime)
	// keep chooses the Services of the report; nil keeps those in scope.
	keep func(*timeline.Service) bool
	// print writes what a headless run ends with, verdict judges one that during does
	// not; nil for the report, and for whether the scope has converged.
	print   func(io.Writer, *timeline.Snapshot, func(*timeline.Service) bool) error
	verdict func(*timeline.Snapshot) error
	stdout  io.Writer
}

// run observes until the context, --for, the screen or during ends it, then
// prints the report of a headless run and returns the verdict.
func (o *observation) run(ctx context.Context) error {
	o.defaults()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	recorders, done, err := o.flags.recorders(o.screen, o.stdout, stop)
	if err != nil {
		return err
	}
	if ring := o.flags.keepLast(o.session, o.replay); ring != nil {
		recorders = append(recorders, ring)
		closeOthers := done
		done = func() error { return errors.Join(closeOthers(), ring.Close()) }
		o.ui.Save = saver(ring)
	}
	rt := live.New(live.Options{Session: o.session, Recorders: recorders, Replay: o.replay})
	if o.flags.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.flags.duration)
		defer cancel()
	}
	err = o.observe(ctx, rt)
	if e := errors.Join(rt.RecordError(), done()); e != nil {
		if err == nil && !errors.Is(e, recording.ErrRing) {
			return exitWith(exitNot, e)
		}
		fmt.Fprintln(os.Stderr, "kconverge:", oneLine(e))
	}
	return err
}

func (o *observation) observe(ctx context.Context, rt *live.Runtime) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx, o.sources...) }()

	var err error
	switch {
	case o.screen:
		var beside sync.WaitGroup
		if o.beside != nil {
			beside.Go(func() { o.beside(ctx, rt) })
		}
		err = o.show(ctx, rt)
		stop()
		beside.Wait()
		err = errors.Join(err, sourceError(<-ended))
		sayGoodbye(o.stdout, rt.Latest())
		if o.ui.Save != nil {
			fmt.Fprintln(o.stdout, "See it again: kconverge replay --last")
		}
		return err
	case o.during != nil:
		over := make(chan error, 1)
		during, halt := context.WithCancel(ctx)
		defer halt()
		go func() { over <- o.during(during, rt) }()
		select {
		case err = <-over:
			stop()
			err = errors.Join(err, sourceError(<-ended))
		case failed := <-ended: // the sources ended first
			halt()
			if err = <-over; failed != nil {
				err = sourceError(failed)
			}
		}
	default:
		err = sourceError(<-ended)
		stop()
	}
	if err != nil && codeOf(err) == exitUnreachable {
		return err
	}
	return o.conclude(rt.Latest(), err)
}

// conclude prints what a headless run ends with and gives its verdict. err is what went
// wrong in it.
func (o *observation) conclude(last *timeline.Snapshot, err error) error {
	if e := o.print(o.stdout, last, o.keep); e != nil {
		return errors.Join(err, exitWith(exitNot, e))
	}
	if err != nil || o.during != nil {
		return err
	}
	return o.verdict(last)
}

// defaults fills in what nothing was said about.
func (o *observation) defaults() {
	if o.stdout == nil {
		o.stdout = os.Stdout
	}
	if o.print == nil {
		o.print = o.flags.print
	}
	if o.verdict == nil {
		o.verdict = func(s *timeline.Snapshot) error { return verdict(s, o.scope) }
	}
}

// sayGoodbye tells somebody who has closed the screen what it saw.
func sayGoodbye(w io.Writer, s *timeline.Snapshot) {
	for _, line := range lanes.Summary(s) {
		fmt.Fprintln(w, collect.Plain(line))
	}
}

// show draws until the person quits or ctx ends.
func (o *observation) show(ctx context.Context, rt *live.Runtime) error {
	feed, cancel := rt.Subscribe()
	defer cancel()
	return ui.Run(ctx, feed, o.ui)
}

func sourceError(err error) error {
	return exitWith(exitUnreachable, err)
}

// settle waits until the scope has converged, for at most limit, and turns the
// outcome into an exit code.
func settle(ctx context.Context, rt *live.Runtime, c live.Convergence, limit time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, why, err := rt.Wait(wait, saying(c.Condition(), os.Stderr))
	switch {
	case err == nil:
		if src, untold := c.Untold(s); untold {
			return exitf(exitCannotTell, "cannot tell whether the workloads have settled: %s", src.Detail)
		}
		return verdict(s, c.Scope)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exitf(exitNot, "stopped by --for while waiting for %s", why)
	case ctx.Err() != nil:
		return exitf(exitNot, "interrupted while waiting for %s", why)
	case errors.Is(err, context.DeadlineExceeded):
		return exitf(exitNot, "not converged within %s: waiting for %s", limit, why)
	}
	return exitf(exitNot, "%w: still waiting for %s", err, why)
}
