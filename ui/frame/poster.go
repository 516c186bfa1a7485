package frame

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// Width that a Poster has unless told otherwise, and the least that shows anything.
const (
	PosterWidth    = 120
	MinPosterWidth = 60
)

// What a Poster has room for, of each Service and at all; more is counted.
const (
	posterServices = 40
	posterNodes    = 100 // above which the slowest have lanes
	posterChanges  = 24
	posterFindings = 12
	posterGaps     = 12
)

// Poster is what a Poster shows, and how. Snapshot and Report are of the same moment.
type Poster struct {
	Snapshot *timeline.Snapshot
	Report   *report.Report
	Location *time.Location
	Width    int // in cells
	Theme    *theme.Theme
	Glyphs   *draw.Glyphs
}

// Draw draws it as high as it takes: for each Service of the report all lanes of its
// window, and the changes; then findings and gaps.
func (p Poster) Draw() *draw.Screen {
	if p.Width <= 0 {
		p.Width = PosterWidth
	}
	p.Width = max(p.Width, MinPosterWidth)
	if p.Location == nil {
		p.Location = time.UTC
	}
	var lines []line
	add := func(l ...line) { lines = append(lines, l...) }
	add(p.head()...)
	shown := p.Report.Services
	if len(shown) > posterServices {
		shown = shown[:posterServices]
	}
	for i := range shown {
		if svc := p.Snapshot.Service(shown[i].Namespace, shown[i].Name); svc != nil {
			add(p.service(svc, &shown[i])...)
		}
	}
	if n := len(p.Report.Services) - len(shown); n > 0 {
		add(nothing, text(1, theme.Dim, "and "+lanes.Plural(n, "more Service")))
	}
	add(p.findings()...)
	add(p.gaps()...)
	s := draw.NewScreen(p.Width, len(lines), p.Theme, p.Glyphs)
	for y, line := range lines {
		line(s, y)
	}
	return s
}

// line paints one line of the Poster.
type line = func(s *draw.Screen, y int)

func nothing(*draw.Screen, int) {}

func text(x int, role theme.Role, t string) line {
	return func(s *draw.Screen, y int) { s.TextIn(x, y, s.Width()-x-1, role, t) }
}

func (p *Poster) moment(t time.Time) string { return t.In(p.Location).Format("15:04:05.000") }

func (p *Poster) head() []line {
	r := p.Report
	from, to := r.Window.From.In(p.Location), r.Window.To.In(p.Location)
	zone, _ := to.Zone()
	layout := "15:04:05"
	if from.YearDay() != to.YearDay() || from.Year() != to.Year() {
		layout = "2006-01-02 15:04:05"
	}
	when := from.Format("2006-01-02 15:04:05") + " to " + to.Format(layout) + " " + zone
	asOf := "nothing is vouched for yet"
	if !r.AsOf.IsZero() {
		asOf = "as of " + p.moment(r.AsOf)
	}
	title := func(s *draw.Screen, y int) {
		x := s.Text(1, y, theme.Accent, "kconverge")
		s.TextIn(x+2, y, s.Width()/3, theme.Text, r.Source.Kind+" "+r.Source.Name)
	}
	if p.Width < 110 {
		return []line{title, text(1, theme.Dim, when), text(1, theme.Dim, asOf)}
	}
	return []line{func(s *draw.Screen, y int) {
		title(s, y)
		s.Right(s.Width()-1, y, theme.Dim, when+"  "+asOf)
	}}
}

// picture are the lanes of the whole window.
func (p *Poster) picture(svc *timeline.Service, cols int) *lanes.Picture {
	from, to := p.Report.Window.From, p.Report.Window.To
	o := lanes.Options{Cols: cols, Now: to, Cursor: to, FoldQuiet: true, AllNodes: svc.Rules.Len() <= posterNodes, Location: p.Location}
	// Which cell is enough depends on what is quiet at that cell: from the shortest.
	build := func(cell time.Duration) (*lanes.Picture, bool) {
		o.Cell, o.To = cell, lanes.AlignEnd(to, cell)
		pic := lanes.Build(p.Snapshot, svc, o)
		return pic, !pic.Scale.From().After(from) || cell == lanes.Zoom(cell, false)
	}
	for cell := lanes.CellFor(0, 1); ; cell = lanes.Zoom(cell, false) {
		pic, enough := build(cell)
		if !enough {
			continue
		}
		// A picture has no next one that it should be like: it need not be round.
		for tenths := time.Duration(4); tenths < 10; tenths++ {
			if finer, enough := build(cell * tenths / 10); enough {
				return finer
			}
		}
		return pic
	}
}

