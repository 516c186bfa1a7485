package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

func newReplay() *cobra.Command {
	var flags outputFlags
	var speed float64
	var last, fromStart bool
	c := &cobra.Command{
		Use:   "replay FILE | --last",
		Short: "Show a recorded session",
		Args: func(_ *cobra.Command, args []string) error {
			if last == (len(args) == 1) || len(args) > 1 {
				return exitf(exitUsage, "replay takes one recording, kconverge replay FILE, or --last")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if !(speed >= 0 && speed <= maxSpeed) { // NaN is neither
				return exitf(exitUsage, "--speed %g: choose 0 to %d", speed, maxSpeed)
			}
			screen, err := flags.screen()
			if err != nil {
				return err
			}
			var file *recording.File
			name := "the last session"
			if last {
				var done func()
				if file, done, err = lastSession(); err != nil {
					return exitWith(exitUnreachable, err)
				}
				defer done()
			} else {
				name = args[0]
				if file, err = recording.Open(name); err != nil {
					return exitWith(exitUnreachable, err)
				}
				defer file.Close()
			}
			sayCut(c.ErrOrStderr(), file, name)
			spareProcessor(replayRoom)
			ctx, stop := interruptible(c.Context())
			defer stop()
			if screen {
				return replayOnScreen(ctx, c, file, name, &flags, speed)
			}
			player := recording.NewPlayer(file, speed)
			o := observation{
				flags: &flags, session: file.Session, sources: []collect.Source{player}, replay: true,
				stdout: c.OutOrStdout(),
			}
			o.verdict = func(s *timeline.Snapshot) error {
				if n := player.Damaged(); n > 0 {
					return exitf(exitCannotTell, "cannot tell: %s of the recording cannot be read", lanes.Plural(n, "part"))
				}
				return verdict(s, o.scope)
			}
			if fromStart || speed > 0 || flags.duration > 0 || flags.record != "" || flags.output == "events" {
				return o.run(ctx)
			}
			return o.runRecorded(ctx, file)
		},
	}
	flags.registerScreen(c.Flags())
	c.Flags().BoolVar(&last, "last", false, "the last minutes of the last session, which are always kept")
	c.Flags().BoolVar(&fromStart, "from-start", false, "with --headless: play every event, also where the recording's last checkpoint tells what those before it come to")
	c.Flags().Float64Var(&speed, "speed", 0, "recorded seconds that pass in a second, from the start on; 0 shows everything at once")
	return c
}

// maxSpeed is the most recorded seconds that pass in one.
const maxSpeed = 1000

// replayOnScreen shows a recording at any of its moments.
func replayOnScreen(ctx context.Context, c *cobra.Command, file *recording.File, name string, flags *outputFlags, speed float64) error {
	if !current(file) {
		again, err := file.Reindexed(recordingOptions())
		if err != nil {
			return exitWith(exitUnreachable, err)
		}
		defer again.Close()
		file = again
	}
	if flags.record != "" {
		return exitf(exitUsage, "--record %s: a recording is shown; copy it to have it twice", flags.record)
	}
	if flags.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.duration)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	replay := live.NewReplay(file)
	ended := make(chan error, 1)
	go func() { ended <- replay.Run(ctx) }()
	if speed > 0 {
		replay.SetSpeed(speed)
		replay.Play()
	}
	feed, cancel := replay.Subscribe()
	defer cancel()
	err := ui.Run(ctx, feed, screenOptions(flags, ui.Options{
		Title: "replay " + name, Recorded: true, Replay: replay, NoActions: "this is a recording",
	}))
	stop()
	err = errors.Join(err, sourceError(<-ended))
	sayGoodbye(c.OutOrStdout(), replay.Latest())
	return err
}

// current tells that a recording can be shown at any moment as it is: it has an index,
// nothing in it is damaged, and its checkpoints are this version's.
func current(f *recording.File) bool {
	if !f.Indexed || !f.Intact() {
		return false
	}
	state, _ := f.Checkpoint(f.To)
	if state == nil {
		return true // too short for one
	}
	_, err := timeline.Restore(state)
	return err == nil
}

// screenOptions fills in what the flags say about the screen.
func screenOptions(f *outputFlags, o ui.Options) ui.Options {
	o.Theme, o.ASCII, o.NoMouse, o.FPS, o.Keys = f.theme, f.ascii, f.noMouse, f.fps, f.keys
	o.FirstUse = firstUse(stateDir())
	o.Export, o.ExportFormats = exportShown, shownFormats()
	return o
}
