package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// PathView shows one change as a waterfall of its hops.
type PathView struct {
	hops list
	h    int
	n    int
	log  bool  // the axes are logarithmic
	kept Focus // the change beside which others are shown, if one is kept
}

// NewPath makes the view.
func NewPath() *PathView { return &PathView{} }

// Title implements View.
func (*PathView) Title() string { return "Path" }

// Offers implements View.
func (*PathView) Offers() []Action {
	return []Action{PrevChange, NextChange, Up, LogScale, Compare, Open, Copy, Back, Help, Palette}
}

// Every implements Mover: an open path grows.
func (v *PathView) Every(c *Context) time.Duration {
	if _, _, p := v.current(c); p != nil && p.Status == timeline.StatusOpen {
		return 500 * time.Millisecond
	}
	return 0
}

// current is the path in focus, or the last one that moved an endpoint.
func (v *PathView) current(c *Context) (svc *timeline.Service, at int, p *timeline.Path) {
	svc = c.Service()
	if svc == nil || len(svc.Paths) == 0 {
		return svc, 0, nil
	}
	for i, x := range svc.Paths {
		if x.ID == c.Focus.Path {
			return svc, i, x
		}
	}
	for i := len(svc.Paths) - 1; i >= 0; i-- {
		if svc.Paths[i].Op != timeline.OpChange {
			return svc, i, svc.Paths[i]
		}
	}
	i := len(svc.Paths) - 1
	return svc, i, svc.Paths[i]
}

// Draw implements View.
func (v *PathView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	svc, at, p := v.current(c)
	if svc == nil {
		drawWaiting(s, r, c)
		return
	}
	if p == nil {
		s.TextIn(r.Min.X+2, r.Min.Y+2, r.Dx()-4, theme.Dim, "nothing has changed yet: the first change of "+key(svc)+" will be shown here")
		return
	}
	w := lanes.NewWaterfallOf(c.Snap, svc, p, c.Now)
	y := v.drawHead(s, r, c, w, fmt.Sprintf("change %d of %d", at+1, len(svc.Paths)))
	legend := r.Max.Y - 1
	y = v.drawHops(s, draw.Box(r.Min.X, y, r.Dx(), legend-y), c, w)
	switch {
	case legend-y < 4 && legend-y >= 1:
		v.drawOneSpread(s, draw.Box(r.Min.X, legend-1, r.Dx(), 1), w)
	case legend-y >= 4:
		v.drawBelow(s, draw.Box(r.Min.X, y, r.Dx(), legend-y), c, svc, w)
	}
	v.drawLegend(s, r.Min.X, legend, r.Dx(), w)
}

// drawHead paints who changed and where the time went, and returns the next
// line.
func (v *PathView) drawHead(s *draw.Screen, r draw.Rect, c *Context, w *lanes.Waterfall, nth string) int {
	p, x, y := w.Path, r.Min.X+1, r.Min.Y
	s.Rule(r.Min.X, y, r.Dx(), "", nth)
	role := theme.Good
	if p.Op == timeline.OpRemove {
		role = theme.Warn
	}
	name := " " + lanes.PathName(p) + " "
	s.NameIn(r.Min.X+2, y, r.Dx()-draw.Width(nth)-12, role, name)
	y++
	who := lanes.EndpointText(p.Endpoint)
	if p.Endpoint.Node != "" {
		who += " on " + p.Endpoint.Node
	}
	facts := []string{who, "cause: " + lanes.CauseText(p.Cause)}
	if p.By != "" {
		facts = append(facts, "by "+p.By)
	}
	facts = append(facts, "origin "+p.Origin.At.In(c.Loc).Format("15:04:05.000"))
	if p.Status != timeline.StatusArrived {
		facts = append(facts, string(p.Status))
	}
	s.TextIn(x, y, r.Dx()-2, theme.Dim, strings.Join(facts, "   "))
	y++
	sentences := w.Sentences()
	if q := v.beside(c, p); q != nil {
		sentences = append(sentences, w.AgainstText(q, c.Loc))
	} else if rank := w.Rank(); rank != "" && r.Dy() >= 24 {
		sentences = append(sentences, rank)
	}
	for i, t := range sentences {
		if r.Dy() < 16 && i > 0 {
			break
		}
		role := theme.Text
		if i == 0 {
			role = theme.Strong
		}
		for _, l := range Wrap(t, r.Dx()-2) {
			s.TextIn(x, y, r.Dx()-2, role, l)
			y++
		}
	}
	return y
}

