package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/export"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
	"github.com/kconverge/kconverge/ui/cast"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/frame"
	"github.com/kconverge/kconverge/ui/theme"
)

// exportFormat is one that kconverge export writes.
type exportFormat struct {
	name, what string
	binary     bool     // not for a terminal
	flags      []string // that change what it looks like
	write      func(*export.Document, io.Writer, *exportLook) error
}

var pictureFlags = []string{"width", "theme", "ascii"}

// exportFormats are all of them. Cast is of more than one moment, and has no write.
var exportFormats = []exportFormat{
	{"json", "the kconverge.report/v1 document", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.JSON(w) }},
	{"csv", "a row for each path and node", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.CSV(w) }},
	{"md", "Markdown, to paste into an issue", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.Markdown(w) }},
	{"html", "one page with everything in it: zoom, hover, filter; needs no network", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.HTML(w) }},
	{"svg", "a picture of the lanes, the changes and what was found", false, pictureFlags, func(d *export.Document, w io.Writer, l *exportLook) error {
		return frame.SVG(w, l.poster(d), frame.ColorsFor(l.theme))
	}},
	{"png", "the same as pixels", true, pictureFlags, func(d *export.Document, w io.Writer, l *exportLook) error {
		return frame.PNG(w, l.poster(d), frame.ColorsFor(l.theme))
	}},
	{"trace", "Chrome trace events, for Perfetto, speedscope and chrome://tracing", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.Trace(w) }},
	{"otlp", "OpenTelemetry spans, a TracesData object in each line", false, nil, func(d *export.Document, w io.Writer, _ *exportLook) error { return d.OTLP(w) }},
	{"cast", "an asciicast of the screen, for asciinema, with a marker at each episode's start and end", false, []string{"theme", "ascii", "size", "speed"}, nil},
}

// maxWidth is the widest picture, in cells.
const maxWidth = 1000

// exportLook is how pictures are drawn.
type exportLook struct {
	width int // of svg and png, in cells
	theme *theme.Theme
	ascii bool
}

func (l *exportLook) poster(d *export.Document) *draw.Screen {
	p := frame.Poster{Snapshot: d.Snapshot, Report: d.Report, Location: d.Location, Width: l.width, Theme: l.theme, Glyphs: &draw.Unicode}
	if l.ascii {
		p.Glyphs = &draw.ASCII
	}
	return p.Draw()
}

func formatNamed(name string) (exportFormat, bool) {
	i := slices.IndexFunc(exportFormats, func(f exportFormat) bool { return f.name == name })
	if i < 0 {
		return exportFormat{}, false
	}
	return exportFormats[i], true
}

