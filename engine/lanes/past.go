package lanes

import (
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// pastClass says what a stretch of a plane's claimed past means.
func pastClass(k timeline.PastKind) Class {
	switch k {
	case timeline.PastHad:
		return Had
	case timeline.PastGap:
		return InGap
	}
	return Existed
}

// past paints what is claimed of the time before a plane was observed.
func (b *builder) past(cells []Cell, p *timeline.Past) {
	if p == nil {
		return
	}
	for i, c := range p.Changes {
		to := p.Until
		if i+1 < len(p.Changes) {
			to = p.Changes[i+1].At
		}
		b.paint(cells, c.At, to, pastClass(c.Kind), true)
	}
}

// unknown, as a count, is one that nobody tells.
const unknown = -1

// pastCounts is how many endpoints a plane is said to have had.
func pastCounts(p *timeline.Past) []timeline.Count {
	if p == nil {
		return nil
	}
	out := make([]timeline.Count, 0, len(p.Changes))
	for _, c := range p.Changes {
		n := unknown
		if c.Kind == timeline.PastHad {
			n = c.Have
		}
		if k := len(out); k > 0 && out[k-1].At.Equal(c.At) {
			out[k-1].N = n
			continue
		}
		out = append(out, timeline.Count{At: c.At, N: n})
	}
	return out
}

// pastMoments are when a plane is said to have changed. That a log begins, or has
// a gap, is no change: a lane shows it without any time being kept for it.
func pastMoments(p *timeline.Plane) []time.Time {
	if p.Past == nil {
		return nil
	}
	var out []time.Time
	for i, c := range p.Past.Changes {
		if c.Kind == timeline.PastGap || p.ID.Kind == timeline.PlaneRules && (i == 0 || c.Note == "") {
			continue
		}
		out = append(out, c.At)
	}
	return out
}

// claims counts over time how many planes are said to have had some number of
// endpoints.
func claims(planes []*timeline.Plane) []timeline.Count {
	type change struct {
		at time.Time
		n  int
	}
	var changes []change
	for _, p := range planes {
		if p.Past == nil {
			continue
		}
		had := false
		turn := func(at time.Time, to bool) {
			if to != had {
				changes = append(changes, change{at, map[bool]int{true: 1, false: -1}[to]})
			}
			had = to
		}
		for _, c := range p.Past.Changes {
			turn(c.At, c.Kind == timeline.PastHad)
		}
		turn(p.Past.Until, false)
	}
	sort.SliceStable(changes, func(i, j int) bool { return changes[i].at.Before(changes[j].at) })
	var out []timeline.Count
	n := 0
	for _, c := range changes {
		n += c.n
		if k := len(out); k > 0 && out[k-1].At.Equal(c.at) {
			out[k-1].N = n
			continue
		}
		out = append(out, timeline.Count{At: c.at, N: n})
	}
	return out
}

// Beginning is the earliest time that anything is said of: the first event, or
// what is claimed of a plane before it.
func Beginning(snap *timeline.Snapshot, svc *timeline.Service) time.Time {
	t := snap.First
	for _, p := range planesOf(svc) {
		if p.Past != nil && (t.IsZero() || p.Past.Changes[0].At.Before(t)) {
			t = p.Past.Changes[0].At
		}
	}
	return t
}

// planesOf are the planes of a Service that there are: slices, endpoints, rules.
func planesOf(svc *timeline.Service) []*timeline.Plane {
	rules := svc.Rules.All()
	out := make([]*timeline.Plane, 0, 2+len(rules))
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, rules...) {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// planeLabel is what people call a plane.
func planeLabel(id timeline.PlaneID) string {
	switch id.Kind {
	case timeline.PlaneRules:
		return id.Node
	case timeline.PlaneEndpoints:
		return "endpoints v1"
	}
	return string(id.Kind)
}

// claimedText says that a time is claimed, how far it may be off, and by what:
// "claimed ±1 s by the server's clock", "claimed ±300 ms or earlier by its log".
func claimedText(id timeline.PlaneID, c timeline.PastChange) string {
	s := "claimed"
	if c.Error > 0 {
		s += " ±" + SpanOf(c.Error)
	}
	if c.OneSided || !c.NotBefore.IsZero() {
		s += " or earlier"
	}
	if id.Kind == timeline.PlaneRules {
		return s + " by its log"
	}
	return s + " by the server's clock"
}

// pastState is a claimed state in a few characters.
func pastState(c timeline.PastChange) (long, short string, tone Tone) {
	switch c.Kind {
	case timeline.PastHad:
		return strconv.Itoa(c.Have) + " claimed", strconv.Itoa(c.Have) + " claimed", Dim
	case timeline.PastGap:
		return "?  gap", "? gap", Warn
	}
	return "?  existed", "? existed", Dim
}

// pastRow is the line of the table "at this instant" for an instant of which
// there are only claims. It shows no difference: nothing was wanted then.
func pastRow(r InstantRow, id timeline.PlaneID, c timeline.PastChange) InstantRow {
	r.Set, r.Tone = "?", Dim
	switch c.Kind {
	case timeline.PastHad:
		r.Set, r.Diff, r.Note = strconv.Itoa(c.Have), claimedText(id, c), c.Note
	case timeline.PastGap:
		r.Diff, r.Tone = "not known: a gap in the agent's log", Warn
	default:
		r.Diff = "existed, " + claimedText(id, c)
	}
	return r
}

// Before tells, of each plane, when it changed last by what is claimed, in at most
// room lines: "11:16:58 ±1 s, 47m12s ago", "by 11:16:59, 47m11s ago" (at the
// latest), "not since 11:53:58".
func Before(svc *timeline.Service, now time.Time, loc *time.Location, room int) []ChangeLine {
	var out []ChangeLine
	for _, p := range planesOf(svc) {
		if p.Past != nil && len(out) < room {
			out = append(out, ChangeLine{Label: planeLabel(p.ID), Text: lastChange(p, now, loc), Tone: Dim})
		}
	}
	return out
}

func lastChange(p *timeline.Plane, now time.Time, loc *time.Location) string {
	list := p.Past.Changes
	c := list[len(list)-1]
	at := clock(c.At, now, loc)
	if c.Error > 0 {
		at += " ±" + SpanOf(c.Error)
	}
	switch {
	case c.Kind == timeline.PastGap:
		return "not known: a gap since " + at
	case c.Kind == timeline.PastExisted:
		return "not known, exists since " + at
	case len(list) > 1 && list[len(list)-2].Kind == timeline.PastGap:
		return "not since " + at + ", a gap before"
	case p.ID.Kind == timeline.PlaneRules && c.Note == "":
		return "not since " + at
	}
	if c.OneSided || !c.NotBefore.IsZero() {
		at = "by " + at
	}
	return at + ", " + Age(now.Sub(c.At)) + " ago"
}

// clock writes a time of day, with the date when that is another day.
func clock(t, now time.Time, loc *time.Location) string {
	if loc == nil {
		loc = time.UTC
	}
	t, now = t.In(loc), now.In(loc)
	if dayNumber(t) != dayNumber(now) {
		return t.Format("Jan 2 15:04:05")
	}
	return t.Format("15:04:05")
}
