package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/engine/live"
)

func newWait() *cobra.Command {
	var flags outputFlags
	var limit time.Duration
	var least int
	c := &cobra.Command{
		Use:   "wait svc/NAME [svc/NAME ...]",
		Short: "Exit with 0 when the Services have converged",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exitf(exitUsage, "wait needs a Service: kconverge wait svc/NAME")
			}
			return nil
		},
	}
	where := newClusterFlags(c.Flags())
	flags.registerPrinting(c.Flags())
	c.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "how long to wait")
	c.Flags().IntVar(&least, "min-endpoints", 1, "ready endpoints that each Service must have at least")
	c.RunE = func(c *cobra.Command, args []string) error {
		flags.headless = true
		if err := validTimeout(limit); err != nil {
			return err
		}
		if least < 0 {
			return exitf(exitUsage, "--min-endpoints %d: choose 0 or more", least)
		}
		return where.run(c, &flags, args, vouchWaiting, func(_ *cluster, o *observation) {
			o.during = func(ctx context.Context, rt *live.Runtime) error {
				return settle(ctx, rt, live.Convergence{Scope: o.scope, MinEndpoints: least, Settled: true, Ask: askAll(o.sources)}, limit)
			}
		})
	}
	return c
}

// validTimeout refuses a --timeout that leaves no time to wait.
func validTimeout(limit time.Duration) error {
	if limit <= 0 {
		return exitf(exitUsage, "--timeout %s: choose a time above 0, such as 5m", limit)
	}
	return nil
}