func (p *Poster) service(svc *timeline.Service, v *report.Service) []line {
	l := draw.LayoutLanes(0, p.Width)
	pic := p.picture(svc, l.Cols)
	out := []line{nothing, func(s *draw.Screen, y int) {
		s.Rule(0, y, s.Width(), svc.Namespace+"/"+svc.Name+", "+string(svc.State), lanes.SpanOf(pic.Scale.Cell)+"/cell")
	}}
	out = append(out, func(s *draw.Screen, y int) { s.Axis(l, y, pic, p.moment(pic.Cursor)) }, nothing)
	for i := range pic.Rows {
		out = append(out, func(s *draw.Screen, y int) { s.Lane(l, y, &pic.Rows[i], -1, false) })
	}
	out = append(out, nothing, legend)
	return append(out, p.changes(v)...)
}

// legend says what the signs mean.
func legend(s *draw.Screen, y int) {
	g, x := s.Glyphs, 1
	for _, e := range []struct {
		role        theme.Role
		glyph, text string
	}{
		{theme.Good, g.Agrees, "agrees"}, {theme.Warn, g.Behind, "behind"}, {theme.Bad, g.Stale, "routed but stopped"}, {theme.Warn, g.Gap, "gap"},
		{theme.Dim, g.Blind, "blind"}, {theme.Tentative, g.Claimed, "claimed"}, {theme.Tentative, g.AgreesMaybe, "not vouched for yet"},
		{theme.Good, g.ReadyAt, "ready"}, {theme.Warn, g.TerminatingAt, "terminating"}, {theme.Dim, g.StoppedAt, "stopped"}, {theme.Dim, g.Fold, "quiet time left out"},
	} {
		if x+draw.Width(e.text)+3 > s.Width() {
			return
		}
		s.Glyph(x, y, e.role, e.glyph)
		x = s.Text(x+2, y, theme.Dim, e.text) + 2
	}
}

// changes is a line for each of the latest.
func (p *Poster) changes(v *report.Service) []line {
	paths := v.Paths
	var out []line
	if len(paths) > 0 {
		out = append(out, nothing)
	}
	if n := len(paths) - posterChanges; n > 0 {
		out = append(out, text(1, theme.Dim, fmt.Sprintf("the latest %d of %d changes", posterChanges, len(paths))))
		paths = paths[n:]
	}
	for i := range paths {
		x := &paths[i]
		out = append(out, func(s *draw.Screen, y int) { p.change(s, y, x) })
	}
	return out
}

func (p *Poster) change(s *draw.Screen, y int, x *report.Path) {
	w := s.Width()
	took, role := x.Status, theme.Warn
	if x.EndMS != nil {
		took, role = report.Dur(*x.EndMS), theme.Text
		if x.AtMost() {
			took = "≤" + took
		}
		took += " ±" + report.Dur(x.ErrorMS())
		if x.Status != string(timeline.StatusArrived) {
			took, role = took+", "+x.Status, theme.Dim
		}
	}
	if x.Rules != nil {
		if n := len(x.Rules.Missing); n > 0 {
			took, role = fmt.Sprintf("not yet on %d of %d nodes", n, x.Rules.N), theme.Bad
		}
	}
	cause := lanes.CauseText(timeline.Cause(x.Cause))
	if x.By != "" {
		cause += " by " + x.By
	}
	s.Text(1, y, theme.Dim, p.moment(x.Origin.At))
	end := s.Right(w-1, y, role, took) - 1
	name := min(w*3/10, end-15)
	s.NameIn(15, y, name, theme.Text, report.PathName(x))
	s.TextIn(16+name, y, end-16-name, theme.Dim, cause)
}

func (p *Poster) findings() []line {
	list := p.Report.Findings
	if len(list) == 0 {
		return nil
	}
	out := []line{nothing, func(s *draw.Screen, y int) { s.Rule(0, y, s.Width(), lanes.Plural(len(list), "finding"), "") }}
	for i := range list[:min(len(list), posterFindings)] {
		f := &list[i]
		role := map[string]theme.Role{"error": theme.Bad, "warning": theme.Warn}[f.Severity]
		for k, part := range report.Wrap(draw.Clean(f.Object+": "+f.Message), p.Width-18) {
			out = append(out, func(s *draw.Screen, y int) {
				if k == 0 {
					s.Text(1, y, role, f.Severity)
					s.Text(9, y, theme.Dim, f.Code)
				}
				s.TextIn(16, y, s.Width()-17, theme.Text, part)
			})
		}
	}
	if n := len(list) - posterFindings; n > 0 {
		out = append(out, text(1, theme.Dim, fmt.Sprintf("and %d more", n)))
	}
	return out
}

func (p *Poster) gaps() []line {
	list := p.Report.Gaps
	if len(list) == 0 {
		return nil
	}
	out := []line{nothing, func(s *draw.Screen, y int) { s.Rule(0, y, s.Width(), lanes.Plural(len(list), "gap"), "") }}
	for _, g := range list[:min(len(list), posterGaps)] {
		to := "still open"
		if g.To != nil {
			to = "to " + p.moment(*g.To)
		}
		out = append(out, text(1, theme.Warn, g.Source+" from "+p.moment(g.From)+" "+to+": "+g.Why))
	}
	if n := len(list) - posterGaps; n > 0 {
		out = append(out, text(1, theme.Dim, fmt.Sprintf("and %d more", n)))
	}
	return out
}
