package view

import (
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// timelineActions is what the Timeline does for each action.
var timelineActions = map[Action]func(v *TimelineView, c *Context, svc *timeline.Service) Request{
	Left:        func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.moveCursor(c, -1) },
	Right:       func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.moveCursor(c, 1) },
	FarLeft:     func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.moveCursor(c, -10) },
	FarRight:    func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.moveCursor(c, 10) },
	ZoomIn:      func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.zoom(c, true) },
	ZoomOut:     func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.zoom(c, false) },
	Fit:         (*TimelineView).fitAll,
	Follow:      func(v *TimelineView, _ *Context, _ *timeline.Service) Request { return v.followNow() },
	Pause:       func(v *TimelineView, c *Context, _ *timeline.Service) Request { return v.pause(c) },
	PrevEpisode: func(v *TimelineView, c *Context, svc *timeline.Service) Request { return v.episode(c, svc, -1) },
	NextEpisode: func(v *TimelineView, c *Context, svc *timeline.Service) Request { return v.episode(c, svc, 1) },
	PrevChange:  func(v *TimelineView, c *Context, svc *timeline.Service) Request { return v.change(c, svc, -1) },
	NextChange:  func(v *TimelineView, c *Context, svc *timeline.Service) Request { return v.change(c, svc, 1) },
	FoldQuiet: func(v *TimelineView, c *Context, _ *timeline.Service) Request {
		v.keep = !v.keep
		if !v.cursor.IsZero() {
			v.setCursor(c, v.cursor) // what was folded may have pushed it out
		}
		return handled
	},
	MarkTime: (*TimelineView).markTime,
	UnfoldPods: func(v *TimelineView, _ *Context, _ *timeline.Service) Request {
		v.unfold = !v.unfold
		return handled
	},
	AllNodes: func(v *TimelineView, _ *Context, _ *timeline.Service) Request {
		v.all = !v.all
		return handled
	},
	Open: (*TimelineView).open,
	Copy: (*TimelineView).copyInstant,
	Back: func(v *TimelineView, _ *Context, _ *timeline.Service) Request {
		if v.cursor.IsZero() {
			return Request{}
		}
		return v.followNow()
	},
}

// Do implements View.
func (v *TimelineView) Do(a Action, c *Context) Request {
	svc := c.Service()
	if svc == nil || v.pic == nil {
		return Request{}
	}
	if v.rows.do(a, len(v.pic.Rows), v.lanesH) {
		if v.rows.at < len(v.pic.Rows) {
			v.key = v.pic.Rows[v.rows.at].Key
		}
		return handled
	}
	if f := timelineActions[a]; f != nil {
		return f(v, c, svc)
	}
	return Request{}
}

func (v *TimelineView) followNow() Request {
	v.follow, v.cursor = true, time.Time{}
	return handled
}

// FollowNow lets the picture follow what is the newest.
func (v *TimelineView) FollowNow() { v.followNow() }

// CursorTime is the moment under the cursor, zero while that is now.
func (v *TimelineView) CursorTime() time.Time { return v.cursor }

func (v *TimelineView) pause(c *Context) Request {
	if !v.follow {
		return v.followNow()
	}
	v.stop(c)
	return handled
}

// stop freezes the picture where it is.
func (v *TimelineView) stop(c *Context) {
	if v.follow {
		v.follow, v.to = false, lanes.AlignEnd(c.Now, v.cell)
	}
	if v.cursor.IsZero() {
		v.cursor = c.Now
	}
}

// moveCursor moves by cells. The picture stops following; at its edge it moves
// along.
func (v *TimelineView) moveCursor(c *Context, by int) Request {
	v.stop(c)
	col := v.pic.Scale.Col(v.cursor) + by
	t := v.instantIn(col)
	if t.After(c.Now) {
		t = c.Now
	}
	if from := lanes.Beginning(c.Snap, v.pic.Service); !from.IsZero() && t.Before(from) {
		t = from
	}
	v.setCursor(c, t)
	return handled
}

