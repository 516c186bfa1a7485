package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/live"
)

// outputNone prints nothing at the end.
const outputNone = "none"

func newRecord() *cobra.Command {
	flags := outputFlags{headless: true, output: outputNone, theme: "auto"}
	c := &cobra.Command{
		Use:   "record -o FILE [svc/NAME ...]",
		Short: "Record the Services of the current cluster to a file",
		Long: `record observes as watch does, without a screen, and writes all that it sees to a
recording, until it is stopped or --for has passed. Nothing that happened up to a
second before the program is killed is lost.`,
		Example: "  kconverge record -o incident.kconverge --for 10m\n  kconverge replay incident.kconverge",
		Args:    cobra.ArbitraryArgs,
	}
	where := newClusterFlags(c.Flags())
	c.Flags().StringVarP(&flags.record, "output", "o", "", "the recording, a `FILE` that does not exist yet")
	flags.registerAnonymise(c.Flags())
	c.Flags().DurationVar(&flags.duration, "for", 0, "stop after this long (for instance 30s); 0 goes on until stopped")
	c.RunE = func(c *cobra.Command, args []string) error {
		if flags.record == "" {
			return exitf(exitUsage, "record needs a file: kconverge record -o FILE")
		}
		return where.run(c, &flags, args, vouchEvery, func(_ *cluster, o *observation) {
			o.during = func(ctx context.Context, rt *live.Runtime) error {
				fmt.Fprintf(c.ErrOrStderr(), "Recording to %s; Ctrl-C ends it.\n", collect.Plain(flags.record))
				<-ctx.Done()
				for _, line := range lanes.Summary(rt.Latest()) {
					fmt.Fprintln(c.OutOrStdout(), collect.Plain(line))
				}
				return nil
			}
		})
	}
	return c
}
