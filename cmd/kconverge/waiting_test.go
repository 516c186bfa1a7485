package main

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestALongWaitSaysWhatForAndDoesNotRepeatItself(t *testing.T) {
	var out strings.Builder
	why := ""
	c := saying(func(*timeline.Snapshot) (bool, string) { return why == "", why }, &out)
	start := time.Unix(1000, 0)
	for _, x := range []struct {
		at   time.Duration
		why  string
		says string
	}{
		{0, "a", ""},
		{4900 * time.Millisecond, "a", ""},
		{5 * time.Second, "a", "kconverge: waiting for a (5s)\n"},
		{20 * time.Second, "a", ""},
		{21 * time.Second, "b\x1b[2J", "kconverge: waiting for b[2J (21s)\n"},
		{22 * time.Second, "c", ""}, // not so soon
		{27 * time.Second, "c", "kconverge: waiting for c (27s)\n"},
		{60 * time.Second, "", ""},
	} {
		out.Reset()
		why = x.why
		if ok, got := c(&timeline.Snapshot{Now: start.Add(x.at)}); ok != (x.why == "") || got != x.why {
			t.Errorf("at %s: %v %q", x.at, ok, got)
		}
		if out.String() != x.says {
			t.Errorf("at %s: %q, want %q", x.at, out.String(), x.says)
		}
	}
}
