package view

import (
	"fmt"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// legendEntry is what one sign means, or a heading without a sign.
type legendEntry struct {
	there, always bool // in the picture; said, where there is room, even when not
	role          theme.Role
	glyph, text   string
	gap           int
}

func (e *legendEntry) width() int {
	if e.glyph == "" {
		return 1 + len(e.text) + e.gap
	}
	return 2 + len(e.text) + e.gap
}

// alertText says what the one sign for what went wrong stands for in this picture.
func alertText(retried, failed bool) string {
	switch {
	case retried && failed:
		return "retried or failed"
	case failed:
		return "failed"
	}
	return "retried"
}

func (v *TimelineView) drawLegend(s *draw.Screen, x, y, w, rows int) {
	g := s.Glyphs
	end := x + w
	if rows > v.lanesH {
		note := fmt.Sprintf("lanes %d-%d of %d", v.rows.first+1, v.rows.first+v.lanesH, rows)
		end = s.Right(x+w-1, y, theme.Dim, note) - 2
	}
	x++
	var there [lanes.Folded + 1]bool // by class
	maybe, behindMaybe, claimed, retried, failed := false, false, false, false, false
	for i := range v.pic.Rows {
		for _, c := range v.pic.Rows[i].Cells {
			there[c.Class] = true
			maybe = maybe || c.Provisional && c.Class == lanes.Agrees
			behindMaybe = behindMaybe || c.Provisional && c.Class == lanes.Behind
			claimed = claimed || c.Claimed && c.Class != lanes.Existed
			if c.Class == lanes.Alert && v.pic.Rows[i].Kind == lanes.RowConnections {
				failed = true
			} else if c.Class == lanes.Alert {
				retried = true
			}
		}
	}
	entries := []legendEntry{
		{true, true, theme.Good, g.Agrees, "agrees", 2},
		{there[lanes.Behind], true, theme.Warn, g.Behind, "behind", 2},
		{there[lanes.Stale], true, theme.Bad, g.Stale, "routed but stopped", 2},
		{there[lanes.InGap], false, theme.Warn, g.Gap, "gap", 2},
		{there[lanes.Blind], false, theme.Dim, g.Blind, "blind", 2},
		{retried || failed, false, theme.Bad, g.Alert, alertText(retried, failed), 2},
		{maybe, false, theme.Tentative, g.AgreesMaybe, "agrees?", 2},
		{behindMaybe, false, theme.Tentative, g.BehindMaybe, "behind?", 2},
		{claimed, false, theme.Tentative, g.Claimed, "claimed", 2},
		{there[lanes.Existed], false, theme.Dim, g.Existed, "existed", 2},
		{true, true, theme.Dim, "", "pods:", 1},
		{there[lanes.PodPending], true, theme.Dim, g.Pending, "pending", 1},
		{there[lanes.PodStarting], true, theme.Dim, g.Starting, "starting", 1},
		{there[lanes.PodReady], true, theme.Good, g.ReadyAt, "ready", 1},
		{there[lanes.PodUnready], false, theme.Warn, g.UnreadyAt, "unready", 1},
		{there[lanes.PodTerminating], true, theme.Warn, g.TerminatingAt, "terminating", 1},
		{there[lanes.PodStopped], true, theme.Dim, g.StoppedAt, "stopped", 1},
	}
	// What the picture shows goes before what it does not.
	room := end - x - legendWidth(entries)
	if room < 0 {
		entries = shortLegend(entries)
		room = end - x - legendWidth(entries)
	}
	for _, e := range entries {
		if !e.there {
			if !e.always || room < e.width() {
				continue
			}
			room -= e.width()
		}
		if e.glyph == "" {
			if x+18 > end {
				break
			}
			x = s.Text(x+1, y, theme.Dim, e.text) + e.gap
			continue
		}
		if x+len(e.text)+2 > end {
			break
		}
		s.Glyph(x, y, e.role, e.glyph)
		x = s.Text(x+2, y, theme.Dim, e.text) + e.gap
	}
}

func legendWidth(entries []legendEntry) (w int) {
	for i := range entries {
		if entries[i].there {
			w += entries[i].width()
		}
	}
	return w
}

// shortWords are those of the legend's that are put shorter where there is little room.
var shortWords = map[string]string{"routed but stopped": "stopped", "terminating": "ending", "stopped": "ended"}

// shortLegend says the same in less room. How a pod begins, which its place tells too,
// comes last.
func shortLegend(entries []legendEntry) []legendEntry {
	var out, last []legendEntry
	for _, e := range entries {
		if short, ok := shortWords[e.text]; ok {
			e.text = short
		}
		e.gap = 1
		switch {
		case e.glyph == "":
		case e.text == "pending" || e.text == "starting":
			last = append(last, e)
		default:
			out = append(out, e)
		}
	}
	return append(out, last...)
}