// setCursor puts the cursor at t and moves the picture so that it is in view.
func (v *TimelineView) setCursor(c *Context, t time.Time) {
	v.cursor = t
	svc := c.Service()
	if svc == nil || v.pic == nil {
		return
	}
	o := v.options(c, v.layout.Cols)
	scale := lanes.ScaleOf(c.Snap, svc, o)
	if col := scale.Col(o.Cursor); col >= 0 && col < scale.Cols {
		return
	}
	// A third of the picture stays behind the cursor.
	v.to = lanes.AlignEnd(t.Add(v.cell*time.Duration(v.layout.Cols/3)), v.cell)
	if end := lanes.AlignEnd(c.Now, v.cell); v.to.After(end) {
		v.to = end
	}
}

// instantIn is the instant that a column stands for: when something begins in
// it on the chosen lane or any plane, that moment, so that the table shows what
// the cell shows; else its start.
func (v *TimelineView) instantIn(col int) time.Time {
	span := v.pic.Scale.Span(col)
	var rank lanes.Class
	at := span.From
	planes := append([]*timeline.Plane{v.pic.Service.Slices, v.pic.Service.Endpoints}, v.pic.Service.Rules.All()...)
	for _, p := range planes {
		if p == nil {
			continue
		}
		chosen := p.ID.String() == v.key
		if p.Past != nil {
			for _, ch := range p.Past.Changes {
				if ch.At.Before(span.From) || !ch.At.Before(span.To) {
					continue
				}
				class := lanes.Had
				if chosen {
					class += 100
				}
				if class > rank {
					rank, at = class, ch.At
				}
			}
		}
		first := sort.Search(len(p.Changes), func(i int) bool { return !p.Changes[i].At.Before(span.From) })
		for i := first; i < len(p.Changes) && p.Changes[i].At.Before(span.To); i++ {
			ch := &p.Changes[i]
			class := lanes.Agrees
			if !ch.Agrees() {
				class = lanes.Behind
			}
			if ch.Stopped > 0 {
				class = lanes.Stale
			}
			if chosen {
				class += 100
			}
			if class > rank {
				rank, at = class, ch.At
			}
		}
	}
	return at
}

func (v *TimelineView) zoom(c *Context, in bool) Request {
	cell := lanes.Zoom(v.cell, in)
	v.zoomed = true
	if v.follow {
		v.cell = cell
		return handled
	}
	// What is under the cursor stays where it is.
	col := v.pic.CursorCol
	if col < 0 {
		col = v.layout.Cols / 2
		v.cursor = v.pic.Scale.Span(col).From
	}
	v.cell = cell
	v.to = lanes.AlignEnd(v.cursor.Add(time.Duration(v.layout.Cols-col-1)*cell), cell)
	if end := lanes.AlignEnd(c.Now, cell); v.to.After(end) {
		v.to = end
	}
	v.setCursor(c, v.cursor)
	return handled
}

// fitAll shows everything that is known of the Service, and with quiet time
// folded also what is claimed of the time before.
func (v *TimelineView) fitAll(c *Context, svc *timeline.Service) Request {
	v.zoomed = true
	from := c.Snap.First
	span := c.Now.Sub(from)
	if !v.keep {
		from = lanes.Beginning(c.Snap, svc)
		// With quiet time folded only what happened needs room. Which cell
		// is enough depends on what is quiet at that cell: try from the
		// shortest.
		for cell := lanes.CellFor(0, 1); ; cell = lanes.Zoom(cell, false) {
			s := lanes.ScaleOf(c.Snap, svc, lanes.Options{Cols: v.layout.Cols, To: lanes.AlignEnd(c.Now, cell), Cell: cell, Now: c.Now, FoldQuiet: true})
			if !s.From().After(from) || cell == lanes.Zoom(cell, false) {
				v.cell = cell
				break
			}
		}
	} else {
		v.cell = lanes.CellFor(span+span/50, v.layout.Cols)
	}
	v.follow, v.cursor = true, time.Time{}
	return handled
}

// episodeBefore is the last episode that began before the cursor, or nil.
func (v *TimelineView) episodeBefore(c *Context, svc *timeline.Service) *timeline.Episode {
	cur := v.cursor
	if cur.IsZero() {
		cur = c.Now
	}
	for i := len(svc.Episodes) - 1; i >= 0; i-- {
		if svc.Episodes[i].Start.Before(cur) {
			return &svc.Episodes[i]
		}
	}
	return nil
}

