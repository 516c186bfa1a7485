package ui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// The least that the screen needs to make sense.
const (
	minWidth  = 48
	minHeight = 14
)

// tab is where a tab stood in the last frame.
type tab struct {
	id   view.ID
	x, w int
}

// draw paints a whole frame.
func (m *Model) draw() {
	m.advance()
	w, h := m.w, m.h
	if w == 0 || h == 0 {
		w, h = 80, 24
	}
	if s := m.screen; s != nil && s.Width() == w && s.Height() == h && s.Theme == m.look.theme() && s.Glyphs == m.look.glyphs {
		s.Reset()
	} else {
		m.screen = draw.NewScreen(w, h, m.look.theme(), m.look.glyphs)
	}
	s := m.screen
	if w < minWidth || h < minHeight {
		s.TextIn(0, 0, w, theme.Strong, "kconverge")
		if h > 1 {
			s.TextIn(0, 1, w, theme.Text, fmt.Sprintf("needs %d x %d,", minWidth, minHeight))
			s.TextIn(0, 2, w, theme.Text, fmt.Sprintf("this is %d x %d", w, h))
			s.TextIn(0, 3, w, theme.Dim, m.keys.first(view.Quit)+" quits")
		}
		return
	}
	c := m.context()
	m.drawBar(s, 0, c)
	m.drawTabs(s, 1)
	view.StateLine(s, 0, 2, w, c)
	body := draw.Box(0, 3, w, h-4)
	if m.o.Replay != nil {
		body.Max.Y--
		m.drawReplay(s, h-2)
	}
	body.Max.Y -= m.drawCaption(s, body.Max.Y)
	m.views[m.shown].Draw(s, body, c)
	m.drawKeys(s, h-1)
	if m.layer != nil {
		m.layer.draw(s, draw.Box(0, 1, w, h-2))
	}
}

// drawBar paints the first line: what is observed and how well.
func (m *Model) drawBar(s *draw.Screen, y int, c *view.Context) {
	w := s.Width()
	g := s.Glyphs
	live := part{theme.Warn, g.Converging + " starting"}
	var parts []part
	if m.snap != nil {
		if !m.snap.Watermark.IsZero() {
			live = part{theme.Good, g.Live + " live"}
		}
		if m.recorded() {
			live = part{theme.Accent, g.SpanOpen + " replay"}
			if m.o.Replay != nil && !m.o.Replay.Status().Playing {
				live = part{theme.Accent, g.Paused + " replay"}
			}
		}
		if t, ok := m.views[m.shown].(*view.TimelineView); ok && !t.Following() && m.o.Replay == nil {
			live = part{theme.Accent, g.Paused + " paused"}
		}
		// Before the first word of all of them nothing can be lost or listed
		// anew, unless a source says that it cannot.
		if mark, lost := c.Health.Mark(c.Loc); lost {
			live = part{theme.Bad, g.Alert + " " + mark}
		} else if mark != "" && !m.snap.Watermark.IsZero() && live.role == theme.Good {
			live = part{theme.Warn, g.Converging + " " + mark}
		}
		if m.ended {
			live = part{theme.Warn, "! source ended"}
			if m.recorded() {
				live = part{theme.Accent, "replay ended"}
			}
		}
		seen, all := 0, 0
		for _, n := range m.snap.Nodes {
			if n.Exists {
				all++
				if n.Rules == "known" {
					seen++
				}
			}
		}
		nodes := part{theme.Text, fmt.Sprintf("nodes %d/%d", seen, all)}
		if seen < all {
			nodes.role = theme.Warn
		}
		open := 0
		for _, gap := range m.snap.Gaps {
			if gap.To.IsZero() {
				open++
			}
		}
		gaps := part{theme.Dim, fmt.Sprintf("gaps %d", len(m.snap.Gaps))}
		if len(m.snap.Gaps) > 0 {
			gaps.role = theme.Warn
		}
		if open > 0 {
			gaps = part{theme.Bad, fmt.Sprintf("gaps %d, %d open !", len(m.snap.Gaps), open)}
		}
		dropped := part{theme.Dim, "dropped " + strconv.Itoa(m.snap.Dropped)}
		if m.snap.Dropped > 0 {
			dropped = part{theme.Bad, "dropped " + strconv.Itoa(m.snap.Dropped) + " !"}
		}
		parts = []part{nodes, gaps, dropped}
	}
	clock := part{theme.Text, m.now.Format("15:04:05")}

	left := s.Text(1, y, theme.Strong, "kconverge") + 2
	ns := m.o.Namespace
	if ns == "" {
		ns = "all"
	}
	room := w - left
	// What is missing least goes first when there is little room.
	show := append([]part{live}, parts...)
	if m.snap != nil || !m.recorded() {
		show = append(show, clock)
	}
	width := func() int {
		n := 0
		for _, p := range show {
			n += draw.Width(p.text) + 3
		}
		return n
	}
	titleW := draw.Width(draw.Clean(m.o.Title)) + draw.Width(draw.Clean(ns)) + 8
	for _, keep := range []struct {
		title int
		bad   bool
	}{{min(titleW, 24), false}, {min(titleW, 12), true}} {
		for width()+keep.title > room {
			i := leastNeeded(show, keep.bad)
			if i < 0 {
				break
			}
			show = append(show[:i], show[i+1:]...)
		}
	}
	x := w - 1
	for i := len(show) - 1; i >= 0; i-- {
		x = s.Right(x, y, show[i].role, show[i].text) - 3
	}
	end := s.TextIn(left, y, max(0, x-left), theme.Text, m.o.Title) + 2
	if x-end > 6 {
		end = s.Text(end, y, theme.Dim, "ns ")
		s.TextIn(end, y, x-end, theme.Text, ns)
	}
}

