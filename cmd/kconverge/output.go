package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/pflag"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/anonymise"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/theme"
)

// defaultFPS is how many frames a second are drawn at most.
const defaultFPS = 60

// outputFlags are the flags of every command that observes something.
type outputFlags struct {
	headless bool
	duration time.Duration
	output   string
	record   string
	// anonymise what goes to record.
	anonymise bool
	theme     string
	ascii     bool
	noMouse   bool
	fps       int
	keys      map[string][]string
	forget    bool // do not keep the last minutes
	// given are the flags of a command that can draw, nil for others: what is
	// not set there comes from the configuration.
	given *pflag.FlagSet
}

// registerScreen registers the flags of a command that can draw as well.
func (f *outputFlags) registerScreen(fs *pflag.FlagSet) {
	f.register(fs)
	f.given = fs
	fs.StringVar(&f.theme, "theme", "auto", "colours: "+strings.Join(theme.Names, ", "))
	fs.BoolVar(&f.noMouse, "no-mouse", false, "leave the mouse to the terminal")
	fs.IntVar(&f.fps, "fps", defaultFPS, "frames a second at most; nothing is drawn while nothing changes")
}

func (f *outputFlags) register(fs *pflag.FlagSet) {
	f.registerPrinting(fs)
	fs.DurationVar(&f.duration, "for", 0, "stop after this long (for instance 30s); 0 goes on until stopped")
}

// registerPrinting is for commands that end by themselves.
func (f *outputFlags) registerPrinting(fs *pflag.FlagSet) {
	fs.BoolVar(&f.headless, "headless", false, "no screen; print a report at the end")
	fs.StringVarP(&f.output, "output", "o", "text", "what --headless prints: text, json (a kconverge.report/v1 document), events (JSON lines, as they come) or none")
	fs.StringVar(&f.record, "record", "", "record the session to `FILE` as well")
	f.registerAnonymise(fs)
	fs.BoolVar(&f.ascii, "ascii", false, "draw with 7-bit characters only")
}

func (f *outputFlags) registerAnonymise(fs *pflag.FlagSet) {
	fs.BoolVar(&f.anonymise, "anonymise", false, "record without the names and addresses of the cluster (kconverge anonymise --help tells what is replaced)")
}

func (f *outputFlags) validate() error {
	if f.anonymise && f.record == "" {
		return exitf(exitUsage, "--anonymise is about a recording: add --record FILE")
	}
	if f.given != nil {
		c, err := loadConfig(os.Getenv)
		if err != nil {
			return exitWith(exitUsage, err)
		}
		c.apply(f)
	}
	switch f.output {
	case "text", "json", "events", outputNone:
	default:
		return exitf(exitUsage, "--output %q: choose text, json, events or none", f.output)
	}
	if _, err := theme.ByName(f.theme); err != nil {
		return exitf(exitUsage, "--theme: %w", err)
	}
	if f.fps < 0 {
		return exitf(exitUsage, "--fps %d: must not be negative", f.fps)
	}
	if f.duration < 0 {
		return exitf(exitUsage, "--for %s: must not be negative", f.duration)
	}
	return nil
}

// screen says whether to draw; without a terminal it is an error that tells
// about --headless.
func (f *outputFlags) screen() (bool, error) {
	if f.headless {
		return false, nil
	}
	if !term.IsTerminal(os.Stdout.Fd()) || !term.IsTerminal(os.Stdin.Fd()) {
		return false, exitf(exitUsage, "there is no terminal to draw on: add --headless (and --output text, json or events)")
	}
	return true, nil
}

// eventOutput writes events until its reader is gone, and then ends the run: what
// goes on without one would never be noticed.
type eventOutput struct {
	*collect.Writer
	stop context.CancelFunc
}

// Write implements live.Recorder.
func (o eventOutput) Write(e collect.Event) error {
	err := o.Writer.Write(e)
	if err != nil {
		o.stop()
		return fmt.Errorf("the output of events ended: %w", err)
	}
	return nil
}

// recorders opens what --record and --output events ask for. stop ends the run.
func (f *outputFlags) recorders(screen bool, stdout io.Writer, stop context.CancelFunc) (out []live.Recorder, done func() error, err error) {
	done = func() error { return nil }
	if f.record != "" {
		w, err := recording.Create(f.record, recordingOptions())
		if err != nil {
			return nil, nil, exitWith(exitUsage, err)
		}
		if out, done = append(out, w), w.Close; f.anonymise {
			out[len(out)-1] = anonymise.NewWriter(w)
		}
	}
	if !screen && f.output == "events" {
		out = append(out, eventOutput{collect.NewWriter(stdout), stop})
	}
	return out, done, nil
}

// recordingModel makes what the checkpoints of a recording come from: a model as the
// running program has it.
func recordingModel() recording.Model { return live.NewModel(timeline.Options{}) }

