package view

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// NodesView has a row for each node: beside it a column for each Service or, as a
// matrix, for each endpoint of the Service in focus.
type NodesView struct {
	l      list
	h, top int

	endpoints bool
	matrix    matrix
}

// NewNodes makes the view.
func NewNodes() *NodesView { return &NodesView{} }

// proxyWidth is what a kube-proxy's account of itself takes.
const proxyWidth = 160

// Title implements View.
func (*NodesView) Title() string { return "Nodes" }

// Offers implements View.
func (v *NodesView) Offers() []Action {
	if v.endpoints {
		return []Action{Up, Right, NextDiffer, Open, Matrix, SortRows, Copy, Help, Palette}
	}
	return []Action{Up, Matrix, Copy, Help, Palette}
}

// Draw implements View.
func (v *NodesView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	if c.Snap == nil || len(c.Snap.Nodes) == 0 {
		drawWaiting(s, r, c)
		return
	}
	if v.endpoints {
		v.matrix.draw(s, r, c)
		return
	}
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), lanes.Plural(len(c.Snap.Nodes), "node"), "= agrees  + routes too much  "+lanes.Minus+" too little")
	x, y := r.Min.X, r.Min.Y+1
	nameW := max(12, min(30, r.Dx()/4))
	rulesX := x + 3 + nameW + 1
	genX, vouchX := rulesX+20, rulesX+32
	s.Text(x+3, y, theme.Dim, "node")
	s.Text(rulesX, y, theme.Dim, "rules")
	s.Right(genX, y, theme.Dim, "generation")
	s.Right(vouchX, y, theme.Dim, "vouched")
	svcX := vouchX + 3
	var shown []*timeline.Service
	for _, svc := range c.Snap.Services {
		if svc.RoutedByProxy && svc.Deleted.IsZero() {
			shown = append(shown, svc)
		}
	}
	const colW = 14
	fit := max(0, (r.Max.X-svcX)/colW)
	more := 0
	if len(shown) > fit {
		more = len(shown) - fit
		// The Service in focus is always among them.
		for i, svc := range shown {
			if i >= fit && fit > 0 && svc.Name == c.Focus.Service && svc.Namespace == c.Focus.Namespace {
				shown[fit-1] = svc
			}
		}
		shown = shown[:fit]
	}
	for i, svc := range shown {
		role := theme.Dim
		if svc.Name == c.Focus.Service && svc.Namespace == c.Focus.Namespace {
			role = theme.Accent
		}
		s.NameIn(svcX+i*colW, y, colW-2, role, svc.Name)
	}
	y++
	// As many lines below for every node, so that the list stands still.
	below := 1
	if slices.ContainsFunc(c.Snap.Nodes, func(n timeline.Node) bool { return n.Proxy != nil }) {
		if below++; r.Dx() < proxyWidth {
			below++
		}
	}
	if slices.ContainsFunc(c.Snap.Nodes, func(n timeline.Node) bool { return n.Agent != nil }) {
		below++
	}
	v.top, v.h = y, max(1, r.Max.Y-y-below)
	if c.Focus.Node != "" {
		for i := range c.Snap.Nodes {
			if c.Snap.Nodes[i].Name == c.Focus.Node {
				v.l.at = i
			}
		}
		c.Focus.Node = ""
	}
	v.l.fit(len(c.Snap.Nodes), v.h)
	var detail []string
	for _, t := range nodeDetail(&c.Snap.Nodes[v.l.at], c.Now) {
		if len(detail) > 0 && r.Dx() < proxyWidth {
			detail = append(detail, Wrap(t, r.Dx()-2)...)
		} else {
			detail = append(detail, t)
		}
	}
	detail = detail[:min(len(detail), below)]
	for i := 0; i < v.h && v.l.first+i < len(c.Snap.Nodes); i++ {
		n := &c.Snap.Nodes[v.l.first+i]
		role := theme.Text
		if v.l.first+i == v.l.at {
			role = theme.Accent
			s.Glyph(x+1, y, theme.Accent, s.Glyphs.Chosen)
		}
		s.NameIn(x+3, y, nameW, role, n.Name)
		text, rulesRole := nodeState(n)
		s.TextIn(rulesX, y, 10, rulesRole, text)
		if n.Generation > 0 {
			s.Right(genX, y, theme.Text, strconv.FormatUint(uint64(n.Generation), 10))
		}
		if !n.Vouched.IsZero() {
			s.Right(vouchX, y, theme.Dim, lanes.Duration(max(0, c.Now.Sub(n.Vouched))))
		}
		for k, svc := range shown {
			p := svc.Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: n.Name})
			t, cellRole := nodeCell(p)
			s.TextIn(svcX+k*colW, y, colW-2, cellRole, t)
		}
		y++
	}
	for i, t := range detail {
		w := r.Dx() - 2
		if i == 0 && more > 0 {
			w -= 22
		}
		s.TextIn(x+1, r.Max.Y-len(detail)+i, w, theme.Dim, t)
	}
	if more > 0 {
		s.Right(r.Max.X-1, r.Max.Y-len(detail), theme.Dim, fmt.Sprintf("%d more Services", more))
	}
}

