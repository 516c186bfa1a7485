package draw

import (
	"strings"

	"github.com/kconverge/kconverge/engine/lanes"
)

// Glyphs is a set of characters to draw with. All of them take one column,
// but for the ellipsis.
type Glyphs struct {
	Name string
	// Planes.
	Agrees, Behind, Stale, Gap, Blind, Nothing string
	// Beyond the watermark.
	AgreesMaybe, BehindMaybe string
	// Pods: how a phase runs on, and how it begins.
	Pending, Starting, Ready, Unready, Terminating string
	ReadyAt, UnreadyAt, TerminatingAt, StoppedAt   string
	Claimed, Existed                               string
	// Marks.
	Action, Dot, Alert, Fold, SpanBegin, Span, SpanEnd, SpanOpen string
	// Frame.
	H, V, TDown, TUp, TickMajor, TickMinor, AxisLeft, AxisRight, Cursor, CursorLine string
	// Lists.
	Chosen, Live, Paused, Converging, Converged, Stalled, Ellipsis string
	Work, Wait, Bar, Caret                                         string
	// Levels are the heights of a histogram, the lowest first; This is where the one
	// stands that is compared.
	Levels []string
	This   string
	// Subst replaces in texts what the set lacks.
	Subst *strings.Replacer
}

// Unicode is the set for every usual terminal.
var Unicode = Glyphs{
	Name:   "unicode",
	Agrees: "━", Behind: "╌", Stale: "▓", Gap: "╱", Blind: "?", Nothing: "·",
	AgreesMaybe: "─", BehindMaybe: "┈",
	Pending: "┄", Starting: "─", Ready: "━", Unready: "┅", Terminating: "╍",
	ReadyAt: "●", UnreadyAt: "◌", TerminatingAt: "○", StoppedAt: "×",
	Claimed: "═", Existed: "·",
	Action: "⚑", Dot: "•", Alert: "!", Fold: "≈", SpanBegin: "├", Span: "─", SpanEnd: "┤", SpanOpen: "▸",
	H: "─", V: "│", TDown: "┬", TUp: "┴", TickMajor: "┼", TickMinor: "┴", AxisLeft: "┤", AxisRight: "├", Cursor: "▼", CursorLine: "┊",
	Chosen: "›", Live: "●", Paused: "‖", Converging: "◐", Converged: "●", Stalled: "▲", Ellipsis: "…",
	Work: "━", Wait: "╍", Bar: "█", Caret: "▏",
	Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, This: "▲",
}

// ASCII is the set for terminals and fonts that have nothing else. A "~" is
// left to changes ("~ web-1"), a "!" to alerts.
var ASCII = Glyphs{
	Name:   "ascii",
	Agrees: "=", Behind: "-", Stale: "#", Gap: "/", Blind: "?", Nothing: " ",
	AgreesMaybe: ",", BehindMaybe: ".",
	Pending: ".", Starting: "-", Ready: "=", Unready: ";", Terminating: "+",
	ReadyAt: "*", UnreadyAt: "u", TerminatingAt: "o", StoppedAt: "x",
	Claimed: "_", Existed: "'",
	Action: "@", Dot: "*", Alert: "!", Fold: "%", SpanBegin: "[", Span: "-", SpanEnd: "]", SpanOpen: ">",
	H: "-", V: "|", TDown: "+", TUp: "+", TickMajor: "+", TickMinor: "'", AxisLeft: "|", AxisRight: "|", Cursor: "v", CursorLine: ":",
	Chosen: ">", Live: "*", Paused: "=", Converging: "o", Converged: "*", Stalled: "!", Ellipsis: "..",
	Work: "=", Wait: "+", Bar: "#", Caret: "_",
	Levels: []string{".", ":", "-", "=", "+", "*", "%", "#"}, This: "^",
	Subst: strings.NewReplacer("−", "-", "→", ">", "·", ".", "…", "..", "▸", ">", "▾", "v", "←", "<", "↑", "^", "↓", "v", "⏎", "enter", "±", "+/-", "≈", "%", "≠", "~", "≤", "<=",
		"▌", ">", "×", "x", "µ", "u", "●", "*", "◐", "o", "▲", "!", "━", "=", "╍", "+", "╌", "-", "█", "#", "─", "-", "│", "|", "├", "+", "└", "+"),
}

// glyph chooses the character of one cell of a lane.
func (g *Glyphs) glyph(c lanes.Cell) string {
	switch c.Class {
	case lanes.Existed:
		return g.Existed
	case lanes.Had:
		return g.Claimed
	case lanes.Agrees:
		if c.Provisional {
			return g.AgreesMaybe
		}
		return g.Agrees
	case lanes.Behind:
		if c.Provisional {
			return g.BehindMaybe
		}
		return g.Behind
	case lanes.Stale:
		return g.Stale
	case lanes.InGap:
		return g.Gap
	case lanes.Blind:
		return g.Blind
	case lanes.PodPending:
		return g.Pending
	case lanes.PodStarting:
		return g.Starting
	case lanes.PodReady:
		return pick(c, g.ReadyAt, g.Ready, g.Ready, g.Claimed) // thin would read as starting: the tone tells
	case lanes.PodUnready:
		return pick(c, g.UnreadyAt, g.Unready, g.Unready, g.Claimed)
	case lanes.PodTerminating:
		return pick(c, g.TerminatingAt, g.Terminating, g.Terminating, g.Claimed)
	case lanes.PodStopped:
		return pick(c, g.StoppedAt, " ", " ", " ")
	case lanes.Span:
		switch {
		case c.Begins && c.Ends:
			return g.Dot
		case c.Begins:
			return g.SpanBegin
		case c.Ends:
			return g.SpanEnd
		}
		return g.Span
	case lanes.Point:
		return g.Dot
	case lanes.Alert:
		return g.Alert
	case lanes.Folded:
		return g.Fold
	}
	return " "
}

func pick(c lanes.Cell, begin, run, maybe, claimed string) string {
	switch {
	case c.Claimed:
		return claimed
	case c.Begins:
		return begin
	case c.Provisional:
		return maybe
	}
	return run
}
