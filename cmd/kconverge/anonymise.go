package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/anonymise"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/lanes"
)

func newAnonymise() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "anonymise FILE -o OUT",
		Short: "Write a recording anew, without the names and addresses of the cluster",
		Long: `anonymise replaces names of objects, namespaces and nodes, label values and label keys
that are not well known, UIDs, names of ports and zones, addresses (which keep their
family, their range and how many leading bits they share), what the recording is of, and
in texts each word that is not kconverge's own; the messages of Kubernetes Events go but
for which probe failed and how long an image's pull took. The same is replaced by the same everywhere, so that the
recording comes to the same report up to names. Times, counts, port numbers, versions,
kinds, reasons and well-known label keys stay, and so do the namespaces default,
kube-system, kube-public and kube-node-lease and the Service kubernetes, which every
cluster has.`,
		Example: "  kconverge anonymise incident.kconverge -o to-send.kconverge",
		Args:    cobra.MaximumNArgs(1),
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the anonymised recording, a `FILE` that does not exist yet")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) != 1 || out == "" {
			return exitf(exitUsage, "anonymise takes a recording and a file to write: kconverge anonymise FILE -o OUT")
		}
		in, err := recording.Open(args[0])
		if err != nil {
			return exitWith(exitUnreachable, err)
		}
		defer in.Close()
		sayCut(c.ErrOrStderr(), in, args[0])
		lost, err := anonymise.Recording(in, out, recordingOptions())
		if err != nil {
			return exitWith(exitNot, err)
		}
		if lost > 0 {
			return exitf(exitCannotTell, "%s was written, but %s of %s cannot be read: they are gaps in it", collect.Plain(out), lanes.Plural(lost, "part"), collect.Plain(args[0]))
		}
		fmt.Fprintf(c.OutOrStdout(), "%s has no name and no address of %s\n", collect.Plain(out), collect.Plain(args[0]))
		return nil
	}
	return c
}
