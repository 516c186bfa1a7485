package lanes_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// sentence is the first one about the last of seven additions of which the others were
// usual, and how that compares.
func sentence(t *testing.T, a lanestest.Addition) (string, string) {
	t.Helper()
	all := slices.Repeat([]lanestest.Addition{lanestest.UsualAddition()}, 6)
	snap := lanestest.Additions(append(all, a)...)
	svc := snap.Service("default", "web")
	for _, p := range slices.Backward(svc.Paths) {
		if p.Op == timeline.OpAdd && p.Endpoint.Pod == "p7" {
			w := lanes.NewWaterfallOf(snap, svc, p, snap.Now)
			return w.Sentences()[0], w.Rank()
		}
	}
	t.Fatal("the addition of p7 has no path")
	return "", ""
}

// bottlenecks are ways to be slow, and what of it the sentence must name first.
var bottlenecks = []struct {
	name string
	slow func(*lanestest.Addition)
	want string
}{
	{"scheduling", func(a *lanestest.Addition) { a.Scheduled = 5 * time.Second }, "scheduling"},
	{"init container", func(a *lanestest.Addition) { a.Init = 5 * time.Second }, "the init containers"},
	{"starting", func(a *lanestest.Addition) { a.Started = 6 * time.Second }, "starting the containers"},
	{"image pull", func(a *lanestest.Addition) { a.Started, a.Pull = 6*time.Second, 5*time.Second }, "starting the containers (5.00 s pulling an image)"},
	{"image pull of an init container", func(a *lanestest.Addition) { a.Init, a.InitPull = 6*time.Second, 5*time.Second }, "the init containers (5.00 s pulling an image)"},
	{"readiness probe", func(a *lanestest.Addition) { a.Probe = 10 * time.Second }, "waiting for the readiness probe"},
	{"readiness gate", func(a *lanestest.Addition) { a.Gate = 10 * time.Second }, "waiting for a readiness gate"},
	{"queue of the reconciler", func(a *lanestest.Addition) { a.Queued = 4 * time.Second }, "waiting in the reconciler's queue"},
	{"slow API", func(a *lanestest.Addition) { a.Write = 4 * time.Second }, "the API server's write of the slice"},
	{"retries after 409", func(a *lanestest.Addition) { a.Conflicts = 4 }, "writing the slice again after 4 conflicts"},
	{"failing reconciler", func(a *lanestest.Addition) { a.Retries = 3 }, "trying the slice again after 3 failed syncs"},
	{"late slice, nobody tells why", func(a *lanestest.Addition) { a.Queued, a.Watched = 4*time.Second, true }, "writing the slice"},
	{"one node's sync", func(a *lanestest.Addition) { a.Sync[1] = 4 * time.Second }, "n2's rule sync"},
	{"one node's interval", func(a *lanestest.Addition) { a.Waited[2] = 4 * time.Second }, "n3's wait for the sync interval"},
	{"one node's sync before", func(a *lanestest.Addition) { a.Waited[2], a.Behind[2] = 4*time.Second, 3900*time.Millisecond }, "n3's wait for the sync before"},
	{"one node's interval and sync", func(a *lanestest.Addition) { a.Waited[1], a.Sync[1] = 4*time.Second, 3*time.Second }, "n2's wait and rule sync"},
	{"one node's watch", func(a *lanestest.Addition) { a.Heard[0] = 4 * time.Second }, "n1's watch of the slices"},
	{"one node's sync fails", func(a *lanestest.Addition) { a.Sync[0], a.Failed[0] = 2*time.Second, true }, "n1's failing rule sync"},
	{"one node, nobody tells why", func(a *lanestest.Addition) { a.Waited[1], a.Watched = 4*time.Second, true }, "n2's rule sync"},
	{"all nodes' sync", func(a *lanestest.Addition) {
		a.Sync = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * time.Millisecond}
	}, "the nodes' rule sync"},
	{"all nodes' interval", func(a *lanestest.Addition) {
		a.Waited = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * time.Millisecond}
	}, "the nodes' wait for the sync interval"},
	{"slices late to all", func(a *lanestest.Addition) {
		a.Heard = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * time.Millisecond}
	}, "the nodes' watch of the slices"},
}

