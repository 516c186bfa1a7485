package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/live/livetest"
	"github.com/kconverge/kconverge/ui"
)

var longEvents = flag.Int("recorded", 100_000, "events of the recording that BenchmarkLongRecording makes")

// BenchmarkLongRecording makes a recording of a busy cluster and measures what it takes,
// to seek in it to random moments up to the drawn frame, and to replay it: the memory
// of the program, as the kernel counts it (VmHWM), and its events a second. Figures a
// CPU second are of user time in all threads.
//
//	go test -timeout 60m -run '^$' -bench LongRecording -benchtime 1x ./cmd/kconverge -recorded=10000000
func BenchmarkLongRecording(b *testing.B) {
	path := filepath.Join(b.TempDir(), "long.kconverge")
	w, err := recording.Create(path, recordingOptions())
	if err != nil {
		b.Fatal(err)
	}
	lines, n := 0, float64(*longEvents)
	before := user(b)
	for range livetest.Busy.Events(*longEvents) {
	}
	making := user(b) - before
	before = user(b)
	for e := range livetest.Busy.Events(*longEvents) {
		if err := w.Write(e); err != nil {
			b.Fatal(err)
		}
	}
	w.Flush()
	writing := user(b) - before - making
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	before, began := user(b), time.Now()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	closing, closed := user(b)-before, time.Since(began)
	file, err := recording.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for r := file.Read(0); ; {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		line, err := collect.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		lines += len(line) + 1
	}
	whole, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(lines)/n, "B-of-lines/event")
		b.ReportMetric(float64(info.Size())/n, "B-while-written/event")
		b.ReportMetric(float64(whole.Size())/n, "B-closed/event")
		b.ReportMetric(float64(writing.Nanoseconds())/n, "write-cpu-ns/event")
		b.ReportMetric(float64(closing.Nanoseconds())/n, "close-cpu-ns/event")
		b.ReportMetric(closed.Seconds(), "close-s")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("seek", func(b *testing.B) { seekLong(b, file) })
	for _, c := range []struct {
		name string
		args []string
	}{{"headless", []string{"replay", path, "--headless", "--output", "none"}}, {"screen", []string{"replay", path}}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHome(b)
			for b.Loop() {
				began := time.Now()
				peak, used := replayLong(b, h, c.args...)
				if took := time.Since(began).Seconds(); c.name == "headless" {
					b.ReportMetric(n/took, "events/s")
					b.ReportMetric(n/used.Seconds(), "events/cpu-s")
				}
				b.ReportMetric(float64(peak)/1024, "peak-MB")
				b.ReportMetric(float64(whole.Size())/1e6, "file-MB")
				b.ReportMetric(float64(lines)/1e6, "lines-MB")
			}
		})
	}
}

// user is the user time of this program.
func user(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano())
}

// seeks are how many moments are shown in one operation.
const seeks = 50

// seekLong shows random moments, each with the frame of the Timeline.
func seekLong(b *testing.B, file *recording.File) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	spareProcessor(replayRoom) // as replay does
	r := live.NewReplay(file)
	go func() { _ = r.Run(b.Context()) }()
	feed, cancel := r.Subscribe()
	defer cancel()
	m, err := ui.New(ui.Options{Title: "replay", Recorded: true, Replay: r, NoActions: "this is a recording", Focus: "default/app-0"})
	if err != nil {
		b.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
	m.Update(ui.Show(<-feed))
	rnd := rand.New(rand.NewPCG(3, 4))
	var took, moved, shown, cpu []time.Duration
	for b.Loop() {
		for range seeks {
			t := file.From.Add(time.Duration(rnd.Int64N(int64(file.To.Sub(file.From)))))
			began, before := time.Now(), user(b)
			r.Seek(t)
			snap := <-feed
			if snap.Now.After(t) || t.Sub(snap.Now) > 2*time.Second {
				b.Fatalf("%s is shown as %s", t, snap.Now)
			}
			moved = append(moved, time.Since(began))
			m.Update(ui.Show(snap))
			if v := m.View(); !bytes.Contains([]byte(v.Content), []byte("app-0")) {
				b.Fatalf("drawn is\n%s", v.Content)
			}
			took = append(took, time.Since(began))
			shown = append(shown, took[len(took)-1]-moved[len(moved)-1])
			cpu = append(cpu, user(b)-before)
		}
	}
	for name, list := range map[string][]time.Duration{"": took, "state-": moved, "frame-": shown, "cpu-": cpu} {
		slices.Sort(list)
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
			b.ReportMetric(float64(list[int(q.at*float64(len(list)-1))].Microseconds())/1000, name+q.name+"-ms")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// replayLong runs a replay on a terminal of 200x50, until it ends or has drawn the end
// of the recording and a moment in its middle, and gives its largest memory in KB and
// the processor time that it used.
func replayLong(b *testing.B, h *home, args ...string) (peak int, used time.Duration) {
	drawn := newTerminal(200, 50)
	cmd, term, done := h.startOnTerminal(b, 50, 200, drawn, args...)
	go func() { _, _ = io.Copy(term, drawn.emu) }() // the terminal's answers
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Minute)
	stage := 0
	for {
		select {
		case <-done:
			return peak, cmd.ProcessState.UserTime()
		case <-limit:
			_ = cmd.Process.Kill()
			<-done
			b.Fatalf("it has not ended, and shows\n%s", drawn.screen())
		case <-tick.C:
		}
		peak = max(peak, peakOf(cmd.Process.Pid))
		if len(args) > 2 {
			continue // it ends by itself
		}
		switch screen := drawn.screen(); {
		case stage == 0 && bytes.Contains([]byte(screen), []byte("app-0")):
			stage = 1
			fmt.Fprint(term, "t-1h\r") // an hour back
		case stage == 1 && bytes.Contains([]byte(screen), []byte("app-0")):
			stage = 2
			fmt.Fprint(term, "q")
		}
	}
}

// peakOf is the largest memory that a process had, in KB; 0 when it has ended.
func peakOf(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			n, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
			return n
		}
	}
	return 0
}
