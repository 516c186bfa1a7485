package view

import (
	"math"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
)

// ruler is an axis of durations from zero: even, or by their logarithm from a
// millisecond on.
type ruler struct {
	total time.Duration
	cols  int
	log   bool
	ticks []rulerTick
}

type rulerTick struct {
	col   int
	label string
}

// newRuler puts ticks on cols columns that stand for total: of 1, 2 or 5 times a power
// of ten, or by logarithm at the powers.
func newRuler(total time.Duration, cols int, log bool) ruler {
	r := ruler{total: max(total, time.Millisecond), cols: max(cols, 1), log: log}
	taken := 0
	for _, d := range r.marks() {
		t := rulerTick{r.col(d), lanes.SpanOf(d)}
		if d < time.Second && r.total >= time.Second && !log {
			t.label = strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
		}
		if d == 0 {
			t.label = "0"
		}
		if t.col >= taken && t.col+len(t.label) <= r.cols {
			r.ticks = append(r.ticks, t)
			taken = t.col + len(t.label) + 2
		}
	}
	return r
}

// marks are the times at which ticks may stand.
func (r ruler) marks() (out []time.Duration) {
	if r.log {
		out = append(out, 0)
		for d := 10 * time.Millisecond; d <= r.total && d < 1000*time.Hour; d *= 10 {
			out = append(out, d)
		}
		return out
	}
	step := r.total
	for _, m := range []time.Duration{1, 2, 5} {
		for d := time.Millisecond * m; d < 1000*24*time.Hour; d *= 10 {
			if d >= r.total/time.Duration(r.cols)*9 && d < step {
				step = d
			}
		}
	}
	for d := time.Duration(0); d >= 0 && d <= r.total; d += step {
		out = append(out, d)
	}
	return out
}

// col is the column of d, clipped to the ruler.
func (r ruler) col(d time.Duration) int {
	at := float64(d) / float64(r.total)
	if r.log {
		of := func(d time.Duration) float64 { return math.Log1p(float64(max(d, 0)) / float64(time.Millisecond)) }
		at = of(d) / of(r.total)
	}
	return max(0, min(r.cols-1, int(at*float64(r.cols-1))))
}

func (r ruler) name() string {
	if r.log {
		return "log"
	}
	return "linear"
}