// recordingOptions are those of a recording that is closed with checkpoints.
func recordingOptions() recording.Options {
	return recording.Options{Model: recordingModel, Tool: exactVersion()}
}

// print writes the final report of a headless run.
func (f *outputFlags) print(w io.Writer, s *timeline.Snapshot, keep func(*timeline.Service) bool) error {
	if f.output == "events" || f.output == outputNone {
		return nil
	}
	if s == nil {
		return exitf(exitCannotTell, "nothing was observed")
	}
	if err := f.write(w, report.Build(s, keep)); err != nil {
		return exitf(exitNot, "the report could not be written: %w", err)
	}
	return nil
}

func (f *outputFlags) write(w io.Writer, r *report.Report) error {
	if f.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	width := 0
	if cols, _, err := term.GetSize(os.Stdout.Fd()); err == nil {
		width = cols
	}
	return r.WriteText(w, report.TextOptions{Width: width, ASCII: f.ascii, Location: time.Local})
}

// verdict is the exit code that a headless observation ends with.
func verdict(s *timeline.Snapshot, scope live.Scope) error {
	if s == nil {
		return exitf(exitCannotTell, "nothing was observed")
	}
	found, absent := scope.Of(s)
	if len(absent) > 0 {
		return exitf(exitNot, "Service %s does not exist", absent[0])
	}
	for _, svc := range found {
		name := svc.Namespace + "/" + svc.Name
		if svc.State != timeline.Converged && provenDifferent(svc) {
			return exitf(exitNot, "%s is %s", name, svc.State)
		}
	}
	if why := unheard(s); why != "" {
		return exitf(exitCannotTell, "cannot tell: %s", why)
	}
	for _, svc := range found {
		name := svc.Namespace + "/" + svc.Name
		if svc.State == timeline.Unknown {
			return exitf(exitCannotTell, "%s: cannot tell: not everything it is compared with was listed", name)
		}
		if c := &svc.Coverage; !c.Complete() {
			return exitf(exitCannotTell, "%s: cannot tell for %s", name, coverageText(c)+agentsSay(s, c))
		}
		if svc.State != timeline.Converged {
			return exitf(exitNot, "%s is %s", name, svc.State)
		}
	}
	return nil
}

// provenDifferent reports that a plane that is known now is not as wanted. What a plane had
// before its source went silent proves nothing.
func provenDifferent(svc *timeline.Service) bool {
	return slices.ContainsFunc(svc.Differences, func(d timeline.Difference) bool {
		if d.Plane.Kind == timeline.PlaneEndpoints {
			return false
		}
		p := svc.Plane(d.Plane)
		return p == nil || len(p.Changes) == 0 || p.Changes[len(p.Changes)-1].Knowledge == timeline.Known
	})
}

// unheard names a needed source that has not told everything up to now: one
// that never gave its word, or one in a gap. It is empty when there is none.
func unheard(s *timeline.Snapshot) string {
	for _, src := range s.Sources {
		if !src.Needed {
			continue
		}
		if src.Vouched.IsZero() {
			return strings.TrimSpace(fmt.Sprintf("%s has told nothing yet (%s) %s", src.ID, src.State, src.Detail))
		}
		for _, g := range s.Gaps {
			if g.Source == src.ID && g.To.IsZero() {
				return fmt.Sprintf("%s is in a gap: %s", src.ID, g.Why)
			}
		}
	}
	return ""
}

// agentsSay tells why no agent reads the rules of blind nodes.
func agentsSay(s *timeline.Snapshot, c *timeline.Coverage) string {
	for _, src := range s.Sources {
		if src.ID == collect.SourceAgents && src.Detail != "" && len(c.Blind) > 0 {
			return "; " + src.Detail
		}
	}
	return ""
}

func coverageText(c *timeline.Coverage) string {
	kinds := []timeline.PlaneKind{timeline.PlanePods, timeline.PlaneSlices, timeline.PlaneEndpoints, timeline.PlaneRules}
	for _, kind := range kinds {
		if why, blind := c.BlindPlanes[timeline.PlaneID{Kind: kind}]; blind {
			return fmt.Sprintf("%s: %s", kind, why)
		}
	}
	for _, node := range c.Blind {
		if why := c.BlindWhy[node]; why != "" {
			return fmt.Sprintf("the rules of %d of %d nodes: %s: %s", len(c.Blind), len(c.Expected), node, why)
		}
	}
	if len(c.Blind) > 0 {
		return fmt.Sprintf("the rules of %d of %d nodes: nothing reads them", len(c.Blind), len(c.Expected))
	}
	return fmt.Sprintf("the rules of %d of %d nodes: in a gap", len(c.Gap), len(c.Expected))
}
