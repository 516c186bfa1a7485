package lanes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestEachFaultHasItsRow(t *testing.T) {
	snap := lanestest.Converging()
	now := snap.Now
	o := lanes.Options{Cols: 100, To: now, Cell: 100 * time.Millisecond}
	if p := lanes.Build(snap, snap.Services[0], o); p.Row("fault/sync-delay@node-2") >= 0 {
		t.Fatal("a row of a fault that there is not")
	}
	snap.Faults = []timeline.Fault{
		{Name: "sync-delay", Amount: "5s", Target: "node-2", From: now.Add(-8 * time.Second), To: now.Add(-6 * time.Second)},
		{Name: "workers", Amount: "1", From: now.Add(-time.Hour), To: now.Add(-time.Minute)},
		{Name: "sync-delay", Amount: "7s", Target: "node-2", From: now.Add(-4 * time.Second)},
	}
	p := lanes.Build(snap, snap.Services[0], o)
	n := p.Row("fault/sync-delay@node-2")
	if n < 0 || p.Row("fault/workers@") >= 0 {
		t.Fatalf("rows: %d, %d", n, p.Row("fault/workers@"))
	}
	r := p.Rows[n]
	at := func(before time.Duration) lanes.Cell { return r.Cells[p.Scale.Col(now.Add(-before))] }
	for before, want := range map[time.Duration]lanes.Class{9 * time.Second: lanes.Empty, 7 * time.Second: lanes.Span, 5 * time.Second: lanes.Empty, 2 * time.Second: lanes.Span} {
		if got := at(before).Class; got != want {
			t.Errorf("%v before now: class %d, want %d", before, got, want)
		}
	}
	if !at(8*time.Second).Begins || !at(4*time.Second).Begins || at(7*time.Second).Ends {
		t.Error("the ends of the intervals are not where they are")
	}
	var texts []string
	for _, x := range r.Texts {
		texts = append(texts, strings.TrimSpace(x.Text))
	}
	if got := strings.Join(texts, "|"); got != "5s node-2|7s node-2" {
		t.Errorf("texts %q", got)
	}
	if r.Label != "sync-delay" || r.Right != "7s" {
		t.Errorf("label %q, right %q", r.Label, r.Right)
	}
	o.Cursor = now.Add(-7 * time.Second)
	if r := lanes.Build(snap, snap.Services[0], o).Rows[n]; r.Right != "5s" {
		t.Errorf("at the cursor %q, want 5s", r.Right)
	}
}
