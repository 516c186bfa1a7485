package view

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// ServicesView lists the Services: what is not converged first.
type ServicesView struct {
	filtered
	chosen string // namespace/name, so that it stays chosen while the order moves

	// What services found, and for which snapshot and filter.
	found    []*timeline.Service
	foundIn  *timeline.Snapshot
	foundFor string
	foundOf  *Found

	// All of the snapshot's, in order, and their keys once there is a filter.
	sorted   []*timeline.Service
	sortedIn *timeline.Snapshot
	sortedOf *Found
	keys     []string
}

// NewServices makes the view.
func NewServices() *ServicesView { return &ServicesView{} }

// Title implements View.
func (*ServicesView) Title() string { return "Services" }

// Offers implements View.
func (*ServicesView) Offers() []Action {
	return []Action{Up, Open, Filter, Scale, Restart, Copy, Help, Palette}
}

func key(svc *timeline.Service) string { return svc.Namespace + "/" + svc.Name }

// services are those that the filter leaves, stalled and converging ones first, then
// those with findings.
// They are looked for anew only in another snapshot or for another filter.
func (v *ServicesView) services(c *Context) []*timeline.Service {
	if c.Snap == nil {
		return nil
	}
	if c.Snap != v.foundIn || v.filter != v.foundFor || c.Found != v.foundOf {
		v.found, v.foundIn, v.foundFor, v.foundOf = v.search(c), c.Snap, v.filter, c.Found
	}
	return v.found
}

func (v *ServicesView) search(c *Context) []*timeline.Service {
	if c.Snap != v.sortedIn || c.Found != v.sortedOf {
		v.sorted, v.sortedIn, v.sortedOf, v.keys = byUrgency(c.Snap.Services, c.Found), c.Snap, c.Found, nil
	}
	if v.filter == "" {
		return v.sorted
	}
	if v.keys == nil {
		v.keys = keysOf(v.sorted)
	}
	return pickServices(v.filter, v.sorted, v.keys)
}

// urgencies is how many values urgency has.
const urgencies = 2 * 3 * 3

// urgency is less for what comes earlier: what is not converged, then what has
// findings; what is deleted comes last.
func urgency(svc *timeline.Service, found *Found) int {
	u := 2
	switch svc.State {
	case timeline.Stalled:
		u = 0
	case timeline.Converging, timeline.Unknown:
		u = 1
	}
	if !svc.Deleted.IsZero() {
		u += 3
	}
	switch f := found.Of(svc.Namespace, svc.Name); {
	case f.Errors > 0:
		return 3 * u
	case f.Warnings > 0:
		return 3*u + 1
	}
	return 3*u + 2
}

// byUrgency orders Services and leaves those that are alike as they were. It counts:
// to sort ten thousand of which nearly all are alike costs more.
func byUrgency(services []*timeline.Service, found *Found) []*timeline.Service {
	var next [urgencies + 1]int // where each urgency goes on
	of := make([]uint8, len(services))
	for i, svc := range services {
		u := urgency(svc, found)
		of[i] = uint8(u)
		next[u+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	out := make([]*timeline.Service, len(services))
	for i, svc := range services {
		out[next[of[i]]] = svc
		next[of[i]]++
	}
	return out
}

// Draw implements View.
func (v *ServicesView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	list := v.services(c)
	title := "Services"
	if c.Snap != nil {
		title = fmt.Sprintf("%d of %d Services", len(list), len(c.Snap.Services))
		if len(list) == len(c.Snap.Services) {
			title = lanes.Plural(len(list), "Service")
		}
	}
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), title, "what moves first")
	y := r.Min.Y + 1
	if v.editing || v.filter != "" {
		x := s.Text(r.Min.X+1, y, theme.Accent, "/ ")
		x = s.TextIn(x, y, r.Dx()-24, theme.Strong, v.filter)
		if v.editing {
			s.Glyph(x, y, theme.Accent, s.Glyphs.Caret)
		}
		s.Right(r.Max.X-1, y, theme.Dim, "words, !without, NAMESPACE/, state:")
		y++
	}
	if c.Snap == nil || len(c.Snap.Services) == 0 {
		drawWaiting(s, draw.Box(r.Min.X, y, r.Dx(), r.Max.Y-y), c)
		return
	}
	if len(list) == 0 {
		s.TextIn(r.Min.X+3, y+1, r.Dx()-4, theme.Dim, "no Service matches; "+c.Keys(Back)+" clears the filter")
		return
	}
	w := r.Dx()
	nameW := max(16, min(44, w/3))
	stateX, nX := r.Min.X+3+nameW+2, r.Min.X+3+nameW+2+20
	s.Text(r.Min.X+3, y, theme.Dim, "Service")
	s.Text(stateX, y, theme.Dim, "state")
	cols := []string{"wanted", "slices", "nodes", "found"}
	for i, h := range cols {
		if nX+8*(i+1) < r.Max.X {
			s.Right(nX+8*(i+1)-1, y, theme.Dim, h)
		}
	}
	waitX := nX + 8*len(cols) + 2
	if waitX+10 < r.Max.X {
		s.Text(waitX, y, theme.Dim, "waiting for")
	}
	y++
	v.h, v.top = max(1, r.Max.Y-y), y
	ns, name, _ := strings.Cut(v.chosen, "/")
	for i, svc := range list {
		if svc.Name == name && svc.Namespace == ns {
			v.l.at = i
		}
	}
	v.l.fit(len(list), v.h)
	v.chosen = key(list[v.l.at])
	for i := 0; i < v.h && v.l.first+i < len(list); i++ {
		v.drawRow(s, draw.Box(r.Min.X, y+i, w, 1), c, list[v.l.first+i], v.l.first+i == v.l.at, nameW, stateX, nX, waitX)
	}
}

