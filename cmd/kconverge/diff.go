package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/compare"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// everything is longer than any recording: nothing of it is let go.
const everything = 100 * 365 * 24 * time.Hour

func newDiff() *cobra.Command {
	var output string
	var services []string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Set the hops of two recordings side by side, and say what differs by more than noise",
		Long: `diff measures in two recordings how long each hop took, from a pod's creation to the
last node's rules, adding and removing apart. A write of a slice and a sync of a node
count once, however many endpoints they moved; what has not arrived is at least as long
as its age. A hop differs when a permutation test of Gehan's scores says so, corrected
for all hops by Holm's method: of recordings that do not differ, at most one comparison
in fifty says of any hop that it does. A difference that the times' own errors could
make is not claimed.

Exit codes: 0 nothing differs by more than noise, 1 something does, 4 too few changes to
tell of any hop, or a part of a recording cannot be read.`,
		Example: "  kconverge diff before.kconverge after.kconverge --service default/web",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exitf(exitUsage, "diff takes two recordings: kconverge diff A B")
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&services, "service", nil, "only these Services, as `NAMESPACE/NAME`")
	c.Flags().StringVarP(&output, "output", "o", "text", "text, or json (a "+compare.Schema+" document)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if output != "text" && output != "json" {
			return exitf(exitUsage, "--output %q: choose text or json", output)
		}
		var both [2]compare.Samples
		damaged := ""
		for i, path := range args {
			lost, err := samplesOf(c.ErrOrStderr(), path, services, &both[i])
			if err != nil {
				return err
			}
			if lost > 0 {
				damaged = fmt.Sprintf("%s of %s cannot be read", lanes.Plural(lost, "part"), collect.Plain(path))
			}
		}
		d := compare.Compare(collect.Plain(args[0]), collect.Plain(args[1]), both[0], both[1])
		write := d.WriteText
		if output == "json" {
			write = func(w io.Writer) error {
				enc := json.NewEncoder(w)
				enc.SetIndent("", "  ")
				return enc.Encode(d)
			}
		}
		if err := write(c.OutOrStdout()); err != nil {
			return exitf(exitNot, "the comparison could not be written: %w", err)
		}
		switch differs, told := d.Differs(); {
		case damaged != "":
			return exitf(exitCannotTell, "cannot tell: %s", damaged)
		case !told:
			return exitf(exitCannotTell, "cannot tell: there are too few changes in the two recordings")
		case differs:
			return exitf(exitNot, "the recordings differ by more than noise")
		}
		return nil
	}
	return c
}

// samplesOf plays a recording and measures its hops. lost are the parts of it that
// cannot be read.
func samplesOf(say io.Writer, path string, services []string, out *compare.Samples) (lost int, err error) {
	f, err := recording.Open(path)
	if err != nil {
		return 0, exitWith(exitUnreachable, err)
	}
	defer f.Close()
	sayCut(say, f, path)
	m := live.NewModel(timeline.Options{Retention: everything})
	r := f.Read(0)
	var last collect.Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, exitWith(exitUnreachable, err)
		}
		m.Apply(e)
		last = e
	}
	// Nothing stays held back.
	m.Apply(collect.Event{At: last.At.Add(m.ReorderWindow()), Source: collect.SourceClock, Payload: &collect.Advance{}})
	s := m.Snapshot()
	keep := map[string]bool{}
	for _, name := range services {
		found := false
		for _, svc := range s.Services {
			found = found || svc.Namespace+"/"+svc.Name == name
		}
		if !found {
			return 0, exitf(exitUsage, "--service %s: recording %s has no such Service: kconverge replay %s lists them", name, path, path)
		}
		keep[name] = true
	}
	*out = compare.SamplesOf(s, func(svc *timeline.Service) bool {
		return len(keep) == 0 || keep[svc.Namespace+"/"+svc.Name]
	})
	return r.Damaged, nil
}
