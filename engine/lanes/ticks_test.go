package lanes

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Zones with summer time (one of half an hour, two that change at midnight), a
// half-hour offset, and none.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana"}

func TestTicksNeverOverlapFromTenMillisecondsToThirtyDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.IntRange(40, 300).Draw(t, "cols")
		window := time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(30*24*time.Hour)).Draw(t, "window"))
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		// Within a year, so that summer time begins and ends.
		to := t0.Add(time.Duration(rapid.Int64Range(0, int64(365*24*time.Hour)).Draw(t, "to")))
		s := NewScale(to, window/time.Duration(cols), cols, nil)
		checkAxis(t, s, NewAxis(s, loc), loc)
	})
}

func TestTicksNeverOverlapAcrossFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawScale(t)
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		a := NewAxis(s, loc)
		end := 0
		for _, f := range a.Folds {
			if f.Shown && f.Col < end {
				t.Fatalf("fold label at %d overlaps", f.Col)
			}
		}
		checkTicks(t, s, a, loc)
	})
}

func checkAxis(t *rapid.T, s *Scale, a Axis, loc *time.Location) {
	labels := checkTicks(t, s, a, loc)
	if labels < 1 || labels < 2 && s.Cols >= 80 {
		t.Fatalf("%d labels on %d columns of %v", labels, s.Cols, s.Cell)
	}
	if a.Zone == "" || a.Date == "" {
		t.Fatalf("axis says date %q and zone %q", a.Date, a.Zone)
	}
	if !roundStep(a.Step) {
		t.Fatalf("step %v is not one of 1-2-5", a.Step)
	}
	if name, _ := s.From().In(loc).Zone(); a.Zone != name || a.Date != s.From().In(loc).Format("Jan 2") {
		t.Fatalf("axis from %v says date %q and zone %q", s.From().In(loc), a.Date, a.Zone)
	}
	checkSteps(t, a, loc)
}

// roundStep tells whether a step is 1, 2 or 5 times a power of ten, in seconds, minutes
// or days; of hours it may be as many as part a day.
func roundStep(d time.Duration) bool {
	for _, unit := range []time.Duration{24 * time.Hour, time.Minute, time.Second} {
		if d%unit == 0 {
			switch d / unit {
			case 1, 2, 5, 10, 20:
				return true
			}
		}
	}
	if d%time.Hour == 0 {
		h := d / time.Hour
		return h == 1 || h == 2 || h == 6 || h == 12
	}
	for ; d >= 10; d /= 10 {
		if d%10 != 0 {
			return false
		}
	}
	return d == 1 || d == 2 || d == 5
}

// checkSteps: labels stand a step apart, by the clock of the zone, or several where one
// had no room.
func checkSteps(t *rapid.T, a Axis, loc *time.Location) {
	clock := func(at time.Time) time.Duration {
		_, offset := at.In(loc).Zone()
		return time.Duration(at.UnixNano()) + time.Duration(offset)*time.Second
	}
	for _, k := range a.Ticks {
		if k.Label == "" {
			continue
		}
		step := a.Step
		if step > 24*time.Hour {
			step = 24 * time.Hour // which day they begin with is the calendar's affair
		}
		if clock(k.At)%step != 0 {
			t.Fatalf("label %q at %v is no multiple of %v by the clock", k.Label, k.At.In(loc), a.Step)
		}
	}
}

// checkTicks returns the number of labels.
func checkTicks(t *rapid.T, s *Scale, a Axis, loc *time.Location) int {
	labels, end, last := 0, 0, -1
	taken := make([]bool, s.Cols)
	for _, f := range a.Folds {
		if f.Shown {
			for c := f.Col; c < f.Col+2+utf8.RuneCountInString(f.Label); c++ {
				taken[c] = true
			}
		}
	}
	for _, k := range a.Ticks {
		if k.Col <= last || k.Col >= s.Cols {
			t.Fatalf("tick at column %d after %d of %d", k.Col, last, s.Cols)
		}
		last = k.Col
		if got := s.Col(k.At); got != k.Col {
			t.Fatalf("tick of %v stands at %d, its column is %d", k.At, k.Col, got)
		}
		if k.Label == "" {
			continue
		}
		labels++
		if k.Col < end {
			t.Fatalf("label %q at %d overlaps the one before, which ends at %d", k.Label, k.Col, end)
		}
		w := utf8.RuneCountInString(k.Label)
		for c := k.Col; c < k.Col+w; c++ {
			if c >= s.Cols || taken[c] {
				t.Fatalf("label %q at %d of %d columns leaves the axis or lies on a fold's", k.Label, k.Col, s.Cols)
			}
		}
		end = k.Col + w + 1
		lt := k.At.In(loc)
		if lt.Equal(midnight(lt)) && k.Label != lt.Format("Jan 2") {
			t.Fatalf("midnight is labelled %q", k.Label)
		}
		if !lt.Equal(midnight(lt)) && a.Step < 24*time.Hour && !strings.Contains(k.Label, ":") {
			t.Fatalf("%v is labelled %q", lt, k.Label)
		}
	}
	return labels
}

func TestAxisOfTheMockUp(t *testing.T) {
	to := time.Date(2026, 11, 29, 12, 4, 19, 125e6, time.UTC)
	quiet := []Interval{{to.Add(-time.Hour), to.Add(-9750 * time.Millisecond)}}
	a := NewAxis(NewScale(to, 125*time.Millisecond, 80, quiet), time.UTC)
	var got []string
	for _, k := range a.Ticks {
		if k.Label != "" {
			got = append(got, k.Label)
		}
	}
	if s := strings.Join(got, " "); s != "12:04:10 :12 :14 :16 :18" && s != "12:04:12 :14 :16 :18" {
		t.Errorf("labels %q", s)
	}
	if len(a.Folds) != 1 || !a.Folds[0].Shown || a.Folds[0].Label != "59m50s" {
		t.Errorf("folds %+v", a.Folds)
	}
}

func TestMidnightIsLabelledWithTheDate(t *testing.T) {
	loc := zone(t, "Europe/Berlin")
	to := time.Date(2026, 3, 29, 1, 0, 0, 0, loc)
	a := NewAxis(NewScale(to, time.Minute, 120, nil), loc)
	found := false
	for _, k := range a.Ticks {
		found = found || k.Label == "Mar 29"
	}
	if !found {
		t.Errorf("no label Mar 29 among %+v", a.Ticks)
	}
}
