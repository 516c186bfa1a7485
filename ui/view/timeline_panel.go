package view

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// stackBelow is the width under which panels stand below each other.
const stackBelow = 84

// drawPanel paints the table "at this instant" and, beside or below it, the
// change under the cursor.
func (v *TimelineView) drawPanel(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, instant []lanes.InstantRow) {
	at, after := lanes.InstantTitle(c.Snap, svc, v.pic.Cursor, c.Loc)
	if after != "" {
		at += " " + s.Glyphs.H + " " + after
	}
	path := lanes.PathAt(svc, v.key, v.pic.Cursor)
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), at, "")
	body := draw.Box(r.Min.X, r.Min.Y+1, r.Dx(), r.Dy()-1)
	if c.Hint != "" && (path == nil || body.Dy() > len(instant)+8) {
		drawHint(s, r.Min.X, r.Max.Y-1, r.Dx(), c)
		body.Max.Y--
	}
	if r.Dx() < stackBelow {
		used := v.drawInstant(s, body, instant)
		body.Min.Y += used
		if path != nil && body.Dy() >= 3 {
			s.Rule(r.Min.X, body.Min.Y, r.Dx(), "change "+lanes.PathName(path), "")
			body.Min.Y++
			drawChange(s, body, c, svc, path)
		}
		return
	}
	bottom := body.Dy() > len(instant)+3
	if bottom {
		body.Max.Y--
		s.Repeat(r.Min.X, body.Max.Y, r.Dx(), theme.Line, s.Glyphs.H)
	}
	split := r.Min.X + r.Dx()*3/5
	s.Glyph(split, r.Min.Y, theme.Line, s.Glyphs.TDown)
	for y := body.Min.Y; y < body.Max.Y; y++ {
		s.Glyph(split, y, theme.Line, s.Glyphs.V)
	}
	if bottom {
		s.Glyph(split, body.Max.Y, theme.Line, s.Glyphs.TUp)
	}
	used := v.drawInstant(s, draw.Box(body.Min.X, body.Min.Y, split-body.Min.X, body.Dy()), instant)
	spare := draw.Box(body.Min.X, body.Min.Y+used, split-body.Min.X, body.Dy()-used)
	if fail := lanes.Failing(svc, v.pic.Cursor); fail != "" && spare.Dy() >= 1 {
		s.TextIn(spare.Min.X+2, spare.Min.Y, spare.Dx()-3, theme.Bad, fail)
		spare.Min.Y++
	}
	if f, ok := lanes.FallbackAt(svc, v.pic.Cursor); ok && spare.Dy() >= 1 {
		text, _ := f.Text()
		s.TextIn(spare.Min.X+2, spare.Min.Y, spare.Dx()-3, theme.Warn, text)
		spare.Min.Y++
	}
	if text := v.capacityText(c, svc); text != "" && spare.Dy() >= 1 {
		s.TextIn(spare.Min.X+2, spare.Min.Y, spare.Dx()-3, theme.Dim, text)
		spare.Min.Y++
	}
	spare.Min.Y++
	if e := v.episodeBefore(c, svc); e != nil && spare.Dy() >= 1 {
		x := s.Text(spare.Min.X+2, spare.Min.Y, theme.Accent, c.Keys(PrevEpisode))
		s.TextIn(x+1, spare.Min.Y, split-x-2, theme.Dim, "episode before: "+e.Start.In(c.Loc).Format("15:04:05.000")+", "+lanes.EpisodeText(*e, c.Now))
		spare.Min.Y += 2
	}
	if spare.Dy() >= 4 && len(svc.Paths) > 0 {
		drawLatest(s, spare, c, svc)
	}
	s.Glyph(split+1, r.Min.Y, theme.Line, s.Glyphs.H)
	s.TextIn(split+2, r.Min.Y, r.Max.X-split-3, theme.Text, " "+changeTitle(path, v.pic.Cursor)+" ")
	if path == nil {
		v.drawBefore(s, draw.Box(split+1, body.Min.Y, r.Max.X-split-1, body.Dy()), c, svc)
		return
	}
	drawChange(s, draw.Box(split+1, body.Min.Y, r.Max.X-split-1, body.Dy()), c, svc, path)
}

// drawBefore says that nothing was observed to change, and since when that has
// been so by what objects and agents claim.
func (v *TimelineView) drawBefore(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service) {
	x, y, w := r.Min.X+1, r.Min.Y, r.Dx()-2
	s.TextIn(x, y, w, theme.Dim, "nothing has changed yet")
	lines := lanes.Before(svc, c.Now, c.Loc, r.Dy()-3)
	if len(lines) == 0 {
		return
	}
	y += 2
	s.TextIn(x, y, w, theme.Dim, "last change, as claimed:")
	for _, l := range lines {
		y++
		s.NameIn(x, y, 12, theme.Dim, l.Label)
		s.TextIn(x+13, y, w-13, draw.ToneRole(l.Tone), l.Text)
	}
}

// changeTitle says how the change that is shown stands to the cursor.
func changeTitle(p *timeline.Path, cursor time.Time) string {
	switch {
	case p == nil:
	case p.Origin.At.After(cursor):
		return "change after the cursor"
	case p.Status != timeline.StatusOpen && p.End().Before(cursor):
		end := p.End()
		if end.IsZero() {
			end = p.Origin.At
		}
		return "last change, over for " + lanes.Age(cursor.Sub(end))
	}
	return "change under cursor"
}