var named = regexp.MustCompile(`:  \d+ % ([^,]*?)(?:,  |\.$)`)

// TestTheSentenceNamesTheBottleneck: exactly that, and nothing before it.
func TestTheSentenceNamesTheBottleneck(t *testing.T) {
	for _, b := range bottlenecks {
		t.Run(b.name, func(t *testing.T) {
			a := lanestest.UsualAddition()
			b.slow(&a)
			first, rank := sentence(t, a)
			m := named.FindStringSubmatch(first)
			if m == nil || m[1] != b.want {
				t.Errorf("it says %q, which does not name %q first", first, b.want)
			}
			if !strings.Contains(rank, "Slower than 6 of 6 other additions") {
				t.Errorf("%q does not compare", rank)
			}
		})
	}
}

func TestWhatIsUsualWasNotSlow(t *testing.T) {
	for times, want := range map[float64]bool{0.5: true, 1: true, 1.4: true, 1.6: false, 3: false} {
		first, rank := sentence(t, lanestest.Stretched(times))
		if got := strings.Contains(first, ": nothing was slow, 0.60 s is usual (n=6)."); got != want {
			t.Errorf("%v times the usual: %q", times, first)
		}
		if strings.Contains(rank, "Slower than") == want {
			t.Errorf("%v times the usual: %q", times, rank)
		}
	}
}

// TestAHopThatIsNotUsualIsNamedInAUsualWhole: what the probe took less, the slice took
// more.
func TestAHopThatIsNotUsualIsNamedInAUsualWhole(t *testing.T) {
	a := lanestest.UsualAddition()
	a.Probe, a.Queued = a.Probe-150*time.Millisecond, a.Queued+200*time.Millisecond
	first, _ := sentence(t, a)
	if !strings.Contains(first, ": as is usual (0.60 s, n=6), but 0.21 s waiting in the reconciler's queue, where 8 ms is usual.") {
		t.Errorf("%q", first)
	}
}

// TestAPodThatIsReadyAgainIsNotCreatedAgain: how long it ran in between is no part of
// the change.
func TestAPodThatIsReadyAgainIsNotCreatedAgain(t *testing.T) {
	events, err := timelinetest.New().Parse(`
0     list node n1 ready
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0     list pod a label=app:web ip=10.0.0.1 node=n1 ready
0     list slice web-1 svc=web port=8080 a/ready
1ms   synced
2ms   rules n1 baseline gen=4 web=10.0.0.1:8080
1s    add pod c label=app:web created=1s
2s    mod pod c node=n1 ip=10.0.0.3 started=2s ready=2s
3s    mod slice web-1 a/ready c/ready
4s    rules n1 gen=5 web=10.0.0.1:8080,10.0.0.3:8080
90s   mod pod c unready=90s
91s   mod slice web-1 a/ready c/unready
92s   rules n1 gen=6 web=10.0.0.1:8080
95s   mod pod c ready=95s
96s   mod slice web-1 a/ready c/ready
98s   rules n1 gen=7 web=10.0.0.1:8080,10.0.0.3:8080
99s   now`)
	if err != nil {
		t.Fatal(err)
	}
	m := timeline.New(timeline.Options{})
	for _, e := range events {
		m.Apply(e)
	}
	svc := m.Snapshot().Service("default", "web")
	var starts []string
	for _, p := range svc.Paths {
		if p.Op == timeline.OpAdd && p.Cause == timeline.CausePodReady {
			w := lanes.NewWaterfall(p, svc.Paths, m.Snapshot().Now)
			starts = append(starts, fmt.Sprint(w.Start, " ", w.Total))
		}
	}
	if got := strings.Join(starts, ", "); got != "created 3s, pod ready 3s" {
		t.Error(got)
	}
}
