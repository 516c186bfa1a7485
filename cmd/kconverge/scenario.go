package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/scenario"
	"github.com/kconverge/kconverge/engine/timeline"
)

// newScenarios lists the scenarios, or prints one's file.
func newScenarios() *cobra.Command {
	return &cobra.Command{
		Use:   "scenarios [NAME]",
		Short: "List what lab --scenario can play, or print one's file to begin an own one with",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				text, err := scenario.Text(args[0])
				if err != nil {
					return exitWith(exitUsage, err)
				}
				_, err = io.WriteString(c.OutOrStdout(), text)
				return err
			}
			all, err := scenario.All()
			if err != nil {
				return exitWith(exitUsage, err)
			}
			for _, s := range all {
				fmt.Fprintf(c.OutOrStdout(), "%-28s %s\n", s.Name, s.Title)
			}
			return nil
		},
	}
}

// show is a scenario that the lab plays, and how.
type show struct {
	*scenario.Scenario
	control bool
	tour    bool
	next    chan struct{} // a key was pressed; nil without a screen
	out     *scenario.Outcome
	err     error
	left    bool // before its end
}

// openShow reads what --scenario or --tour ask for; nil for neither.
func (lf *labFlags) openShow(screen bool) (*show, error) {
	name := lf.scenario
	if lf.tour {
		name = scenario.TourName
	}
	if name == "" {
		return nil, nil
	}
	s, err := scenario.Open(name)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	if lf.control && !s.HasControl() {
		return nil, exitf(exitUsage, "--control: scenario %s has no cause that could be left out", s.Name)
	}
	sh := &show{Scenario: s, control: lf.control, tour: lf.tour}
	if screen {
		sh.next = make(chan struct{}, 1)
	}
	return sh, nil
}

// goOn lets the scenario begin its next chapter.
func (s *show) goOn() {
	select {
	case s.next <- struct{}{}:
	default:
	}
}

// play plays the scenario in the lab, and tells w.
func (s *show) play(ctx context.Context, rt *live.Runtime, l *lab.Lab, kubeconfig func() []byte, w io.Writer, ascii bool) error {
	o := scenario.Options{Scenario: s.Scenario, Lab: l, Runtime: rt, Kubeconfig: kubeconfig, Control: s.control}
	if w != nil {
		o.Tell = func(line scenario.Line) { printLine(w, line, ascii) }
	}
	if s.next != nil {
		o.Next = func(ctx context.Context) error {
			select { // a key from before does not count
			case <-s.next:
			default:
			}
			select {
			case <-s.next:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	s.out, s.err = scenario.Play(ctx, o)
	if s.left = s.err != nil && ctx.Err() != nil; s.err != nil && !s.left {
		// On a screen there is nobody else to tell.
		rt.Emit(collect.Event{At: rt.Latest().Now, Source: collect.SourceUser, Payload: &collect.Narration{
			Scenario: s.Name, Text: "The scenario stopped: " + s.err.Error(), Verdict: "not met"}})
	}
	return s.verdict(ctx)
}

// verdict is what the program exits with.
func (s *show) verdict(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return exitf(exitNot, "scenario %s was interrupted", s.Name)
	case s.err != nil:
		return exitWith(exitNot, s.err)
	case !s.out.Met():
		return exitf(exitNot, "scenario %s: %d of %s not met", s.Name, s.out.NotMet(), counted(len(s.out.Results), "expectation"))
	}
	return nil
}

// textWidth is how wide what is told is.
const textWidth = 78

// printLine writes a line of a scenario.
func printLine(w io.Writer, l scenario.Line, ascii bool) {
	met, not := "✓", "✗"
	if ascii {
		met, not = "ok", "NOT MET"
	}
	indented := func(first, rest, text string) {
		for i, line := range strings.Split(ansi.Wordwrap(text, textWidth-len(rest), ""), "\n") {
			if i > 0 {
				first = rest
			}
			fmt.Fprintln(w, first+line)
		}
	}
	switch l.Kind {
	case scenario.LineChapter:
		fmt.Fprintf(w, "\n== %s\n", l.Text)
	case scenario.LineSay:
		indented("  ", "  ", l.Text)
	case scenario.LineDo:
		fmt.Fprintln(w, "$ "+l.Text)
	case scenario.LineMet:
		fmt.Fprintln(w, met+" "+l.Text)
		indented("    ", "    ", l.Found)
	case scenario.LineNotMet:
		fmt.Fprintln(w, not+" "+l.Text)
		indented("    ", "    ", l.Found)
	}
}

// printNothing stands for the report where what a scenario told is enough.
func printNothing(io.Writer, *timeline.Snapshot, func(*timeline.Service) bool) error { return nil }

// labAccess is the kubeconfig of a lab that is ready.
type labAccess struct {
	mu         sync.Mutex
	kubeconfig []byte
}

// take keeps the kubeconfig and hands it on.
func (a *labAccess) take(to func([]byte) error) func([]byte) error {
	return func(b []byte) error {
		a.mu.Lock()
		a.kubeconfig = b
		a.mu.Unlock()
		return to(b)
	}
}

func (a *labAccess) get() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kubeconfig
}

// attach makes an observation play the scenario: beside the screen, or until it ends.
func (s *show) attach(o *observation, l *lab.Lab, access *labAccess, stderr io.Writer) {
	if o.screen {
		o.ui.Next = s.goOn
		o.beside = func(ctx context.Context, rt *live.Runtime) { _ = s.play(ctx, rt, l, access.get, nil, false) }
		return
	}
	told := o.stdout
	switch o.flags.output {
	case "text":
		o.print = printNothing
	default: // standard output is for what is asked for
		told = stderr
	}
	o.during = func(ctx context.Context, rt *live.Runtime) error {
		return s.play(ctx, rt, l, access.get, told, o.flags.ascii)
	}
}

// after tells what became of a scenario when its screen is left.
func (s *show) after(w io.Writer) error {
	if s.out == nil {
		return nil
	}
	met := len(s.out.Results) - s.out.NotMet()
	if s.left {
		fmt.Fprintf(w, "Scenario %s was left before its end: %d of %s until then met.\n", s.Name, met, counted(len(s.out.Results), "expectation"))
	} else {
		fmt.Fprintf(w, "Scenario %s: %d of %s met.\n", s.Name, met, counted(len(s.out.Results), "expectation"))
	}
	switch {
	case s.out.NotMet() > 0:
		return exitf(exitNot, "%s not met", counted(s.out.NotMet(), "expectation"))
	case s.err != nil && !s.left:
		return exitWith(exitNot, s.err)
	}
	return nil
}
