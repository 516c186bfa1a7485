package lanes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func changeText(p *timeline.Path, now time.Time, room int) string {
	var out []string
	for _, l := range lanes.Change(p, now, time.UTC, room) {
		out = append(out, strings.TrimSpace(l.Label+" "+l.Text))
	}
	return strings.Join(out, "\n")
}

func TestNodesAreCountedOnlyWhereTheirLinesDoNotFit(t *testing.T) {
	snap := lanestest.Converging()
	p := snap.Services[0].Path("add-web-7d9c4b-x7k2p") // cause, by, slice, endpoints and three nodes
	if got := changeText(p, snap.Now, 7); !strings.HasSuffix(got, "node-1 +0.24 s\nnode-2 +0.98 s\nnode-3 +2.92 s") {
		t.Errorf("with room for all:\n%s", got)
	}
	if got := changeText(p, snap.Now, 6); !strings.HasSuffix(got, "node-3 +2.92 s\nand 2 nodes sooner") {
		t.Errorf("with room for two:\n%s", got)
	}
	open := *p
	open.Rules = append([]timeline.Hop(nil), p.Rules...)
	for i := range open.Rules[:2] {
		open.Rules[i].Status, open.Rules[i].At = timeline.StatusOpen, time.Time{}
	}
	if got := changeText(&open, snap.Now, 6); !strings.HasSuffix(got, "\nand 2 nodes more, 1 not yet") {
		t.Errorf("when one that is left out has not followed:\n%s", got)
	}
	open.Rules[1].Status = timeline.StatusSuperseded
	if got := changeText(&open, snap.Now, 6); !strings.HasSuffix(got, "\nand 2 nodes more") {
		t.Errorf("when one that is left out never will:\n%s", got)
	}
}

func TestTheNeededPreStopIsNeverLessThanWhatANodeTook(t *testing.T) {
	snap := lanestest.Converging()
	p := *snap.Services[0].Path("remove-web-7d9c4b-x7k2p")
	// The Snapshot is older than the frame.
	if got := changeText(&p, snap.Now.Add(time.Second), 20); !strings.Contains(got, "node-3 not yet, 3.35 s") || !strings.Contains(got, "needs a preStop above 3.35 s, growing") {
		t.Errorf("while it grows:\n%s", got)
	}
	short := 600 * time.Millisecond
	p.Rules, p.Risk = p.Rules[:2], timeline.Risk{FromTermination: &short}
	if got := changeText(&p, snap.Now, 20); !strings.Contains(got, "node-2 +0.88 s") || !strings.Contains(got, "needs a preStop above 0.88 s") {
		t.Errorf("once all have followed:\n%s", got)
	}
}
