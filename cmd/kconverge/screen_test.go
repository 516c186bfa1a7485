package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
)

// terminal is the program on a pseudo terminal whose cells an emulator keeps.
type terminal struct {
	mu    sync.Mutex
	emu   *vt.Emulator
	watch func(screen string, at time.Time)
}

// open runs kconverge on a terminal of the given size.
func (h *home) open(t testing.TB, cols, rows int, args ...string) *terminal {
	t.Helper()
	x := newTerminal(cols, rows)
	x.run(t, h, x, args...)
	return x
}

func newTerminal(cols, rows int) *terminal {
	return &terminal{emu: vt.NewEmulator(cols, rows)}
}

// run starts kconverge on the terminal; what it draws goes through drawn, which
// hands it on.
func (x *terminal) run(t testing.TB, h *home, drawn io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd, master, _ := h.startOnTerminal(t, uint16(x.emu.Height()), uint16(x.emu.Width()), drawn, args...)
	go func() { _, _ = io.Copy(master, x.emu) }() // the terminal's answers
	return cmd
}

// Write takes what the program draws; the moment is when it arrived.
func (x *terminal) Write(p []byte) (int, error) {
	at := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	n, err := x.emu.Write(p)
	if x.watch != nil {
		x.watch(x.emu.String(), at)
	}
	return n, err
}

func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.emu.String()
}

// onDraw sets what is called after each write to the terminal.
func (x *terminal) onDraw(f func(screen string, at time.Time)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watch = f
}

// slicesShown is the number of endpoints that the state line gives for the
// slices, or -1.
func slicesShown(screen string) int {
	_, rest, ok := strings.Cut(screen, " slices ")
	if !ok {
		return -1
	}
	word, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// editor changes a slice of hand that stands beside those of the seeded web.
type editor struct {
	client kubernetes.Interface
	slice  *discoveryv1.EndpointSlice
}

const seeded = 4 // endpoints of web

func newEditor(t testing.TB, h *home) *editor {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{client: client}
	port, name := int32(8080), "http"
	e.slice, err = client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "hand"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// set writes n endpoints and returns the resourceVersion.
func (e *editor) set(ctx context.Context, n int) (uint64, error) {
	s := e.slice.DeepCopy()
	s.Endpoints = nil
	for i := range n {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.200.%d", i+1)}})
	}
	s, err := e.client.DiscoveryV1().EndpointSlices("default").Update(ctx, s, metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	e.slice = s
	return strconv.ParseUint(s.ResourceVersion, 10, 64)
}

// receipts reads when the program received each version of the slice by hand,
// from the recording that it makes beside.
func receipts(t testing.TB, path string) map[uint64]time.Time {
	t.Helper()
	out := map[uint64]time.Time{}
	for _, e := range recorded(t, path) {
		if e.Object.Name == "by-hand" {
			out[e.ResourceVersion] = e.At
		}
	}
	return out
}

// recorded are the events that a recording holds so far.
func recorded(t testing.TB, path string) (out []collect.Event) {
	t.Helper()
	f, err := recording.Open(path)
	if err != nil {
		return nil // nothing whole yet
	}
	defer f.Close()
	r := f.Read(0)
	for {
		e, err := r.Next()
		if err != nil {
			return out
		}
		out = append(out, e)
	}
}

// drawn runs n changes, period apart, on the seeded Timeline and returns how
// long after its receipt each was on the terminal.
func drawn(t testing.TB, n int, period time.Duration) []time.Duration {
	t.Helper()
	h := newHome(t)
	file := filepath.Join(h.dir, "session.kconverge")
	x := h.open(t, 120, 40, "lab", "--nodes", "1", "--record", file)
	eventually(t, "the seeded Service is drawn with its endpoints", func() bool { return slicesShown(x.screen()) == seeded })
	e := newEditor(t, h)

	type change struct {
		rv    uint64
		shown time.Time
	}
	changes := make([]change, n)
	var mu sync.Mutex
	awaited, count := -1, 0
	seen := make(chan struct{}, 1)
	x.onDraw(func(screen string, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if awaited >= 0 && slicesShown(screen) == count {
			changes[awaited].shown = at
			awaited = -1
			seen <- struct{}{}
		}
	})
	tick := time.NewTicker(period)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		more := i%7 + 1 // always another number than before
		mu.Lock()
		awaited, count = i, seeded+more
		mu.Unlock()
		rv, err := e.set(t.Context(), more)
		if err != nil {
			t.Fatal(err)
		}
		changes[i].rv = rv
		select {
		case <-seen:
		case <-time.After(patience):
			t.Fatalf("change %d to %d endpoints was never drawn:\n%s", i, seeded+more, x.screen())
		}
	}
	var at map[uint64]time.Time
	eventually(t, "the last change is in the recording", func() bool {
		at = receipts(t, file)
		return !at[changes[n-1].rv].IsZero()
	})
	var out []time.Duration
	for i, c := range changes {
		received, ok := at[c.rv]
		if !ok {
			t.Fatalf("change %d (resourceVersion %d) is not in the recording", i, c.rv)
		}
		out = append(out, c.shown.Sub(received))
	}
	return out
}

func TestEveryChangeIsDrawn(t *testing.T) {
	for i, lag := range drawn(t, 20, 50*time.Millisecond) {
		if lag <= 0 {
			t.Errorf("change %d was drawn %s before it was received", i, -lag)
		}
	}
}

// BenchmarkEventToScreen measures from the receipt of an event to changed cells
// on a terminal emulator, at 5 changes a second: run it with -benchtime 500x.
func BenchmarkEventToScreen(b *testing.B) {
	lags := drawn(b, b.N, 200*time.Millisecond)
	slices.Sort(lags)
	within := 0
	for _, l := range lags {
		if l < 150*time.Millisecond {
			within++
		}
	}
	ms := func(q float64) float64 { return float64(lags[int(q*float64(len(lags)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(ms(1), "max-ms")
	b.ReportMetric(100*float64(within)/float64(len(lags)), "%-under-150ms")
	b.ReportMetric(0, "ns/op")
}
