package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestFaultsAreReported(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &timeline.Snapshot{First: at, Now: at.Add(time.Minute)}
	text := func(r *Report) string {
		var b strings.Builder
		if err := r.WriteText(&b, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	none := Build(s, nil)
	if b, err := json.Marshal(none); err != nil || strings.Contains(string(b), "faults") || strings.Contains(text(none), "fault") {
		t.Errorf("without faults: %s, %v", b, err)
	}
	s.Faults = []timeline.Fault{
		{Name: "sync-delay", Amount: "5s", Target: "node-2", By: "flag", From: at, To: at.Add(time.Second)},
		{Name: "workers", Amount: "1", From: at.Add(2 * time.Second)},
	}
	r := Build(s, nil)
	b, err := json.Marshal(r.Faults)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"sync-delay","amount":"5s","target":"node-2","by":"flag","from":"2026-01-01T12:00:00Z","to":"2026-01-01T12:00:01Z"},` +
		`{"name":"workers","amount":"1","from":"2026-01-01T12:00:02Z","to":null}]`
	if string(b) != want {
		t.Errorf("got %s\nwant %s", b, want)
	}
	for _, line := range []string{"fault  sync-delay 5s node-2  from 12:00:00.000 to 12:00:01.000", "fault  workers 1  from 12:00:02.000 in force"} {
		if got := text(r); !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}