func (v *ServicesView) drawRow(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, chosen bool, nameW, stateX, nX, waitX int) {
	y := r.Min.Y
	role := theme.Text
	if chosen {
		role = theme.Accent
		s.Glyph(r.Min.X+1, y, theme.Accent, s.Glyphs.Chosen)
	}
	s.NameIn(r.Min.X+3, y, nameW, role, key(svc))
	mark, markRole := stateMark(svc, c.Now, s.Glyphs)
	if svc.State == timeline.Converged && !svc.Coverage.Complete() {
		mark = "? not all seen"
	}
	s.TextIn(stateX, y, min(19, r.Max.X-stateX-1), markRole, mark)
	want := "–"
	if n := len(svc.Wanted); n > 0 {
		want = fmt.Sprint(svc.Wanted[n-1].N)
	}
	have := "–"
	if svc.Slices != nil && len(svc.Slices.Changes) > 0 {
		have = fmt.Sprint(svc.Slices.Changes[len(svc.Slices.Changes)-1].Have)
	}
	nodes := fmt.Sprintf("%d/%d", svc.Rules.Agreeing(), len(svc.Coverage.Expected))
	if !svc.RoutedByProxy {
		nodes = "none"
	}
	found, foundRole := tallyText(c.Found.Of(svc.Namespace, svc.Name))
	for i, t := range []string{want, have, nodes, found} {
		role := theme.Text
		if i == 3 {
			role = foundRole
		}
		if nX+8*(i+1) < r.Max.X {
			s.Right(nX+8*(i+1)-1, y, role, t)
		}
	}
	if waitX+10 < r.Max.X {
		room := r.Max.X - waitX - 1
		if risky(svc) {
			room -= len("! risk  ")
		}
		wait, waitRole := "", theme.Warn
		for _, w := range waiting(svc) {
			if wait = strings.TrimPrefix(w, "waiting for "); draw.Width(s.Clean(wait)) <= room {
				break
			}
		}
		if wait == "" && !svc.RoutedByProxy {
			wait, waitRole = svc.WhyNot, theme.Dim
		}
		if risky(svc) {
			wait = "! risk  " + wait
			waitRole = theme.Bad
		}
		s.TextIn(waitX, y, r.Max.X-waitX-1, waitRole, wait)
	}
}

// Do implements View.
func (v *ServicesView) Do(a Action, c *Context) Request {
	list := v.services(c)
	if r, ok := v.doFilter(a); ok {
		return r
	}
	if len(list) == 0 {
		return Request{}
	}
	v.l.fit(len(list), v.h)
	switch a {
	case Open:
		v.focus(c, list[v.l.at])
		return Request{Handled: true, Show: Timeline}
	case Copy:
		return Request{Handled: true, Copy: key(list[v.l.at]), Say: "copied " + key(list[v.l.at])}
	case Scale, Restart:
		v.focus(c, list[v.l.at])
		return Request{}
	}
	if v.l.do(a, len(list), v.h) {
		v.chosen = key(list[v.l.at])
		return handled
	}
	return Request{}
}

func (v *ServicesView) focus(c *Context, svc *timeline.Service) {
	if c.Focus.Namespace != svc.Namespace || c.Focus.Service != svc.Name {
		*c.Focus = Focus{Namespace: svc.Namespace, Service: svc.Name}
	}
}

// SetText implements Typer.
func (v *ServicesView) SetText(s string, c *Context) {
	v.filtered.SetText(s, c)
	v.chosen = ""
}

// Click implements Clicker.
func (v *ServicesView) Click(_, y int, c *Context) Request {
	list := v.services(c)
	again, ok := v.click(y, len(list))
	if !ok {
		return Request{}
	}
	v.chosen = key(list[v.l.at])
	if again {
		return v.Do(Open, c)
	}
	return handled
}

// tallyText is how many findings a Service's row tells of: the errors, else the
// warnings.
func tallyText(t Tally) (string, theme.Role) {
	switch {
	case t.Errors > 0:
		return fmt.Sprintf("%d err", t.Errors), theme.Bad
	case t.Warnings > 0:
		return fmt.Sprintf("%d warn", t.Warnings), theme.Warn
	}
	return "", theme.Dim
}
