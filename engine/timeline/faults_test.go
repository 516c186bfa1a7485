package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func TestFaultsAreIntervals(t *testing.T) {
	m := New(Options{Retention: time.Hour})
	tell := func(after time.Duration, f collect.Fault) {
		m.Apply(collect.Event{At: epoch.Add(after), Source: collect.SourceUser, Payload: &f})
	}
	said := func() string {
		var out []string
		for _, f := range m.Snapshot().Faults {
			to := "…"
			if !f.To.IsZero() {
				to = f.To.Sub(epoch).String()
			}
			out = append(out, fmt.Sprintf("%s: %v-%s", f.Text(), f.From.Sub(epoch), to))
		}
		return strings.Join(out, "\n")
	}
	want := func(now time.Duration, lines ...string) {
		t.Helper()
		m.Apply(advance(epoch.Add(now)))
		if got := said(); got != strings.Join(lines, "\n") {
			t.Errorf("at %v:\n%s\nwant:\n%s", now, got, strings.Join(lines, "\n"))
		}
	}
	delay := collect.Fault{Name: "sync-delay", Amount: "5s", Target: "node-2"}
	other := collect.Fault{Name: "sync-delay", Amount: "1s", Target: "node-1"}
	ended := func(f collect.Fault) collect.Fault { f.Ended = true; return f }
	tell(time.Second, delay)
	tell(2*time.Second, other)
	want(3*time.Second, "sync-delay 5s node-2: 1s-…", "sync-delay 1s node-1: 2s-…")
	before := m.Snapshot()
	tell(4*time.Second, ended(delay))
	tell(5*time.Second, collect.Fault{Name: "sync-delay", Amount: "7s", Target: "node-2"})
	tell(6*time.Second, collect.Fault{Refused: "no fault is called so"})
	tell(7*time.Second, ended(collect.Fault{Name: "workers", Amount: "1"})) // began before anything was seen
	all := []string{"sync-delay 5s node-2: 1s-4s", "sync-delay 1s node-1: 2s-…", "sync-delay 7s node-2: 5s-…"}
	want(8*time.Second, all...)
	if n := len(before.Faults); n != 2 || !before.Faults[0].To.IsZero() {
		t.Error("a snapshot changed after it was given out")
	}
	// A recording that begins in the middle says again what stands.
	again := other
	again.Since = epoch.Add(2 * time.Second)
	tell(9*time.Second, again)
	want(10*time.Second, all...)
	m2 := New(Options{})
	m2.Apply(collect.Event{At: epoch.Add(9 * time.Second), Source: collect.SourceUser, Payload: &again})
	m2.Apply(advance(epoch.Add(10 * time.Second)))
	if f := m2.Snapshot().Faults; len(f) != 1 || !f[0].From.Equal(again.Since) {
		t.Errorf("said again: %+v", f)
	}
	refused := false
	for _, x := range m.Snapshot().Marks {
		refused = refused || x.Kind == "fault" && strings.Contains(x.Text, "refused: no fault is called so")
	}
	if !refused {
		t.Error("no mark tells of what was refused")
	}
	b, err := m.Checkpoint(nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = Restore(b); err != nil {
		t.Fatal(err)
	}
	want(11*time.Second, all...)
	// What ended before the retention is forgotten, what is in force is not.
	want(30*time.Minute, all...)
	want(2*time.Hour, all[1:]...)
}
