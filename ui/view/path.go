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
	log  bool // the axes are logarithmic
}

// NewPath makes the view.
func NewPath() *PathView { return &PathView{} }

// Title implements View.
func (*PathView) Title() string { return "Path" }

// Offers implements View.
func (*PathView) Offers() []Action {
	return []Action{PrevChange, NextChange, Up, LogScale, Open, Copy, Back, Help, Palette}
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
	if rank := w.Rank(); rank != "" && r.Dy() >= 24 {
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

// columns of the table of hops.
type hopColumns struct {
	label, took, share, usual, bars, barsW int
}

func columnsFor(x, w int) hopColumns {
	c := hopColumns{label: x + 1}
	labelW := 22
	if w < 100 {
		labelW = 18
	}
	c.took = x + labelW + 9
	c.share = c.took + 7
	c.usual = c.share
	if w >= 100 {
		c.usual = c.share + 14
	}
	c.bars = c.usual + 3
	c.barsW = x + w - c.bars - 1
	return c
}

// drawHops paints the waterfall and returns the next line.
func (v *PathView) drawHops(s *draw.Screen, r draw.Rect, c *Context, w *lanes.Waterfall) int {
	col := columnsFor(r.Min.X, r.Dx())
	y := r.Min.Y
	scale := newRuler(w.Total, col.barsW, v.log)
	s.Repeat(r.Min.X, y, r.Dx(), theme.Line, s.Glyphs.H)
	y++
	s.Text(col.label, y, theme.Dim, "hop")
	s.Right(col.took, y, theme.Dim, "took")
	s.Right(col.share, y, theme.Dim, "share")
	if col.usual > col.share {
		s.Right(col.usual, y, theme.Dim, "usual p50")
	}
	s.Repeat(r.Min.X, y+1, r.Dx(), theme.Line, s.Glyphs.H)
	s.Glyph(col.bars-1, y+1, theme.Line, s.Glyphs.TickMajor)
	for _, t := range scale.ticks {
		s.Text(col.bars-1+t.col, y, theme.Dim, t.label)
		s.Glyph(col.bars-1+t.col, y+1, theme.Line, s.Glyphs.TickMajor)
	}
	if n := len(scale.ticks); n > 0 && scale.ticks[n-1].col+len(scale.ticks[n-1].label)+len(scale.name())+1 < col.barsW {
		s.Right(col.bars-1+col.barsW, y, theme.Dim, scale.name())
	}
	y += 2
	v.n = len(w.Bars)
	v.h = max(1, min(v.n, r.Max.Y-y))
	v.hops.fit(v.n, v.h)
	for i := 0; i < v.h; i++ {
		v.drawHop(s, y, col, scale, c, w, v.hops.first+i)
		y++
	}
	return y
}

func (v *PathView) drawHop(s *draw.Screen, y int, col hopColumns, scale ruler, c *Context, w *lanes.Waterfall, i int) {
	b := w.Bars[i]
	label := b.Label
	switch {
	case b.Depth == 2:
		label = "   " + label
	case b.Kind == lanes.BarAfter:
		label = "  " + label
	case b.Depth == 1:
		label = "│  " + label
	case i > 0 && lastOnWay(w.Bars, i):
		label = "└ " + label
	case i > 0:
		label = "├ " + label
	}
	role := theme.Text
	if b.Depth > 0 {
		role = theme.Dim
	}
	if i == v.hops.at {
		role = theme.Accent
		s.Glyph(col.label-1, y, theme.Accent, s.Glyphs.Chosen)
	}
	if b.Depth == 2 {
		s.NameIn(col.label, y, col.took-col.label-9, role, label)
	} else {
		s.TextIn(col.label, y, col.took-col.label-9, role, label)
	}
	took := lanes.Duration(b.Took)
	if b.Kind == lanes.BarPoint || b.Kind == lanes.BarClaimed {
		took = ""
	}
	switch {
	case b.Kind == lanes.BarOpen:
		took = ">" + took
	case b.AtMost:
		took = "≤" + took
	}
	s.Right(col.took, y, theme.Strong, took)
	if b.Share >= 0 && b.Kind != lanes.BarPoint {
		s.Right(col.share, y, theme.Text, fmt.Sprintf("%d %%", b.Share))
	}
	if col.usual > col.share && b.UsualN >= 2 {
		s.Right(col.usual, y, theme.Dim, lanes.Duration(b.Usual))
	}
	drawBar(s, y, col, scale, c, w, b)
}

func lastOnWay(bars []lanes.Bar, i int) bool {
	for _, b := range bars[i+1:] {
		if b.Depth == 0 {
			return false
		}
	}
	return true
}

func drawBar(s *draw.Screen, y int, col hopColumns, scale ruler, c *Context, w *lanes.Waterfall, b lanes.Bar) {
	g := s.Glyphs
	if b.Kind == lanes.BarClaimed {
		s.TextIn(col.bars-1, y, col.barsW, theme.Dim, b.Note)
		return
	}
	// How the pod ended lies beyond the scale, which is that of the change.
	x0 := min(scale.col(b.From.Sub(w.From)), col.barsW-1)
	x1 := scale.col(b.To.Sub(w.From))
	glyph, role := g.Work, theme.Good
	switch b.Kind {
	case lanes.BarPoint, lanes.BarUnknown:
		glyph, role = "▏", theme.Dim
	case lanes.BarProbe:
		glyph, role = g.Wait, theme.Warn
	case lanes.BarNode:
		glyph, role = g.Work, theme.Good
		if b.Depth == 0 {
			glyph, role = g.Span, theme.Dim
		}
	case lanes.BarSlowest:
		glyph, role = g.Bar, theme.Warn
	case lanes.BarOpen:
		glyph, role = g.Behind, theme.Warn
	case lanes.BarAfter:
		glyph, role = g.Span, theme.Dim
	}
	if g.Name == "ascii" && glyph == "▏" {
		glyph = "|"
	}
	n := max(1, x1-x0)
	n = min(n, col.barsW-x0)
	s.Repeat(col.bars-1+x0, y, n, role, glyph)
	if b.Kind == lanes.BarOpen {
		s.Glyph(col.bars-1+x0+n-1, y, role, g.SpanOpen)
	}
	note := b.Note
	if (b.Kind == lanes.BarPoint || b.Kind == lanes.BarAfter) && note == "" {
		note = b.To.In(c.Loc).Format("15:04:05.000")
	}
	if note == "" {
		return
	}
	noteRole := theme.Dim
	if strings.HasSuffix(note, "!") {
		noteRole = theme.Warn
	}
	end := col.bars - 1 + col.barsW
	at := col.bars - 1 + x0 + n + 1
	need := draw.Width(draw.Clean(note))
	switch {
	case at+need <= end:
		s.Text(at, y, noteRole, note)
	case x0 > need+2:
		s.Right(col.bars-1+x0-1, y, noteRole, note)
	}
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
