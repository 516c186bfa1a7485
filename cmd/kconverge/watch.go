package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/ui"
)

// vouchEvery is how often a silent watch of a real cluster is checked by a
// metadata list: rare enough not to be felt, often enough that a dead watch is
// found within seconds.
const vouchEvery = 10 * time.Second

func newWatch() *cobra.Command {
	var flags outputFlags
	c := &cobra.Command{
		Use:   "watch [svc/NAME ...]",
		Short: "Watch the Services of the current cluster",
		Args:  cobra.ArbitraryArgs,
	}
	where := newClusterFlags(c.Flags())
	flags.registerScreen(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		spareProcessor(watchRoom)
		return where.run(c, &flags, args, vouchEvery, func(cluster *cluster, o *observation) {
			view := ui.Options{
				Title: cluster.name, Namespace: strings.Join(cluster.namespaces, ", "), NoActions: "watch only looks, it never changes a cluster",
				Waiting: "the API server of " + cluster.name + " at " + cluster.config.Host,
			}
			if cluster.all {
				view.Namespace = ""
			}
			if len(o.scope.Services) > 0 {
				view.Focus = o.scope.Services[0]
			}
			o.ui = screenOptions(&flags, view)
		})
	}
	return c
}