// drawLatest lists the latest changes, newest first, with how long each took
// from its origin to the last node.
func drawLatest(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service) {
	x, y := r.Min.X+2, r.Min.Y
	s.Text(x, y, theme.Dim, "latest changes")
	s.Right(r.Max.X-1, y, theme.Dim, "to the last node")
	for i := len(svc.Paths) - 1; i >= 0 && y+1 < r.Max.Y; i-- {
		p := svc.Paths[i]
		if !lanes.Moved(svc, p) {
			continue // nothing became or stopped being routable
		}
		y++
		drawPathLine(s, draw.Box(x, y, r.Max.X-1-x, 1), c, svc, p, false)
	}
}

// drawPathLine tells of one change in one line: when, who, why, and how long it
// took to the last node.
func drawPathLine(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, p *timeline.Path, chosen bool) {
	x, y := r.Min.X, r.Min.Y
	nameRole := theme.Text
	if chosen {
		nameRole = theme.Accent
		s.Glyph(x-1, y, theme.Accent, s.Glyphs.Chosen)
	}
	s.Text(x, y, theme.Dim, p.Origin.At.In(c.Loc).Format("15:04:05.000"))
	took, role := lanes.Duration(p.End().Sub(p.Origin.At)), theme.Text
	switch p.Status {
	case timeline.StatusOpen:
		took, role = ">"+lanes.Duration(c.Now.Sub(p.Origin.At)), theme.Warn
	case timeline.StatusArrived:
	default:
		took, role = string(p.Status), theme.Dim
	}
	end := s.Right(r.Max.X, y, role, took) - 2
	name := s.NameIn(x+14, y, min(34, end-x-14), nameRole, lanes.PathName(p)) + 2
	if end-name >= 12 {
		s.TextIn(name, y, end-name, theme.Dim, lanes.PathCause(svc, p))
	}
}

// drawInstant paints the table and returns the number of lines it took. When
// there is not room for every line, those that agree go first.
func (v *TimelineView) drawInstant(s *draw.Screen, r draw.Rect, rows []lanes.InstantRow) int {
	y := r.Min.Y
	if r.Dy() > 3 {
		s.Text(r.Min.X+2, y, theme.Dim, "plane")
		s.Right(r.Min.X+21, y, theme.Dim, "set")
		s.TextIn(r.Min.X+24, y, r.Dx()-25, theme.Dim, "difference from wanted")
		y++
	}
	rows, left := chooseRows(rows, v.key, r.Max.Y-y)
	for _, row := range rows {
		label := theme.Text
		if row.Key == v.key && row.Plane != "" {
			label = theme.Accent
			s.Glyph(r.Min.X, y, theme.Accent, s.Glyphs.Chosen)
		}
		s.NameIn(r.Min.X+2, y, 15, label, row.Plane)
		s.Right(r.Min.X+21, y, theme.Strong, row.Set)
		end := r.Max.X - 1
		if row.Note != "" && r.Dx() > 50 {
			role := theme.Dim
			if row.Tone == lanes.Bad {
				role = theme.Bad
			}
			// Names of Services are in it, and what differs needs room.
			end = s.Right(end, y, role, draw.CutMiddle(s.Clean(row.Note), (r.Dx()-24)*2/3, s.Glyphs)) - 2
		}
		role := draw.ToneRole(row.Tone)
		if row.Plane == "wanted" {
			role = theme.Dim
		}
		x := s.TextIn(r.Min.X+24, y, end-r.Min.X-24, role, row.Diff) + 2
		if row.Pod != "" && end-x >= 8 {
			s.NameIn(x, y, end-x, theme.Dim, row.Pod)
		}
		y++
	}
	if left > 0 && y < r.Max.Y {
		s.TextIn(r.Min.X+2, y, r.Dx()-3, theme.Dim, fmt.Sprintf("%d more", left))
		y++
	}
	return y - r.Min.Y
}

// chooseRows picks the rows that fit h lines, in their order: those with a
// difference and the chosen lane's before those that agree.
func chooseRows(rows []lanes.InstantRow, key string, h int) (out []lanes.InstantRow, left int) {
	if len(rows) <= h {
		return rows, 0
	}
	if h > 2 {
		h-- // for the number of those left out
	}
	take := make([]bool, len(rows))
	n := 0
	for pass := 0; pass < 3; pass++ {
		for i, r := range rows {
			want := pass == 2 || pass == 0 && r.Key == key && key != "wanted" || pass == 1 && (r.Tone == lanes.Warn || r.Tone == lanes.Bad)
			if want && !take[i] && n < h {
				take[i] = true
				n++
			}
		}
	}
	for i, r := range rows {
		if take[i] {
			out = append(out, r)
		}
	}
	return out, len(rows) - len(out)
}

func drawChange(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, p *timeline.Path) {
	x, y := r.Min.X+1, r.Min.Y
	role := theme.Good
	if p.Op == timeline.OpRemove {
		role = theme.Warn
	}
	addr := lanes.EndpointText(p.Endpoint)
	w := r.Dx() - 2
	nameW := max(8, w-draw.Width(addr)-2)
	end := s.NameIn(x, y, nameW, role, lanes.PathName(p))
	if p.Endpoint.Pod != "" && w-(end-x) > draw.Width(addr)+2 {
		s.Text(end+2, y, theme.Dim, addr)
	}
	y++
	rank := lanes.RiskRank(svc.Paths, p)
	room := r.Max.Y - y
	if rank != "" {
		room--
	}
	lines := lanes.Change(p, c.Now, c.Loc, room)
	if rank != "" {
		lines = append(lines, lanes.ChangeLine{Text: rank, Tone: lanes.Dim})
	}
	for _, l := range lines {
		if y >= r.Max.Y {
			return
		}
		if l.Label == "" {
			s.TextIn(x, y, w, draw.ToneRole(l.Tone), l.Text)
		} else {
			s.NameIn(x, y, 10, theme.Dim, l.Label)
			s.TextIn(x+11, y, w-11, draw.ToneRole(l.Tone), l.Text)
		}
		y++
	}
}
