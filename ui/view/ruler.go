package view

import (
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
)

// ruler is a linear axis of durations from zero.
type ruler struct {
	total time.Duration
	cols  int
	ticks []rulerTick
}

type rulerTick struct {
	col   int
	label string
}

// newRuler puts 1-2-5 ticks on cols columns that stand for total.
func newRuler(total time.Duration, cols int) ruler {
	r := ruler{total: max(total, time.Millisecond), cols: max(cols, 1)}
	step := r.total
	for _, m := range []time.Duration{1, 2, 5} {
		for d := time.Millisecond * m; d < 1000*24*time.Hour; d *= 10 {
			if d >= r.total/time.Duration(r.cols)*9 && d < step {
				step = d
			}
		}
	}
	taken := 0
	for d := time.Duration(0); d >= 0 && d <= r.total; d += step {
		t := rulerTick{r.col(d), lanes.SpanOf(d)}
		if d < time.Second && r.total >= time.Second {
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

// col is the column of d, clipped to the ruler.
func (r ruler) col(d time.Duration) int {
	return max(0, min(r.cols-1, int(float64(d)/float64(r.total)*float64(r.cols-1))))
}
