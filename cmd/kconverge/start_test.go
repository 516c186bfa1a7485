package main

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// started runs the lab on a terminal until the seeded Service is drawn as
// converging and then as converged, and returns when that was and when the first
// frame was, from the program's start.
func started(t testing.TB) (first, converging, converged time.Duration) {
	t.Helper()
	h := newHome(t)
	begin := time.Now()
	x := h.open(t, 120, 36, "lab")
	var mu sync.Mutex
	x.onDraw(func(screen string, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		web := strings.Contains(screen, "default/web")
		switch {
		case first == 0 && strings.Contains(screen, "kconverge"):
			first = at.Sub(begin)
		case converging == 0 && web && strings.Contains(screen, "converging"):
			converging = at.Sub(begin)
		case converged == 0 && converging > 0 && web && strings.Contains(screen, "converged") && slicesShown(screen) == seeded:
			converged = at.Sub(begin)
		}
	})
	eventually(t, "the seeded Service is drawn converging and then converged", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return converged > 0
	})
	mu.Lock()
	defer mu.Unlock()
	return first, converging, converged
}

func TestTheFirstPictureIsTheSeededServiceConverging(t *testing.T) {
	first, converging, converged := started(t)
	if first == 0 || converging == 0 {
		t.Errorf("first frame %s, converging %s", first, converging)
	}
	t.Logf("first frame after %s, web converging after %s, converged after %s",
		first.Round(time.Millisecond), converging.Round(time.Millisecond), converged.Round(time.Millisecond))
}

// BenchmarkStart measures from the program's start to its first frame and to the
// seeded Service being drawn as converging.
func BenchmarkStart(b *testing.B) {
	var first, converging time.Duration
	for range b.N {
		f, c, _ := started(b)
		first, converging = max(first, f), max(converging, c)
	}
	b.ReportMetric(float64(first.Milliseconds()), "worst-first-frame-ms")
	b.ReportMetric(float64(converging.Milliseconds()), "worst-converging-ms")
	b.ReportMetric(0, "ns/op")
}

func TestATooSmallTerminalSaysWhichSizeItNeeds(t *testing.T) {
	h := newHome(t)
	x := h.open(t, 30, 6, "lab", "--nodes", "1")
	eventually(t, "the size it needs is drawn", func() bool {
		s := strings.Join(strings.Fields(x.screen()), " ")
		return strings.Contains(s, "needs") && strings.Contains(s, "this is 30 x 6")
	})
}