// part is one entry of the first line.
type part struct {
	role theme.Role
	text string
}

// leastNeeded is the part that goes first when there is little room: the last
// one that is not a warning, or, where those may go too, the last warning; never the first (how the source is) nor the last, the clock.
func leastNeeded(parts []part, warnings bool) int {
	for i := len(parts) - 2; i > 0; i-- {
		if r := parts[i].role; r != theme.Warn && r != theme.Bad {
			return i
		}
	}
	if warnings && len(parts) > 2 {
		return len(parts) - 2
	}
	return -1
}

// drawTabs paints the second line: the views.
func (m *Model) drawTabs(s *draw.Screen, y int) {
	m.tabs = m.tabs[:0]
	x := 0
	short := s.Width() < 78
	// Where rules are that carry no packets must be seen, and why where it can be.
	if m.snap != nil && strings.Contains(m.snap.Session.Rules, ":") {
		whole := draw.Width("rules: "+draw.Clean(m.snap.Session.Rules)) + 4
		for i, id := range view.Order {
			whole += len(strconv.Itoa(i+1)+" "+m.views[id].Title()) + 2
		}
		short = short || whole > s.Width()
	}
	for i, id := range view.Order {
		label := strconv.Itoa(i+1) + " " + m.views[id].Title()
		if short && id != m.shown {
			label = strconv.Itoa(i + 1)
		}
		w := len(label) + 2
		if id == m.shown {
			s.Text(x, y, theme.Selected, "["+label+"]")
		} else {
			s.Text(x, y, theme.Dim, " "+label+" ")
		}
		m.tabs = append(m.tabs, tab{id, x, w})
		x += w
	}
	if m.snap != nil && m.snap.Session.Rules != "" {
		t := draw.Clean(m.snap.Session.Rules)
		texts := []string{"rules: " + t}
		if where, _, why := strings.Cut(t, ":"); why {
			// Where they are must be seen, why may be left out.
			texts = append(texts, "rules: "+where, where)
		}
		for _, t := range texts {
			if s.Width()-x > draw.Width(t)+3 {
				s.Right(s.Width()-1, y, theme.Dim, t)
				break
			}
		}
	}
}

