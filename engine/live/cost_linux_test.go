package live_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// cpu is the user time of the program so far: other programs on the machine do not
// count in it, as they do in a benchmark's time.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano())
}

// BenchmarkReplayCost tells what reading a recording costs, what the model does, and
// both, in user time for each event.
func BenchmarkReplayCost(b *testing.B) {
	file := recordedSession(b, flapping(20_000), 0)
	var events []collect.Event
	read := func(do func(collect.Event)) {
		for r := file.Read(0); ; {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				b.Fatal(err)
			}
			do(e)
		}
	}
	read(func(e collect.Event) { events = append(events, e) })
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"read", func() { read(func(collect.Event) {}) }},
		{"model", func() {
			m := live.NewModel(timeline.Options{})
			for _, e := range events {
				m.Apply(e)
			}
		}},
		{"both", func() {
			m := live.NewModel(timeline.Options{})
			read(m.Apply)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				c.run()
			}
			spent := cpu(b) - before
			n := float64(b.N) * float64(len(events))
			b.ReportMetric(float64(spent.Nanoseconds())/n, "cpu-ns/event")
			b.ReportMetric(n/spent.Seconds(), "events/cpu-s")
		})
	}
}
