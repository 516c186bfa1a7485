package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/ui"
)

func newReplay() *cobra.Command {
	var flags outputFlags
	var speed float64
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Show a recorded session",
		Args:  oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if speed < 0 {
				return exitf(exitUsage, "--speed %g: must not be negative", speed)
			}
			screen, err := flags.screen()
			if err != nil {
				return err
			}
			file, err := recording.Open(args[0])
			if err != nil {
				return exitWith(exitUnreachable, err)
			}
			defer file.Close()
			if file.Cut {
				fmt.Fprintln(c.ErrOrStderr(), "kconverge: "+collect.Plain(args[0])+" was not closed: its program was killed, and the last second may be missing")
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			o := observation{
				flags: &flags, session: file.Session, sources: []collect.Source{recording.NewPlayer(file, speed)}, screen: screen, replay: true,
				ui:     screenOptions(&flags, ui.Options{Title: "replay " + args[0], Recorded: true, NoActions: "this is a recording"}),
				stdout: c.OutOrStdout(),
			}
			return o.run(ctx)
		},
	}
	flags.registerScreen(c.Flags())
	c.Flags().Float64Var(&speed, "speed", 0, "recorded seconds that pass in a second; 0 shows everything at once")
	return c
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exitf(exitUsage, "replay takes one recording: kconverge replay FILE")
	}
	return nil
}

// screenOptions fills in what the flags say about the screen.
func screenOptions(f *outputFlags, o ui.Options) ui.Options {
	o.Theme, o.ASCII, o.NoMouse, o.FPS, o.Keys = f.theme, f.ascii, f.noMouse, f.fps, f.keys
	o.FirstUse = firstUse(stateDir())
	return o
}