// formatOf is the format that a file's ending names.
func formatOf(path string) (exportFormat, bool) {
	return formatNamed(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
}

// lookFlags are those that not every format has.
func lookFlags() []string {
	var out []string
	for _, f := range exportFormats {
		for _, flag := range f.flags {
			if !slices.Contains(out, flag) {
				out = append(out, flag)
			}
		}
	}
	return out
}

func formatNames() []string {
	var out []string
	for _, f := range exportFormats {
		out = append(out, f.name)
	}
	return out
}

// shownFormats are those that a screen can write: of what is shown, at one moment.
func shownFormats() []string {
	return slices.DeleteFunc(formatNames(), func(name string) bool { f, _ := formatNamed(name); return f.write == nil })
}

// exportShown writes what a screen shows.
func exportShown(e ui.Export) error {
	format, ok := formatOf(e.Path)
	if !ok || format.write == nil {
		return fmt.Errorf("%s: the ending must be one of .%s", collect.Plain(e.Path), strings.Join(shownFormats(), " ."))
	}
	o := export.Options{From: e.From, To: e.To, Location: time.Local, Tool: "kconverge " + toolVersion()}
	if e.Service != "" {
		o.Keep = keep(live.Scope{Services: []string{e.Service}})
	}
	doc, err := export.New(e.Snapshot, o)
	if err != nil {
		return err
	}
	return writeOut(io.Discard, e.Path, func(w io.Writer) error {
		return format.write(doc, w, &exportLook{width: frame.PosterWidth, theme: &theme.Dark})
	})
}

// exportFlags are what export is asked for.
type exportFlags struct {
	to, out  string
	services []string
	from     string
	until    string
	theme    string
	look     exportLook
	size     string  // of cast
	speed    float64 // of cast
}

func newExport() *cobra.Command {
	var f exportFlags
	var long strings.Builder
	for _, x := range exportFormats {
		fmt.Fprintf(&long, "  %-6s %s\n", x.name, x.what)
	}
	c := &cobra.Command{
		Use:   "export FILE --to FORMAT",
		Short: "Write a recording, or a part of it, for other people and programs",
		Long: `export writes what a recording comes to in one of these formats:

` + long.String() + `
Without --from and --until it is of the whole recording, as of its end. With --until it is
as of that moment: what came later is not in it. A time is 15:04:05, with a date before it
or not, or RFC 3339, or +10s from the start, or -10s from the end.`,
		Example: `  kconverge export demo.kcrec --to html -o demo.html
  kconverge export demo.kcrec --to md --service default/web
  kconverge export demo.kcrec --to csv --from 12:04:10 --until +2m | head`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitf(exitUsage, "export takes one recording: kconverge export FILE --to FORMAT")
			}
			return nil
		},
	}
	c.Flags().StringVar(&f.to, "to", "", "the `FORMAT`: "+strings.Join(formatNames(), ", ")+"; without it the one that the ending of --output names")
	c.Flags().StringVarP(&f.out, "output", "o", "", "write to `FILE`, which must not exist yet; without it to standard output")
	c.Flags().StringArrayVar(&f.services, "service", nil, "only this Service, as `NAMESPACE/NAME`; may be given several times")
	c.Flags().StringVar(&f.from, "from", "", "leave out what ended before this `TIME`")
	c.Flags().StringVar(&f.until, "until", "", "as of this `TIME`")
	c.Flags().IntVar(&f.look.width, "width", frame.PosterWidth, "width of a picture, in `CELLS`")
	c.Flags().StringVar(&f.theme, "theme", "dark", "colours of a picture: "+strings.Join(theme.Names[1:], ", "))
	c.Flags().StringVar(&f.size, "size", "120x36", "size of the screen of a cast, in cells, `WIDTHxHEIGHT`")
	c.Flags().Float64Var(&f.speed, "speed", 1, "recorded seconds that pass in one of a cast")
	c.Flags().BoolVar(&f.look.ascii, "ascii", false, "draw with 7-bit characters only")
	_ = c.RegisterFlagCompletionFunc("to", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formatNames(), cobra.ShellCompDirectiveNoFileComp
	})
	c.RunE = func(c *cobra.Command, args []string) error { return f.run(c, args[0]) }
	return c
}

// format is the one asked for, or the one that the ending of the output names.
func (f *exportFlags) format() (exportFormat, error) {
	name := f.to
	if name == "" {
		if x, ok := formatOf(f.out); ok {
			return x, nil
		}
		return exportFormat{}, exitf(exitUsage, "which format? --to %s", strings.Join(formatNames(), "|"))
	}
	if x, ok := formatNamed(name); ok {
		return x, nil
	}
	return exportFormat{}, exitf(exitUsage, "--to %q: choose one of %s", name, strings.Join(formatNames(), ", "))
}

