package view

import (
	"fmt"
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// EventsView lists what happened, newest first, above the state of every source.
type EventsView struct {
	filtered
	n      int
	log    eventLog
	kept   []eventLine // what the filter leaves of the log
	keptOf string      // the filter that it was
}

// NewEvents makes the view.
func NewEvents() *EventsView { return &EventsView{} }

// Title implements View.
func (*EventsView) Title() string { return "Events" }

// Offers implements View.
func (*EventsView) Offers() []Action { return []Action{Up, Filter, Open, Copy, Help, Palette} }

// lines are the events that the filter leaves, newest first. They are made anew
// only for another snapshot or another filter.
func (v *EventsView) lines(c *Context) []eventLine {
	if c.Snap == nil {
		return nil
	}
	if fresh := v.log.read(c.Snap); fresh || v.filter != v.keptOf {
		v.kept, v.keptOf = v.log.holding(v.filter), v.filter
	}
	return v.kept
}

// newestShown is how many of the newest marks of a list are looked at.
const newestShown = 2000

// newest are the last marks of a list that is sorted by time.
func newest(marks []timeline.Mark) []timeline.Mark {
	return marks[max(0, len(marks)-newestShown):]
}

// Draw implements View.
func (v *EventsView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	if c.Snap == nil {
		drawWaiting(s, r, c)
		return
	}
	if c.Hint != "" && r.Dy() >= 12 {
		r.Max.Y--
		drawHint(s, r.Min.X, r.Max.Y, r.Dx(), c)
	}
	lines := v.lines(c)
	x, y, w := r.Min.X, r.Min.Y, r.Dx()
	right := "newest first"
	if v.log.left > 0 {
		right += fmt.Sprintf(", older ones left out: %d", v.log.left)
	}
	s.Rule(x, y, w, lanes.Plural(len(lines), "event"), right)
	y++
	if v.editing || v.filter != "" {
		e := s.TextIn(x+3, y, w-4, theme.Strong, v.filter)
		s.Text(x+1, y, theme.Accent, "/ ")
		if v.editing {
			s.Glyph(e, y, theme.Accent, s.Glyphs.Caret)
		}
		y++
	}
	srcH := min(len(c.Snap.Sources)+1, (r.Dy()-2)/2)
	v.n, v.h = len(lines), max(1, r.Max.Y-y-srcH)
	v.l.fit(v.n, v.h)
	if len(lines) == 0 {
		none := "nothing yet"
		if v.filter != "" {
			none = "no event holds these words"
		}
		s.TextIn(x+3, y, w-4, theme.Dim, none)
	}
	for i := 0; i < v.h && v.l.first+i < len(lines); i++ {
		l := lines[v.l.first+i]
		if v.l.first+i == v.l.at {
			s.Glyph(x, y+i, theme.Accent, s.Glyphs.Chosen)
		}
		s.Text(x+2, y+i, theme.Dim, l.at.In(c.Loc).Format("15:04:05.000"))
		s.TextIn(x+16, y+i, 10, theme.Dim, l.kind)
		s.TextIn(x+27, y+i, w-28, l.role, l.text)
	}
	v.drawSources(s, draw.Box(x, r.Max.Y-srcH, w, srcH), c)
}

// sourceFine tells whether a source says what it should: those that do not list
// (the engine's own) have no state.
func sourceFine(s timeline.SourceStatus) bool {
	return s.State == collect.SourceSynced || s.State == ""
}

func (v *EventsView) drawSources(s *draw.Screen, r draw.Rect, c *Context) {
	bad := 0
	for _, src := range c.Snap.Sources {
		if !sourceFine(src) {
			bad++
		}
	}
	title := lanes.Plural(len(c.Snap.Sources), "source")
	if bad > 0 {
		title += fmt.Sprintf(", %d not synced", bad)
	}
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), title, "")
	list := append([]timeline.SourceStatus(nil), c.Snap.Sources...)
	sort.SliceStable(list, func(i, j int) bool {
		return !sourceFine(list[i]) && sourceFine(list[j])
	})
	y := r.Min.Y + 1
	for i, src := range list {
		if y >= r.Max.Y {
			s.Right(r.Max.X-1, r.Max.Y-1, theme.Dim, fmt.Sprintf(" %d more", len(list)-i))
			return
		}
		role := theme.Good
		mark := s.Glyphs.Live
		switch src.State {
		case collect.SourceSynced, "":
		case collect.SourceBroken, collect.SourceForbidden:
			role, mark = theme.Bad, "!"
		default:
			role, mark = theme.Warn, s.Glyphs.Converging
		}
		s.Text(r.Min.X+2, y, role, mark)
		s.NameIn(r.Min.X+4, y, 28, theme.Text, string(src.ID))
		state := string(src.State)
		if state == "" {
			state = "telling"
		}
		s.TextIn(r.Min.X+33, y, 10, role, state)
		note := src.Detail
		if note == "" && !src.Vouched.IsZero() {
			note = "last word " + src.Vouched.In(c.Loc).Format("15:04:05.000")
		}
		s.TextIn(r.Min.X+44, y, r.Dx()-45, theme.Dim, note)
		y++
	}
}

// Do implements View.
func (v *EventsView) Do(a Action, c *Context) Request {
	lines := v.lines(c)
	if r, ok := v.doFilter(a); ok {
		return r
	}
	switch a {
	case Copy:
		if v.l.at < len(lines) {
			l := lines[v.l.at]
			return Request{Handled: true, Copy: l.at.Format(time.RFC3339Nano) + " " + l.kind + " " + draw.Clean(l.text), Say: "copied the event"}
		}
	case Open:
		if v.l.at < len(lines) {
			return Request{Handled: true, Show: Timeline}
		}
	}
	if v.l.do(a, v.n, v.h) {
		return handled
	}
	return Request{}
}

// Moment is the time of the chosen event.
func (v *EventsView) Moment(c *Context) (time.Time, bool) {
	lines := v.lines(c)
	if v.l.at >= len(lines) {
		return time.Time{}, false
	}
	return lines[v.l.at].at, true
}
