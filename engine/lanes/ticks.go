package lanes

import (
	"strings"
	"time"
	"unicode/utf8"
)

// steps are the times between labelled ticks: 1-2-5, and the parts of a clock
// above a second. Each comes with the number of minor parts.
var steps = []struct {
	d     time.Duration
	parts int
}{
	{10 * time.Microsecond, 2}, {20 * time.Microsecond, 2}, {50 * time.Microsecond, 5},
	{100 * time.Microsecond, 2}, {200 * time.Microsecond, 2}, {500 * time.Microsecond, 5},
	{time.Millisecond, 2}, {2 * time.Millisecond, 2}, {5 * time.Millisecond, 5},
	{10 * time.Millisecond, 2}, {20 * time.Millisecond, 2}, {50 * time.Millisecond, 5},
	{100 * time.Millisecond, 2}, {200 * time.Millisecond, 2}, {500 * time.Millisecond, 5},
	{time.Second, 2}, {2 * time.Second, 2}, {5 * time.Second, 5}, {10 * time.Second, 2}, {20 * time.Second, 2},
	{time.Minute, 2}, {2 * time.Minute, 2}, {5 * time.Minute, 5}, {10 * time.Minute, 2}, {20 * time.Minute, 2},
	{time.Hour, 2}, {2 * time.Hour, 2}, {6 * time.Hour, 2}, {12 * time.Hour, 2},
	{24 * time.Hour, 2}, {2 * 24 * time.Hour, 2}, {5 * 24 * time.Hour, 5}, {10 * 24 * time.Hour, 2},
}

// NewAxis places ticks on a scale in the given zone. Labels never overlap and
// stay inside the columns; the label at a local midnight is the date.
func NewAxis(s *Scale, loc *time.Location) Axis {
	if loc == nil {
		loc = time.UTC
	}
	from := s.From().In(loc)
	zone, _ := from.Zone()
	a := Axis{Date: from.Format("Jan 2"), Zone: zone}
	step, parts := stepFor(s.Cell)
	a.Step = step

	taken := 0 // columns up to here have a label
	first := true
	for _, g := range s.Segments {
		if g.Folded {
			f := Fold{Col: g.Col, Cols: g.Cols, From: g.From, To: g.To, Label: strings.ReplaceAll(Age(g.To.Sub(g.From)), " ", "")}
			w := utf8.RuneCountInString(f.Label) + 3
			if g.Col >= taken && g.Col+w <= s.Cols {
				f.Shown, taken = true, g.Col+w
			}
			a.Folds = append(a.Folds, f)
			first = true
			continue
		}
		used := -1
		minor := step / time.Duration(parts)
		for t := firstTick(g.From.In(loc), minor, step); t.Before(g.To); t = nextTick(t, minor) {
			if t.Before(g.From) {
				continue
			}
			col := g.Col + int(t.Sub(g.From)/s.Cell)
			if col == used || col >= g.Col+g.Cols {
				continue // zone changes can put two ticks into one column
			}
			used = col
			tick := Tick{Col: col, At: t}
			if onStep(t, step) {
				label := tickLabel(t, step, first)
				w := utf8.RuneCountInString(label)
				if col >= taken && col+w <= s.Cols {
					tick.Label, taken, first = label, col+w+1, false
				}
			}
			a.Ticks = append(a.Ticks, tick)
		}
	}
	return a
}

// stepFor is the smallest step whose labels have room: the widest short label
// of the step and a gap.
func stepFor(cell time.Duration) (time.Duration, int) {
	for _, s := range steps {
		if s.d >= cell*time.Duration(labelWidth(s.d)+4) {
			return s.d, s.parts
		}
	}
	last := steps[len(steps)-1]
	for n := time.Duration(2); ; n++ {
		if d := last.d * n; d >= cell*10 {
			return d, last.parts
		}
	}
}

// labelWidth is the width of the labels that most ticks of the step get.
func labelWidth(step time.Duration) int {
	switch {
	case step < time.Millisecond:
		return len(":05.00000")
	case step < 10*time.Millisecond:
		return len(":05.000")
	case step < time.Second:
		return len(":05.00")
	case step < time.Minute:
		return len("15:04:05") // the first one
	}
	return len("15:04")
}

func tickLabel(t time.Time, step time.Duration, first bool) string {
	if t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 && t.Nanosecond() == 0 {
		return t.Format("Jan 2")
	}
	if step >= 24*time.Hour {
		return t.Format("Jan 2")
	}
	if step >= time.Minute {
		return t.Format("15:04")
	}
	frac := ""
	switch {
	case step < time.Millisecond:
		frac = ".00000"
	case step < 10*time.Millisecond:
		frac = ".000"
	case step < 100*time.Millisecond:
		frac = ".00"
	case step < time.Second:
		frac = ".0"
	}
	minute := t.Second() == 0 && t.Nanosecond() == 0
	if first || minute {
		if minute && !first || step >= time.Second {
			return t.Format("15:04:05")
		}
		return t.Format("15:04:05" + frac)
	}
	return t.Format(":05" + frac)
}

// midnight is the first moment of t's local day.
func midnight(t time.Time) time.Time {
	y, m, d := t.Date()
	return startOfDay(y, m, d, t.Location())
}

// startOfDay is the first moment of a local day; in some zones summer time
// begins at midnight, and that day begins at one.
func startOfDay(y int, m time.Month, d int, loc *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	if noon := time.Date(y, m, d, 12, 0, 0, 0, loc); t.Day() != noon.Day() {
		t = t.Add(time.Hour)
	}
	return t
}

// daysLater is the first moment of the day n days after t's.
func daysLater(t time.Time, n int) time.Time {
	y, m, d := t.Date()
	return startOfDay(y, m, d+n, t.Location())
}

// firstTick is a tick at or before t.
func firstTick(t time.Time, minor, step time.Duration) time.Time {
	if step >= 24*time.Hour {
		// Days count from a fixed one, so that ticks stay where they are.
		n := dayNumber(t) / int(step/(24*time.Hour)) * int(step/(24*time.Hour))
		return daysLater(t, n-dayNumber(t))
	}
	m := midnight(t)
	return m.Add(t.Sub(m) / minor * minor)
}

func nextTick(t time.Time, minor time.Duration) time.Time {
	if minor >= 24*time.Hour {
		return daysLater(t, int(minor/(24*time.Hour)))
	}
	next := t.Add(minor)
	// A day of 23 or 25 hours ends at its own midnight.
	if tomorrow := daysLater(t, 1); next.After(tomorrow) && t.Before(tomorrow) {
		return tomorrow
	}
	return next
}

// onStep tells whether t stands on a whole step of its local day.
func onStep(t time.Time, step time.Duration) bool {
	m := midnight(t)
	if step >= 24*time.Hour {
		return t.Equal(m) && dayNumber(t)%int(step/(24*time.Hour)) == 0
	}
	return t.Sub(m)%step == 0
}

// dayNumber counts local calendar days from a fixed one.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}