// episode puts the cursor on the start of the episode before or after it.
func (v *TimelineView) episode(c *Context, svc *timeline.Service, dir int) Request {
	cur := v.cursor
	if cur.IsZero() {
		cur = c.Now
	}
	found := v.episodeBefore(c, svc)
	if dir > 0 {
		found = nil
		for i := len(svc.Episodes) - 1; i >= 0 && svc.Episodes[i].Start.After(cur); i-- {
			found = &svc.Episodes[i]
		}
	}
	if found == nil {
		return Request{Handled: true, Say: map[bool]string{true: "no episode before this", false: "no episode after this"}[dir < 0]}
	}
	v.stop(c)
	v.setCursor(c, found.Start)
	return handled
}

// change puts the cursor on the origin of the change before or after it.
func (v *TimelineView) change(c *Context, svc *timeline.Service, dir int) Request {
	cur := v.cursor
	if cur.IsZero() {
		cur = c.Now
	}
	var found *timeline.Path
	for _, p := range svc.Paths {
		if dir < 0 && p.Origin.At.Before(cur) {
			found = p
		}
		if dir > 0 && p.Origin.At.After(cur) && found == nil {
			found = p
		}
	}
	if found == nil {
		return Request{Handled: true, Say: map[bool]string{true: "no change before this", false: "no change after this"}[dir < 0]}
	}
	v.stop(c)
	v.setCursor(c, found.Origin.At)
	return handled
}

// open shows the path of the change under the cursor.
func (v *TimelineView) open(c *Context, svc *timeline.Service) Request {
	if v.key == "pods/steady" {
		v.unfold = !v.unfold
		return handled
	}
	p := lanes.PathAt(svc, v.key, v.pic.Cursor)
	if p == nil {
		return Request{Handled: true, Say: "nothing has changed yet"}
	}
	c.Focus.Path = p.ID
	return Request{Handled: true, Show: Path}
}

// Change is the one under the cursor of a picture that was stopped; "" while it follows.
func (v *TimelineView) Change(c *Context) string {
	svc := c.Service()
	if v.follow || svc == nil {
		return ""
	}
	if p := lanes.PathAt(svc, v.key, v.pic.Cursor); p != nil {
		return p.ID
	}
	return ""
}

// ShowMoment puts the cursor on a moment, for a view that hands over to this one.
func (v *TimelineView) ShowMoment(c *Context, t time.Time) {
	if v.pic == nil {
		v.follow, v.cursor, v.to = false, t, t
		return
	}
	v.stop(c)
	v.setCursor(c, t)
}

// copyInstant copies the table "at this instant" as text.
func (v *TimelineView) copyInstant(c *Context, svc *timeline.Service) Request {
	at, after := lanes.InstantTitle(c.Snap, svc, v.pic.Cursor, c.Loc)
	var b strings.Builder
	b.WriteString(svc.Namespace + "/" + svc.Name + " " + at)
	if after != "" {
		b.WriteString(", " + after)
	}
	b.WriteString("\n")
	for _, r := range lanes.Instant(svc, v.pic.Cursor) {
		b.WriteString(strings.TrimRight(strings.Join([]string{r.Plane, r.Set, r.Diff, r.Pod, r.Note}, "\t"), "\t") + "\n")
	}
	return Request{Handled: true, Copy: b.String(), Say: "copied what was true " + at}
}

// Click implements Clicker: it chooses the lane and puts the cursor there.
func (v *TimelineView) Click(x, y int, c *Context) Request {
	if v.pic == nil || y < v.lanesY-2 || y >= v.lanesY+v.lanesH {
		return Request{}
	}
	if i := v.rows.first + y - v.lanesY; y >= v.lanesY && i < len(v.pic.Rows) {
		v.rows.at, v.key = i, v.pic.Rows[i].Key
	}
	if col := x - v.layout.Lanes(); col >= 0 && col < v.layout.Cols {
		t := v.instantIn(col)
		if t.After(c.Now) {
			return v.followNow()
		}
		v.stop(c)
		v.cursor = t
	}
	return handled
}

// Wheel implements Wheeler: it zooms.
func (v *TimelineView) Wheel(up bool, c *Context) Request {
	if v.pic == nil || c.Service() == nil {
		return Request{}
	}
	return v.zoom(c, up)
}