// Wrap breaks a sentence into lines of w columns.
func Wrap(t string, w int) []string {
	var lines []string
	for draw.Width(t) > w {
		cut := strings.LastIndexByte(t[:min(len(t), w)], ' ')
		if cut <= 0 {
			break
		}
		lines = append(lines, strings.TrimRight(t[:cut], " "))
		t = strings.TrimLeft(t[cut:], " ")
	}
	return append(lines, t)
}

func (v *PathView) drawLegend(s *draw.Screen, x, y, w int, wf *lanes.Waterfall) {
	g := s.Glyphs
	right := "times as received"
	if e := maxError(wf.Path); e > 0 {
		right += ", " + lanes.ErrorBound(e)
	}
	end := s.Right(x+w-1, y, theme.Dim, right) - 2
	x++
	for _, e := range []struct {
		role        theme.Role
		glyph, text string
	}{{theme.Good, g.Work, "working"}, {theme.Warn, g.Wait, "waiting for a probe"}, {theme.Warn, g.Behind, "not arrived"}, {theme.Warn, g.Bar, "slowest part"}} {
		if x+len(e.text)+2 > end {
			break
		}
		s.Glyph(x, y, e.role, e.glyph)
		x = s.Text(x+2, y, theme.Dim, e.text) + 2
	}
}

func maxError(p *timeline.Path) time.Duration {
	var e time.Duration
	for _, h := range p.Rules {
		e = max(e, h.Error)
	}
	if p.Slice != nil {
		e = max(e, p.Slice.Error)
	}
	return e
}

// Do implements View.
func (v *PathView) Do(a Action, c *Context) Request {
	svc, at, p := v.current(c)
	if p == nil {
		return Request{}
	}
	if v.hops.do(a, v.n, v.h) {
		return handled
	}
	switch a {
	case NextChange, Right:
		if at+1 >= len(svc.Paths) {
			return Request{Handled: true, Say: "that is the last change"}
		}
		c.Focus.Path = svc.Paths[at+1].ID
		return handled
	case PrevChange, Left:
		if at == 0 {
			return Request{Handled: true, Say: "that is the first change"}
		}
		c.Focus.Path = svc.Paths[at-1].ID
		return handled
	case Open:
		c.Focus.Path = p.ID
		return Request{Handled: true, Show: Timeline}
	case Compare:
		return v.keep(c, svc, p)
	case LogScale:
		v.log = !v.log
		return Request{Handled: true, Say: "the axes are " + map[bool]string{false: "linear", true: "logarithmic"}[v.log]}
	case Copy:
		return Request{Handled: true, Copy: v.text(c, svc, p), Say: "copied the path"}
	}
	return Request{}
}

// Moment is when the chosen hop ended, for showing it on the timeline.
func (v *PathView) Moment(c *Context) (time.Time, bool) {
	svc, _, p := v.current(c)
	if p == nil {
		return time.Time{}, false
	}
	w := lanes.NewWaterfallOf(c.Snap, svc, p, c.Now)
	if v.hops.at < len(w.Bars) && v.hops.at > 0 {
		return w.Bars[v.hops.at].To, true
	}
	return p.Origin.At, true
}

// text is the path as plain text.
func (v *PathView) text(c *Context, svc *timeline.Service, p *timeline.Path) string {
	w := lanes.NewWaterfallOf(c.Snap, svc, p, c.Now)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s, cause: %s, origin %s\n", key(svc), lanes.PathName(p), lanes.EndpointText(p.Endpoint), lanes.CauseText(p.Cause), p.Origin.At.Format(time.RFC3339Nano))
	b.WriteString(strings.TrimSpace(strings.Join(w.Sentences(), " ")+" "+w.Rank()) + "\n")
	for _, bar := range w.Bars {
		took := lanes.Duration(bar.Took)
		switch {
		case bar.Kind == lanes.BarClaimed:
			took = ""
		case bar.AtMost:
			took = "≤" + took
		}
		fmt.Fprintf(&b, "%s%-20s %10s  %s\n", strings.Repeat("  ", bar.Depth), bar.Label, took, bar.Note)
	}
	return b.String()
}
