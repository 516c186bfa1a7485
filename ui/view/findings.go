package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// FindingsView lists what is wrong or risky, the worst first, above what the chosen
// one means and what to do about it.
type FindingsView struct {
	filtered
	chosen string // code and object, so that it stays chosen while the order moves

	// What the filter leaves, and of what.
	kept    []*findings.Finding
	keptOf  *Found
	keptFor string
}

// NewFindings makes the view.
func NewFindings() *FindingsView { return &FindingsView{} }

// Title implements View.
func (*FindingsView) Title() string { return "Findings" }

// Offers implements View.
func (*FindingsView) Offers() []Action { return []Action{Up, Open, Filter, Copy, Help, Palette} }

func (v *FindingsView) list(c *Context) []*findings.Finding {
	if c.Found == nil {
		return nil
	}
	if c.Found != v.keptOf || v.filter != v.keptFor {
		v.kept, v.keptOf, v.keptFor = nil, c.Found, v.filter
		for i := range c.Found.List {
			if f := &c.Found.List[i]; holdsWords(v.filter, strings.Join([]string{string(f.Code.Severity), f.Code.ID, f.Object, f.Message, f.Code.Title}, " ")) {
				v.kept = append(v.kept, f)
			}
		}
	}
	return v.kept
}

// holdsWords reports that a text has each word of a filter, and none of those with "!"
// in front.
func holdsWords(filter, text string) bool {
	text = strings.ToLower(text)
	for _, w := range strings.Fields(strings.ToLower(filter)) {
		word, not := strings.CutPrefix(w, "!")
		if word != "" && strings.Contains(text, word) == not {
			return false
		}
	}
	return true
}

func findingKey(f *findings.Finding) string { return f.Code.ID + " " + f.Object }

// Draw implements View.
func (v *FindingsView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	if c.Snap == nil || c.Found == nil {
		drawWaiting(s, r, c)
		return
	}
	list := v.list(c)
	errors, warnings := findings.Count(c.Found.List)
	title := lanes.Plural(len(c.Found.List), "finding")
	if len(list) != len(c.Found.List) {
		title = fmt.Sprintf("%d of %s", len(list), title)
	}
	if errors+warnings > 0 {
		title += fmt.Sprintf(": %s, %s", lanes.Plural(errors, "error"), lanes.Plural(warnings, "warning"))
	}
	x, y, w := r.Min.X, r.Min.Y, r.Dx()
	s.Rule(x, y, w, title, "the worst first")
	y++
	if v.editing || v.filter != "" {
		e := s.Text(x+1, y, theme.Accent, "/ ")
		e = s.TextIn(e, y, w-24, theme.Strong, v.filter)
		if v.editing {
			s.Glyph(e, y, theme.Accent, s.Glyphs.Caret)
		}
		s.Right(r.Max.X-1, y, theme.Dim, "words, !without")
		y++
	}
	if len(list) == 0 {
		none := "nothing found, as far as can be seen"
		if len(c.Found.List) > 0 {
			none = "no finding matches; " + c.Keys(Back) + " clears the filter"
		}
		s.TextIn(x+3, y+1, w-4, theme.Dim, none)
		return
	}
	for i, f := range list {
		if findingKey(f) == v.chosen {
			v.l.at = i
		}
	}
	v.l.fit(len(list), 1)
	detail := v.detail(list[v.l.at], w, c)
	// The list has what the chosen one leaves, and a third at least.
	v.top = y
	v.h = min(len(list), max((r.Max.Y-y)/3, r.Max.Y-y-len(detail)-1))
	v.l.fit(len(list), v.h)
	v.chosen = findingKey(list[v.l.at])
	for i := 0; i < v.h && v.l.first+i < len(list); i++ {
		v.drawRow(s, draw.Box(x, y+i, w, 1), c, list[v.l.first+i], v.l.first+i == v.l.at)
	}
	y += v.h
	code := list[v.l.at].Code
	if y >= r.Max.Y {
		return
	}
	s.Rule(x, y, w, code.ID+" "+code.Title, string(code.Severity))
	for _, d := range detail {
		if y++; y >= r.Max.Y {
			return
		}
		s.TextIn(x+1+d.indent, y, w-2-d.indent, d.role, d.text)
	}
}

