package main

import (
	"fmt"
	"io"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// sayAfter is how long something is awaited in silence, and how long there is
// between two lines about it.
const sayAfter = 5 * time.Second

// saying makes a condition tell on w what it waits for, once that takes long and
// whenever it becomes something else. Time is that of the snapshots.
func saying(cond live.Condition, w io.Writer) live.Condition {
	var said string
	var from, last time.Time
	return func(s *timeline.Snapshot) (bool, string) {
		ok, why := cond(s)
		if from.IsZero() {
			from, last = s.Now, s.Now
		}
		if !ok && why != said && s.Now.Sub(last) >= sayAfter {
			fmt.Fprintf(w, "kconverge: waiting for %s (%s)\n", collect.Plain(why), s.Now.Sub(from).Round(time.Second))
			said, last = why, s.Now
		}
		return ok, why
	}
}
