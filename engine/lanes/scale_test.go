package lanes

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 11, 29, 12, 4, 8, 0, time.UTC)

// drawScale makes a scale with some folds.
func drawScale(t *rapid.T) (*Scale, []Interval) {
	cell := time.Duration(rapid.Int64Range(int64(30*time.Microsecond), int64(12*time.Hour)).Draw(t, "cell"))
	cols := rapid.IntRange(1, 300).Draw(t, "cols")
	to := t0.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "to")))
	var quiet []Interval
	end := to
	for i := rapid.IntRange(0, 4).Draw(t, "folds"); i > 0; i-- {
		until := end.Add(-time.Duration(rapid.Int64Range(1, int64(cell)*60).Draw(t, "busy")))
		from := until.Add(-time.Duration(rapid.Int64Range(1, int64(cell)*500).Draw(t, "quiet")))
		quiet = append([]Interval{{from, until}}, quiet...)
		end = from
	}
	return NewScale(to, cell, cols, quiet), quiet
}

func TestEveryColumnStandsForTheTimeThatItIsTheColumnOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawScale(t)
		for c := 0; c < s.Cols; c++ {
			if got := s.Col(s.Span(c).From); got != c {
				t.Fatalf("column %d begins at %v, whose column is %d", c, s.Span(c).From, got)
			}
			if c > 0 && s.Span(c).From.Before(s.Span(c-1).From) {
				t.Fatalf("column %d begins before column %d", c, c-1)
			}
		}
		if s.Col(s.From().Add(-1)) != -1 || s.Col(s.To()) != s.Cols {
			t.Fatalf("the edges are columns %d and %d", s.Col(s.From().Add(-1)), s.Col(s.To()))
		}
	})
}

func TestSegmentsCoverTheColumnsWithoutHoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawScale(t)
		col := 0
		for i, g := range s.Segments {
			if g.Col != col {
				t.Fatalf("segment %d begins at column %d, want %d", i, g.Col, col)
			}
			col += g.Cols
			if i > 0 && !s.Segments[i-1].To.Equal(g.From) {
				t.Fatalf("time is missing before segment %d", i)
			}
		}
		if col != s.Cols {
			t.Fatalf("segments end at column %d of %d", col, s.Cols)
		}
	})
}

func TestOnlyQuietTimeIsFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, quiet := drawScale(t)
		for _, g := range s.Segments {
			if !g.Folded {
				continue
			}
			ok := false
			for _, q := range quiet {
				ok = ok || !g.From.Before(q.From) && !g.To.After(q.To)
			}
			if !ok {
				t.Fatalf("%v..%v is folded and not quiet", g.From, g.To)
			}
			if g.To.Sub(g.From) <= s.Cell*FoldCols {
				t.Fatalf("a fold of %v saves nothing at %v a cell", g.To.Sub(g.From), s.Cell)
			}
		}
	})
}

func TestZoomingInAndOutPassesTheSameCells(t *testing.T) {
	c := time.Millisecond
	var seen []time.Duration
	for {
		seen = append(seen, c)
		next := Zoom(c, false)
		if next == c {
			break
		}
		c = next
	}
	for i := len(seen) - 1; i > 0; i-- {
		if got := Zoom(seen[i], true); got != seen[i-1] {
			t.Fatalf("zooming in from %v gives %v, out gave %v", seen[i], got, seen[i-1])
		}
	}
	if len(seen) < 20 || seen[len(seen)-1] != 12*time.Hour {
		t.Fatalf("zoom levels: %v", seen)
	}
}
