package lanes

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestTheConnectionsRowMarksEachFailureWhereItBegan(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	svc := &timeline.Service{Namespace: "default", Name: "web"}
	snap := &timeline.Snapshot{Now: s(40), Watermark: s(40), First: at, Services: []*timeline.Service{svc}}
	row := func() *Row {
		p := Build(snap, svc, Options{Cols: 40, To: s(40), Cell: time.Second})
		if i := p.Row("connections"); i >= 0 {
			return &p.Rows[i]
		}
		return nil
	}
	if row() != nil {
		t.Error("a row without traffic")
	}
	for i := 10; i < 40; i++ {
		svc.Connections = append(svc.Connections, timeline.ConnectionCount{From: s(i), To: s(i + 1), Node: "node-1", OK: 20})
	}
	r := row()
	if r == nil || r.Right != "20/s ok" || r.Cells[5].Class != Empty || r.Cells[20].Class != Agrees {
		t.Fatalf("row %+v", r)
	}
	for _, n := range []int{20, 21, 37} {
		svc.Failures = append(svc.Failures, timeline.ConnectionFailure{Began: s(n), Ended: s(n), Node: "node-1"})
	}
	r = row()
	for i, c := range r.Cells {
		if failed := i == 20 || i == 21 || i == 37; failed != (c.Class == Alert) {
			t.Errorf("column %d has class %d", i, c.Class)
		}
	}
	if r.Right != "1 failed in 5s" || r.Tone != Bad {
		t.Errorf("at the cursor %q, want that of the last seconds alone", r.Right)
	}
	if len(r.Texts) != 1 || r.Texts[0].Text != "2 failed" || r.Texts[0].Col != 23 {
		t.Errorf("texts %+v, want those of the two behind them, and no room for the last", r.Texts)
	}
}