// drawKeys paints the last line: the answer to the last action, or the keys.
func (m *Model) drawKeys(s *draw.Screen, y int) {
	w := s.Width()
	if m.typing != nil {
		s.TextIn(1, y, w-2, theme.Dim, "⏎ keep the filter  esc clear it  ↑↓ choose")
		return
	}
	if m.said != "" {
		role := theme.Text
		text := m.said
		if m.bad {
			role, text = theme.Bad, "! "+text
		}
		s.TextIn(1, y, w-2, role, text)
		return
	}
	if m.ended {
		what, role := "the source has ended", theme.Warn
		if m.recorded() {
			what, role = "the recording has ended", theme.Dim
		}
		s.TextIn(1, y, w-2, role, what+": this is what was known at "+m.now.Format("15:04:05")+"   "+m.keys.first(view.Quit)+" quit")
		return
	}
	x := 1
	offers := m.offers()
	if m.o.FirstUse != nil {
		x = s.Text(x, y, theme.Strong, "New here?") + 2
		offers = m.firstOffers()
	}
	for _, o := range offers {
		if x+draw.Width(o.keys)+1+len(o.text) > w-1 {
			break
		}
		x = s.Text(x, y, o.role, o.keys)
		x = s.Text(x+1, y, theme.Dim, o.text) + 2
	}
}

type offer struct {
	role       theme.Role
	keys, text string
}

// firstOffers are where somebody starts who has not used the screen before.
func (m *Model) firstOffers() []offer {
	var out []offer
	for _, o := range []struct {
		action view.Action
		text   string
	}{
		{view.Help, "what the keys do"}, {view.Palette, "find any action"}, {view.NextView, "next view"},
		{view.Open, "open what is chosen"}, {view.Quit, "quit"},
	} {
		if keys := m.keys.first(o.action); keys != "" {
			out = append(out, offer{role: theme.Accent, keys: keys, text: o.text})
		}
	}
	return out
}

// offers are the view's actions with their keys; pairs share an entry.
func (m *Model) offers() []offer {
	pair := map[view.Action]view.Action{view.Up: view.Down, view.Left: view.Right, view.ZoomIn: view.ZoomOut, view.PrevEpisode: view.NextEpisode, view.PrevChange: view.NextChange}
	done := map[view.Action]bool{}
	var out, last []offer
	if m.o.Replay != nil {
		out = m.replayOffers()
	}
	for _, a := range m.views[m.shown].Offers() {
		if done[a] {
			continue
		}
		i, _ := view.InfoOf(a)
		keys := m.keys.first(a)
		if b, ok := pair[a]; ok {
			if k := m.keys.first(b); len(k) > 1 && len(keys) > 1 {
				keys += k // arrows
			} else {
				keys += " " + k
			}
			done[b] = true
		}
		o := offer{role: theme.Accent, keys: keys, text: i.Short}
		if a == view.Up && m.shown != view.Timeline {
			o.text = "choose"
			if m.shown == view.Path {
				o.text = "hop"
			}
		}
		if i.Group == view.GroupLab && m.o.Actions == nil || a == view.Follow && m.o.Replay != nil {
			continue
		}
		if a == view.Help || a == view.Palette {
			last = append(last, o)
			continue
		}
		out = append(out, o)
	}
	// Help and the palette are always there: what does not fit goes before.
	room := m.w - 2
	if m.w == 0 {
		room = 78
	}
	width := func(os []offer) (n int) {
		for _, o := range os {
			n += draw.Width(o.keys) + len(o.text) + 3
		}
		return n
	}
	for len(out) > 0 && width(out)+width(last)-2 > room {
		out = out[:len(out)-1]
	}
	return append(out, last...)
}
