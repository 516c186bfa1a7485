package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

// firstWord is how long check waits for every source's first word.
const firstWord = time.Minute

func newCheck() *cobra.Command {
	var flags outputFlags
	var file string
	var watch, limit time.Duration
	c := &cobra.Command{
		Use:   "check [svc/NAME ...]",
		Short: "Look for what is wrong or risky, and say what to do about it",
		Long: `check looks at the Services of the namespace, the nodes and the sources once all
have been listed, or at the end of a recording, and prints what it finds, the worst
first. kconverge explain CODE tells what a code means.

With --for it goes on watching for that long and judges then: what shows only in
changes (a node that follows slowly, a preStop that is too short, a probe that flaps)
needs changes to be seen. A first look says nothing about what has only just begun.

It exits with 0 when there is no error or warning, with 1 when there is, and with 4
when there is none but something could not be seen (KC4xx).`,
		Example: `  kconverge check
  kconverge check svc/web --for 10m
  kconverge check --recording session.kcrec -o json`,
	}
	where := newClusterFlags(c.Flags())
	c.Flags().StringVarP(&flags.output, "output", "o", "text", "text, or json (a kconverge.report/v1 document)")
	c.Flags().StringVar(&flags.record, "record", "", "record the session to `FILE` as well")
	c.Flags().BoolVar(&flags.ascii, "ascii", false, "print 7-bit characters only")
	c.Flags().StringVar(&file, "recording", "", "judge the end of a recording instead of a cluster")
	c.Flags().DurationVar(&watch, "for", 0, "watch for this long before judging")
	c.Flags().DurationVar(&limit, "timeout", firstWord, "how long to wait for the first word of all sources")
	c.RunE = func(c *cobra.Command, args []string) error {
		flags.headless = true
		if err := validTimeout(limit); err != nil {
			return err
		}
		switch {
		case flags.output != "text" && flags.output != "json":
			return exitf(exitUsage, "--output %s: check prints text or json", flags.output)
		case watch < 0:
			return exitf(exitUsage, "--for %s: choose 0 or more, such as 10m", watch)
		case file != "" && watch > 0:
			return exitf(exitUsage, "--for: a recording is judged at its end")
		case file != "":
			return checkRecording(c, &flags, file, args)
		}
		return where.run(c, &flags, args, vouchWaiting, func(_ *cluster, o *observation) {
			o.print = flags.printFindings
			o.during = func(ctx context.Context, rt *live.Runtime) error {
				return look(ctx, rt, o.scope, askAll(o.sources), watch, limit)
			}
		})
	}
	return c
}

// look waits until all sources have told what there is, watches on, asks them once
// more, and judges.
func look(ctx context.Context, rt *live.Runtime, scope live.Scope, ask func(), watch, limit time.Duration) error {
	first, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, why, err := rt.Wait(first, saying(listed(ask), os.Stderr))
	switch {
	case ctx.Err() != nil:
		return exitf(exitNot, "interrupted while waiting for %s", why)
	case err != nil && s == nil:
		return exitf(exitUnreachable, "waiting for %s: %w", why, err)
	case err != nil:
		return findingsVerdict(s, scope, why) // what could not be heard is in the findings, too
	}
	until := s.Now.Add(watch)
	again, cancelAgain := context.WithTimeout(ctx, watch+limit)
	defer cancelAgain()
	if last, why, err := rt.Wait(again, vouchedPast(until, ask)); err == nil {
		s = last
	} else if ctx.Err() != nil {
		return exitf(exitNot, "interrupted while waiting for %s", why)
	} else if last != nil {
		s = last
	}
	return findingsVerdict(s, scope, "")
}

// listed holds once every needed source has given its word and every other has told
// what there is, or that it cannot.
func listed(ask func()) live.Condition {
	word := vouched(ask)
	return func(s *timeline.Snapshot) (bool, string) {
		if ok, why := word(s); !ok {
			return false, why
		}
		for _, src := range s.Sources {
			if src.State == collect.SourceStarting || src.State == collect.SourceListing {
				return false, "the first list of " + string(src.ID)
			}
		}
		return true, ""
	}
}