func (f *exportFlags) run(c *cobra.Command, path string) error {
	format, err := f.format()
	if err != nil {
		return err
	}
	for _, flag := range lookFlags() {
		if c.Flags().Changed(flag) && !slices.Contains(format.flags, flag) {
			return exitf(exitUsage, "--%s: %s has none", flag, format.name)
		}
	}
	if f.look.theme, err = theme.ByName(f.theme); err != nil {
		return exitf(exitUsage, "--theme: %w", err)
	}
	if f.look.theme == nil {
		f.look.theme = &theme.Dark
	}
	if f.look.width < frame.MinPosterWidth || f.look.width > maxWidth {
		return exitf(exitUsage, "--width %d: choose %d to %d", f.look.width, frame.MinPosterWidth, maxWidth)
	}
	if format.binary && f.out == "" && term.IsTerminal(os.Stdout.Fd()) {
		return exitf(exitUsage, "--to %s is not for a terminal: add -o FILE", format.name)
	}
	file, err := recording.Open(path)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	defer file.Close()
	sayCut(c.ErrOrStderr(), file, path)
	damaged := !file.Intact()
	if damaged || !file.Indexed && (f.from != "" || f.until != "" || format.name == "cast") {
		again, err := file.Reindexed(recordingOptions())
		if err != nil {
			return exitWith(exitUnreachable, err)
		}
		defer again.Close()
		file = again
	}
	from, until, err := f.window(file)
	if err != nil {
		return err
	}
	if err := f.write(c, format, file, from, until); err != nil || !damaged {
		return err
	}
	return exitf(exitCannotTell, "it was written, but parts of %s cannot be read: they are gaps in it", collect.Plain(path))
}

// write writes the time that was asked for.
func (f *exportFlags) write(c *cobra.Command, format exportFormat, file *recording.File, from, until time.Time) error {
	if format.name == "cast" {
		return f.cast(c, file, from, until)
	}
	doc, err := f.document(file, from, until)
	if err != nil {
		return err
	}
	return writeOut(c.OutOrStdout(), f.out, func(w io.Writer) error { return format.write(doc, w, &f.look) })
}

// cast writes the screens of a recording.
func (f *exportFlags) cast(c *cobra.Command, file *recording.File, from, until time.Time) error {
	o := cast.Options{Speed: f.speed, From: from, To: until, Location: time.Local}
	if !(f.speed > 0 && f.speed <= maxSpeed) {
		return exitf(exitUsage, "--speed %g: choose more than 0, to %d", f.speed, maxSpeed)
	}
	if n, err := fmt.Sscanf(f.size+" ", "%dx%d ", &o.Width, &o.Height); n != 2 || err != nil ||
		o.Width < cast.MinWidth || o.Height < cast.MinHeight || o.Width > cast.MaxSize || o.Height > cast.MaxSize {
		return exitf(exitUsage, "--size %s: write WIDTHxHEIGHT, from %dx%d to %dx%d", f.size, cast.MinWidth, cast.MinHeight, cast.MaxSize, cast.MaxSize)
	}
	if len(f.services) > 1 {
		return exitf(exitUsage, "--service: a cast shows one Service")
	}
	reel := live.NewReel(file)
	if len(f.services) == 1 {
		last, err := f.moment(reel, until)
		if err != nil {
			return err
		}
		if err := f.known(last); err != nil {
			return err
		}
		o.Screen.Focus = f.services[0]
	}
	o.Screen.Title, o.Screen.Theme, o.Screen.ASCII, o.Screen.Environ = "replay "+filepath.Base(file.Path()), f.theme, f.look.ascii, []string{"TERM=xterm-256color"}
	return writeOut(c.OutOrStdout(), f.out, func(w io.Writer) error { return cast.Write(w, reel, o) })
}

// moment is what is known at a time, or at the end.
func (f *exportFlags) moment(reel *live.Reel, at time.Time) (*timeline.Snapshot, error) {
	show := reel.End
	if !at.IsZero() {
		show = func() (*timeline.Snapshot, error) { return reel.At(at) }
	}
	snap, err := show()
	return snap, exitWith(exitUnreachable, err)
}

