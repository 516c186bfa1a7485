package cluster_test

import (
	"cmp"
	"flag"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// paired is how many arrivals are compared with `nft monitor`; `make soak` asks for
// more.
var paired = flag.Int("arrivals", 100, "least number of arrivals to pair with nft monitor")

// heard waits until the monitor prints something of a node: it is listening.
func (w *world) heard(n *nodes.Node, all ...*monitor) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for i := 0; slices.ContainsFunc(all, func(m *monitor) bool { return !m.listens() }); i++ {
		if time.Now().After(deadline) {
			w.Fatalf("nft monitor on %s prints nothing", n.Name())
		}
		// A table of its own that nothing looks at.
		w.exec(n, "nft", "add", "table", "ip", "heard")
		w.exec(n, "nft", "delete", "table", "ip", "heard")
		// Before it listens it lists everything, and begins anew when there is
		// another generation meanwhile: it must find the time for that.
		<-time.After(time.Duration(i+1) * 50 * time.Millisecond)
	}
}

// TestArrivalsAreWhenNftMonitorSawThem pairs the arrivals that the model reports
// with two independent `nft monitor`s, by the generation's number: none may be
// stated later than one of them received the first word of it. The two are as far
// apart from each other as programs on this machine are: the floor.
//
// There are no more nodes than leave a processor free: the witnesses go before
// everything else, and would keep what they are witnesses of from running.
func TestArrivalsAreWhenNftMonitorSawThem(t *testing.T) {
	w := start(t, cluster.NFTables, max(1, min(3, runtime.NumCPU()-1)))
	monitors := map[string][2]*monitor{}
	for _, n := range w.cluster.Nodes() {
		m := [2]*monitor{w.monitor(n), w.monitor(n)}
		w.heard(n, m[:]...)
		monitors[n.Name()] = m
	}
	w.deploy("web", 1)
	w.expose()
	w.settled()
	var apart, outside, later, words, floor []time.Duration
	seen := map[string]bool{}
	for i := 0; len(apart) < *paired; i++ {
		if i > *paired {
			t.Fatalf("%d rounds gave %d arrivals only", i, len(apart))
		}
		w.scale([]int32{10, 2}[i%2])
		s := w.settled()
		for _, p := range s.Service("default", "web").Paths {
			if p.Status != timeline.StatusArrived || seen[p.ID] {
				continue
			}
			seen[p.ID] = true
			for _, h := range p.Rules {
				if h.Status != timeline.StatusArrived || h.Generation == 0 {
					continue
				}
				m := monitors[h.Plane.Node]
				a, printedA, okA := m[0].at(h.Generation)
				b, printedB, okB := m[1].at(h.Generation)
				if !okA || !okB {
					t.Errorf("path %s arrived on %s in generation %d, of which nft monitor says nothing", p.ID, h.Plane.Node, h.Generation)
					continue
				}
				first := earlier(a, b) // both are late, if anything
				apart = append(apart, h.At.Sub(first).Abs())
				outside = append(outside, max(0, h.At.Add(-h.Width()).Sub(first), first.Sub(h.At)))
				later = append(later, max(0, h.At.Sub(first)))
				words = append(words, earlier(printedA, printedB).Sub(first))
				// What a monitor has heard of has happened.
				if known := h.At.Add(-h.Width()); known.Sub(first) > h.Error+time.Millisecond {
					t.Errorf("path %s is said to have arrived on %s between %s and %s, ±%s: nft monitor had heard of it at %s", p.ID, h.Plane.Node, known, h.At, h.Error, first)
				}
				floor = append(floor, a.Sub(b).Abs())
			}
		}
	}
	t.Logf("%d arrivals against the first of two nft monitors: %s", len(apart), distribution(apart))
	t.Logf("from where they are said to lie (some are intervals): %s", distribution(outside))
	t.Logf("how much later than that they are said to be:     %s", distribution(later))
	t.Logf("how far apart the two monitors are (the floor):    %s", distribution(floor))
	t.Logf("what a monitor takes until it has printed:        %s", distribution(words))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// distribution says how far apart two clocks' words about the same things were.
func distribution(all []time.Duration) string {
	slices.SortFunc(all, cmp.Compare[time.Duration])
	at := func(q float64) string {
		return all[min(len(all)-1, int(q*float64(len(all))))].Round(10 * time.Microsecond).String()
	}
	within := 0
	for _, d := range all {
		if d <= 5*time.Millisecond {
			within++
		}
	}
	return "median " + at(0.5) + ", 90 % " + at(0.9) + ", 99 % " + at(0.99) + ", most " + at(1) +
		", within 5 ms " + strconv.FormatFloat(100*float64(within)/float64(len(all)), 'f', 1, 64) + " %"
}