func (v *FindingsView) drawRow(s *draw.Screen, r draw.Rect, c *Context, f *findings.Finding, chosen bool) {
	x, y := r.Min.X, r.Min.Y
	role := theme.Text
	if chosen {
		role = theme.Accent
		s.Glyph(x+1, y, theme.Accent, s.Glyphs.Chosen)
	}
	s.TextIn(x+3, y, 7, severityRole(f.Code.Severity), string(f.Code.Severity))
	s.Text(x+11, y, theme.Dim, f.Code.ID)
	since := ""
	if !f.Since.IsZero() && c.Now.After(f.Since) {
		since = lanes.Age(c.Now.Sub(f.Since))
	}
	s.Right(x+25, y, theme.Dim, since)
	objW := max(20, min(40, (r.Dx()-27)/3))
	s.NameIn(x+27, y, objW, role, f.Object)
	s.TextIn(x+28+objW, y, r.Max.X-(x+28+objW)-1, theme.Text, f.Message)
}

func severityRole(s findings.Severity) theme.Role {
	switch s {
	case findings.Error:
		return theme.Bad
	case findings.Warning:
		return theme.Warn
	}
	return theme.Dim
}

type detailLine struct {
	text   string
	role   theme.Role
	indent int
}

// detail is what stands below the list: the message in full, what to do, and what the
// code means.
func (v *FindingsView) detail(f *findings.Finding, w int, c *Context) (out []detailLine) {
	add := func(role theme.Role, indent int, text string) {
		for _, l := range Wrap(draw.Clean(text), w-2-indent) {
			out = append(out, detailLine{l, role, indent})
		}
	}
	add(theme.Strong, 0, f.Object+": "+f.Message)
	if !f.Since.IsZero() {
		add(theme.Dim, 0, "since "+f.Since.In(c.Loc).Format(time.DateTime))
	}
	add(theme.Accent, 0, "to do: "+f.Fix)
	add(theme.Text, 0, "")
	add(theme.Text, 0, f.Code.Means)
	add(theme.Dim, 0, "recognised by: "+f.Code.Seen)
	add(theme.Dim, 0, "in general: "+f.Code.Do)
	return out
}

// Do implements View.
func (v *FindingsView) Do(a Action, c *Context) Request {
	list := v.list(c)
	if r, ok := v.doFilter(a); ok {
		return r
	}
	if len(list) == 0 {
		return Request{}
	}
	v.l.fit(len(list), max(1, v.h))
	f := list[v.l.at]
	switch a {
	case Open:
		return v.open(f, c)
	case Copy:
		return Request{Handled: true, Copy: draw.Clean(f.Code.ID + " " + f.Object + ": " + f.Message + "\n" + f.Fix), Say: "copied the finding and what to do"}
	}
	if v.l.do(a, len(list), max(1, v.h)) {
		v.chosen = findingKey(list[v.l.at])
		return handled
	}
	return Request{}
}

// open shows what a finding is about: the change, the node, the Service, or else the
// sources.
func (v *FindingsView) open(f *findings.Finding, c *Context) Request {
	if f.Service != "" && (c.Focus.Namespace != f.Namespace || c.Focus.Service != f.Service) {
		*c.Focus = Focus{Namespace: f.Namespace, Service: f.Service}
	}
	switch {
	case f.Path != "" && f.Service != "":
		c.Focus.Path = f.Path
		return Request{Handled: true, Show: Path}
	case f.Node != "" && strings.HasPrefix(f.Object, "Node"):
		c.Focus.Node = f.Node
		return Request{Handled: true, Show: Nodes}
	case f.Service != "":
		return Request{Handled: true, Show: Timeline}
	}
	return Request{Handled: true, Show: Events}
}

// SetText implements Typer.
func (v *FindingsView) SetText(s string, c *Context) {
	v.filtered.SetText(s, c)
	v.chosen = ""
}

// Click implements Clicker.
func (v *FindingsView) Click(_, y int, c *Context) Request {
	list := v.list(c)
	again, ok := v.click(y, len(list))
	if !ok {
		return Request{}
	}
	v.chosen = findingKey(list[v.l.at])
	if again {
		return v.Do(Open, c)
	}
	return handled
}
