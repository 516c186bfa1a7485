package ui_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// BenchmarkFrame draws whole frames of 200x50 and turns them into what is sent
// to Bubble Tea.
func BenchmarkFrame(b *testing.B) {
	for _, v := range []struct{ name, key string }{{"timeline", "2"}, {"path", "3"}, {"services", "1"}} {
		b.Run(v.name, func(b *testing.B) {
			snap := lanestest.Converging()
			m, err := ui.New(options(&clock{t: snap.Now}))
			if err != nil {
				b.Fatal(err)
			}
			m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
			m.Update(ui.Show(snap))
			m.Update(tea.KeyPressMsg{Code: rune(v.key[0]), Text: v.key})
			b.ReportAllocs()
			for b.Loop() {
				m.Frame()
			}
		})
	}
}

// frames measures frames one by one: from a message to what goes to Bubble Tea.
type frames struct {
	b     *testing.B
	m     *ui.Model
	clock *clock
	took  []time.Duration
	cpu   []time.Duration
	bytes int
}

func newFrames(b *testing.B, focus string, snap *timeline.Snapshot, keys ...string) *frames {
	runtime.LockOSThread() // for threadTime
	b.Cleanup(runtime.UnlockOSThread)
	f := &frames{b: b, clock: &clock{t: snap.Now}}
	o := options(f.clock)
	o.Focus = focus
	m, err := ui.New(o)
	if err != nil {
		b.Fatal(err)
	}
	f.m = m
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
	f.show(snap)
	for _, k := range keys {
		f.press(k)
	}
	f.took, f.cpu, f.bytes = nil, nil, 0
	b.ResetTimer()
	return f
}

// frame measures one. The benchmark's own time holds the model's work too: what
// counts are the percentiles.
func (f *frames) frame(msg tea.Msg) {
	start, cpu := time.Now(), threadTime()
	f.m.Update(msg)
	v := f.m.View()
	f.took, f.cpu = append(f.took, time.Since(start)), append(f.cpu, threadTime()-cpu)
	f.bytes += len(v.Content)
}

func (f *frames) show(snap *timeline.Snapshot) {
	f.clock.set(snap.Now)
	f.frame(ui.Show(snap))
}

func (f *frames) press(key string) {
	msg := tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
	if c, ok := named[key]; ok {
		msg = tea.KeyPressMsg{Code: c}
	}
	f.frame(msg)
}

// report gives the percentiles of the time and of the processor time of a frame, in
// milliseconds, and the bytes of a frame as it is
// handed to Bubble Tea, which sends only what differs from the one before.
func (f *frames) report() {
	for what, took := range map[string][]time.Duration{"ms": f.took, "cpu-ms": f.cpu} {
		slices.Sort(took)
		for name, share := range map[string]float64{"p50-": 0.50, "p99-": 0.99} {
			f.b.ReportMetric(float64(took[min(len(took)-1, int(share*float64(len(took))))].Microseconds())/1000, name+what)
		}
	}
	f.b.ReportMetric(float64(len(f.took)), "frames")
	f.b.ReportMetric(float64(f.bytes)/float64(len(f.took)), "B/frame")
}

// BenchmarkFrame10000Services draws the Services view among 10,000 Services: after
// each snapshot in which one of them has changed, and after each key typed into
// the filter. An operation is one change of one Service with all that follows it
// (five snapshots), or one word typed and taken away again.
func BenchmarkFrame10000Services(b *testing.B) {
	t := newTown(10000, 3, 3)
	b.Run("changing", func(b *testing.B) {
		f := newFrames(b, "", t.m.Snapshot(), "1")
		for i := range b.N {
			t.change(i*7%10000, 0, i%2 == 1, 1, f.show)
		}
		f.report()
	})
	b.Run("filtering", func(b *testing.B) {
		f := newFrames(b, "", t.m.Snapshot(), "1", "/")
		for range b.N {
			for _, k := range []string{"s", "v", "c", "0", "4", "2", "space", "!", "7", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace"} {
				f.press(k)
			}
		}
		f.report()
	})
}

// BenchmarkFrame100Pods50Nodes draws the views of one Service of 100 pods on 50
// nodes, after each of the 52 snapshots of a change (an operation).
func BenchmarkFrame100Pods50Nodes(b *testing.B) {
	for _, v := range []struct {
		name string
		keys []string
	}{
		{"timeline", []string{"2"}}, {"timeline-all-nodes", []string{"2", "a"}}, {"timeline-unfolded", []string{"2", "u"}}, {"path", []string{"3"}}, {"nodes", []string{"4"}}, {"matrix", []string{"4", "x"}},
	} {
		b.Run(v.name, func(b *testing.B) {
			t := newTown(1, 100, 50)
			for i := range 10 { // a history
				t.change(0, i, false, 1, func(*timeline.Snapshot) {})
				t.change(0, i, true, 1, func(*timeline.Snapshot) {})
			}
			f := newFrames(b, "default/"+serviceName(0), t.m.Snapshot(), v.keys...)
			for i := range b.N {
				t.change(0, i/2%100, i%2 == 1, 1, f.show)
			}
			f.report()
		})
	}
}

// BenchmarkFrameManyNodes draws the matrix of a Service on thousands of nodes,
// while the cursor moves and after each snapshot of a change.
func BenchmarkFrameManyNodes(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			t := newTown(1, 100, nodes)
			f := newFrames(b, "default/"+serviceName(0), t.m.Snapshot(), "4", "x")
			for i := range b.N {
				t.change(0, i/2%100, i%2 == 1, nodes/20, func(s *timeline.Snapshot) {
					f.show(s)
					f.press("j")
					f.press("l")
				})
			}
			f.report()
		})
	}
}

// BenchmarkFrameMoves draws the timeline of a Service of 100 pods on 50 nodes while
// somebody looks around in it: nothing happens, and all of a long history is there. An
// operation is one of each movement.
func BenchmarkFrameMoves(b *testing.B) {
	t := newTown(1, 100, 50)
	for i := range 600 {
		t.change(0, i/2%100, i%2 == 1, 1000, func(*timeline.Snapshot) {})
	}
	t.apply(collect.SourceClock, &collect.Advance{})
	f := newFrames(b, "default/"+serviceName(0), t.m.Snapshot(), "2")
	for range b.N {
		for _, k := range []string{"left", "left", "right", "+", "[", "[", "-", "-", "]", "p", "p", "n", "+", "f"} {
			f.press(k)
		}
	}
	f.report()
}