func nodeState(n *timeline.Node) (string, theme.Role) {
	switch {
	case !n.Exists:
		return "gone", theme.Dim
	case n.Rules == timeline.InGap:
		return "gap ?", theme.Warn
	case n.Rules != timeline.Known:
		return "blind ?", theme.Warn
	case !n.Ready:
		return "not ready", theme.Warn
	}
	return "seen", theme.Good
}

func nodeCell(p *timeline.Plane) (string, theme.Role) {
	if p == nil || len(p.Changes) == 0 {
		return "·", theme.Dim
	}
	ch := p.Changes[len(p.Changes)-1]
	switch {
	case ch.Knowledge != timeline.Known:
		return "?", theme.Dim
	case ch.Agrees():
		return strconv.Itoa(ch.Have) + " =", theme.Good
	}
	t := strconv.Itoa(ch.Have)
	if n := ch.Stale + ch.Unexpected; n > 0 {
		t += fmt.Sprintf(" +%d", n)
	}
	if ch.Missing > 0 {
		t += fmt.Sprintf(" %s%d", lanes.Minus, ch.Missing)
	}
	if ch.Changed > 0 {
		t += fmt.Sprintf(" ~%d", ch.Changed)
	}
	if ch.Stopped > 0 || ch.Unexpected > 0 {
		return t + " !", theme.Bad
	}
	return t, theme.Warn
}

// Do implements View.
func (v *NodesView) Do(a Action, c *Context) Request {
	if c.Snap == nil || len(c.Snap.Nodes) == 0 {
		return Request{}
	}
	if a == Matrix {
		return v.turn(c)
	}
	if v.endpoints {
		if a == Back {
			return v.turn(c)
		}
		return v.matrix.do(a, c)
	}
	if a == Copy {
		n := c.Snap.Nodes[min(v.l.at, len(c.Snap.Nodes)-1)].Name
		return Request{Handled: true, Copy: n, Say: "copied " + n}
	}
	if v.l.do(a, len(c.Snap.Nodes), v.h) {
		return handled
	}
	return Request{}
}

// turn goes from Services to endpoints or back; the chosen node stays chosen.
func (v *NodesView) turn(c *Context) Request {
	nodes := c.Snap.Nodes
	v.l.fit(len(nodes), v.h)
	if v.endpoints = !v.endpoints; v.endpoints {
		if c.Service() == nil {
			v.endpoints = false
			return Request{Handled: true, Say: "choose a Service first: " + c.Keys(Show(Services)) + " lists them"}
		}
		v.matrix.node = nodes[v.l.at].Name
		return handled
	}
	for i := range nodes {
		if nodes[i].Name == v.matrix.node {
			v.l.at = i
		}
	}
	return handled
}

// Click implements Clicker.
func (v *NodesView) Click(x, y int, c *Context) Request {
	if c.Snap == nil || len(c.Snap.Nodes) == 0 {
		return Request{}
	}
	if v.endpoints {
		return v.matrix.click(x, y, c)
	}
	if i := v.l.first + y - v.top; y >= v.top && y < v.top+v.h && i < len(c.Snap.Nodes) {
		v.l.at = i
		return handled
	}
	return Request{}
}