// document shows the recording's moment and takes from it what is asked for.
func (f *exportFlags) document(file *recording.File, from, until time.Time) (*export.Document, error) {
	reel := live.NewReel(file)
	snap, err := f.moment(reel, until)
	if err != nil {
		return nil, err
	}
	if err := f.known(snap); err != nil {
		return nil, err
	}
	doc, err := export.New(snap, export.Options{Keep: f.keep(), From: from, To: until, Location: time.Local, Tool: "kconverge " + toolVersion()})
	return doc, exitWith(exitCannotTell, err)
}

func (f *exportFlags) keep() func(*timeline.Service) bool {
	if len(f.services) == 0 {
		return nil
	}
	return keep(live.Scope{Services: f.services})
}

// known complains of a Service that the recording does not have.
func (f *exportFlags) known(s *timeline.Snapshot) error {
	var have []string
	for _, svc := range s.Services {
		have = append(have, svc.Namespace+"/"+svc.Name)
	}
	for _, name := range f.services {
		if !slices.Contains(have, name) {
			const most = 8
			if n := len(have); n > most {
				have = append(have[:most], fmt.Sprintf("and %d more", n-most))
			}
			return exitf(exitNot, "--service %s: not in the recording at that time, which has %s", name, collect.Plain(strings.Join(have, ", ")))
		}
	}
	return nil
}

// window reads --from and --until.
func (f *exportFlags) window(file *recording.File) (from, until time.Time, err error) {
	for _, x := range []struct {
		flag, text string
		t          *time.Time
	}{{"--from", f.from, &from}, {"--until", f.until, &until}} {
		if x.text == "" {
			continue
		}
		if *x.t, err = recordedMoment(x.text, file.From, file.To, time.Local); err != nil {
			return from, until, exitf(exitUsage, "%s %s: %w", x.flag, x.text, err)
		}
	}
	if !from.IsZero() && !until.IsZero() && !from.Before(until) {
		return from, until, exitf(exitUsage, "--from %s is not before --until %s", f.from, f.until)
	}
	return from, until, nil
}

// recordedMoment reads a time of a recording that goes from start to end: RFC 3339, a date
// and time, a time of a day that it covers, +10s from its start, or -10s from its end.
func recordedMoment(s string, start, end time.Time, loc *time.Location) (time.Time, error) {
	inside := func(t time.Time) (time.Time, error) {
		if t.Before(start) || t.After(end) {
			return t, fmt.Errorf("the recording goes from %s to %s", start.In(loc).Format(time.DateTime), end.In(loc).Format(time.DateTime))
		}
		return t, nil
	}
	if d, err := time.ParseDuration(s); err == nil && (s[0] == '+' || s[0] == '-') {
		if d < 0 {
			return inside(end.Add(d))
		}
		return inside(start.Add(d))
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, s, loc); err == nil {
			return inside(t)
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		t, err := time.ParseInLocation(layout, s, loc)
		if err != nil {
			continue
		}
		y, m, d := start.In(loc).Date()
		at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc)
		if at.Before(start) {
			at = at.AddDate(0, 0, 1) // it is the next day's
		}
		return inside(at)
	}
	return time.Time{}, errors.New("write 15:04:05, +10s from the start, -10s from the end, or RFC 3339")
}

// writeOut writes to a new file, which is taken away when that fails, or to stdout.
func writeOut(stdout io.Writer, path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return exitWith(exitNot, writeAll(stdout, write))
	}
	path, err := homePath(path)
	if err != nil {
		return exitWith(exitNot, err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return exitf(exitUsage, "%s exists already: choose another name, or remove it", collect.Plain(path))
	}
	if err != nil {
		return exitWith(exitNot, err)
	}
	if err := errors.Join(writeAll(out, write), out.Close()); err != nil {
		_ = os.Remove(path)
		return exitf(exitNot, "%s could not be written: %w", collect.Plain(path), err)
	}
	return nil
}

func writeAll(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriter(w)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush() // which says again what a write said
}

// homePath is a path that may begin with ~/, as in a shell.
func homePath(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, rest), nil
}