// vouchedPast holds once every needed source has told everything up to a time.
func vouchedPast(t time.Time, ask func()) live.Condition {
	return func(s *timeline.Snapshot) (bool, string) {
		if !s.Watermark.Before(t) {
			return true, ""
		}
		if !s.Now.Before(t) {
			ask()
		}
		return false, "word of everything up to " + t.Format(time.TimeOnly)
	}
}

// findingsVerdict is the exit code of what is found. unheard says what was waited for
// in vain, if anything was.
func findingsVerdict(s *timeline.Snapshot, scope live.Scope, unheard string) error {
	if s == nil {
		return exitf(exitCannotTell, "nothing was observed")
	}
	if _, absent := scope.Of(s); len(absent) > 0 {
		return exitf(exitNot, "Service %s does not exist", absent[0])
	}
	wrong, unseen := 0, 0
	for _, f := range findings.Find(s, keep(scope)) {
		switch {
		case !f.Code.Severity.Worse(findings.Info):
		case f.Code.Unseen():
			unseen++
		default:
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return exitf(exitNot, "found %s", counted(wrong, "thing")+" to look at")
	case unheard != "":
		return exitf(exitCannotTell, "cannot tell: waiting for %s", unheard)
	case unseen > 0:
		return exitf(exitCannotTell, "nothing wrong was found in what can be seen, but not everything can")
	}
	found, _ := scope.Of(s)
	for _, svc := range found {
		if c := &svc.Coverage; !c.Complete() {
			return exitf(exitCannotTell, "nothing wrong was found in what can be seen; %s/%s: cannot tell for %s", svc.Namespace, svc.Name, coverageText(c)+agentsSay(s, c))
		}
	}
	return nil
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// checkRecording judges the last moment of a recording.
func checkRecording(c *cobra.Command, flags *outputFlags, path string, args []string) error {
	if err := flags.validate(); err != nil {
		return err
	}
	var scope live.Scope
	for _, a := range args {
		name, err := serviceName(a)
		if err != nil {
			return err
		}
		scope.Services = append(scope.Services, recordedName(name))
	}
	file, err := recording.Open(path)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	defer file.Close()
	sayCut(c.ErrOrStderr(), file, path)
	ctx, stop := interruptible(c.Context())
	defer stop()
	o := observation{
		flags: flags, session: file.Session, sources: []collect.Source{recording.NewPlayer(file, 0)}, replay: true,
		scope: scope, keep: keep(scope), print: flags.printFindings, stdout: c.OutOrStdout(),
		verdict: func(s *timeline.Snapshot) error { return findingsVerdict(s, scope, "") },
	}
	if flags.record != "" {
		return o.run(ctx)
	}
	return o.runRecorded(ctx, file)
}

// recordedName is NAMESPACE/NAME of NAME.NAMESPACE, or of a NAME in "default".
func recordedName(name string) string {
	for i := range name {
		if name[i] == '.' {
			return name[i+1:] + "/" + name[:i]
		}
	}
	return "default/" + name
}

// printFindings writes the report with nothing but findings as text, or all as JSON.
func (f *outputFlags) printFindings(w io.Writer, s *timeline.Snapshot, keep func(*timeline.Service) bool) error {
	if s == nil {
		return exitf(exitCannotTell, "nothing was observed")
	}
	r := report.Build(s, keep)
	if f.output == "json" {
		return f.write(w, r)
	}
	if len(r.Services) == 0 && len(r.Findings) == 0 {
		_, err := fmt.Fprintln(w, "there is no Service to judge")
		return err
	}
	width := 0
	if cols, _, err := term.GetSize(os.Stdout.Fd()); err == nil {
		width = cols
	}
	if err := r.WriteFindings(w, report.TextOptions{Width: width, ASCII: f.ascii, Location: time.Local}); err != nil {
		return errors.Join(exitf(exitNot, "the findings could not be written"), err)
	}
	return nil
}
