package lanes_test

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

const ms = time.Millisecond

// addition is how long each hop of one new pod takes on its way to three nodes.
type addition struct {
	scheduled, init, started, probe, gate time.Duration
	queued, write                         time.Duration
	conflicts                             int // a tenth of a second each, and a second until the next try
	heard, waited, sync                   [3]time.Duration
	failed                                [3]bool // a sync failed before the last
	watched                               bool    // nobody tells of steps
}

func usualAddition() addition {
	return addition{scheduled: 20 * ms, started: 300 * ms, probe: 200 * ms, queued: 2 * ms, write: 5 * ms,
		heard: [3]time.Duration{2 * ms, 3 * ms, 4 * ms}, sync: [3]time.Duration{50 * ms, 60 * ms, 70 * ms}}
}

// stretched takes so many times as long in every hop.
func stretched(times float64) addition {
	a := usualAddition()
	for _, d := range []*time.Duration{&a.scheduled, &a.started, &a.probe, &a.queued, &a.write, &a.sync[0], &a.sync[1], &a.sync[2], &a.heard[0], &a.heard[1], &a.heard[2]} {
		*d = time.Duration(float64(*d) * times)
	}
	return a
}

// script writes scenario lines and sorts them by time.
type script struct {
	lines []string
	at    []time.Duration
}

func (s *script) line(at time.Duration, format string, args ...any) {
	s.at = append(s.at, at)
	s.lines = append(s.lines, at.String()+" "+fmt.Sprintf(format, args...))
}

func (s *script) text() string {
	order := make([]int, len(s.lines))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return s.at[order[i]] < s.at[order[j]] })
	var b strings.Builder
	for _, i := range order {
		b.WriteString(s.lines[i] + "\n")
	}
	return b.String()
}

// add writes the k-th addition, which is created at from.
func (s *script) add(k int, from time.Duration, a addition) {
	at, pod := from, fmt.Sprintf("p%d", k)
	s.line(at, "add pod %s label=app:web created=%v", pod, at)
	at += a.scheduled
	s.line(at, "mod pod %s node=n1 scheduled=%v", pod, at)
	if a.init > 0 {
		at += a.init
		s.line(at, "mod pod %s initialized=%v", pod, at)
	}
	at += a.started
	s.line(at, "mod pod %s ip=10.0.0.%d started=%v unready=%v", pod, k+1, at, at)
	at += a.probe
	if a.gate > 0 {
		s.line(at, "mod pod %s containersready=%v", pod, at)
		at += a.gate
		s.line(at, "mod pod %s ready=%v", pod, at)
	} else {
		s.line(at, "mod pod %s containersready=%v ready=%v", pod, at, at)
	}
	tell := func(at time.Duration, format string, args ...any) {
		if !a.watched {
			s.line(at, format, args...)
		}
	}
	at += a.queued
	tell(at, "reconcile web started took=%v", a.queued)
	for range a.conflicts {
		at += 100 * ms
		tell(at, "reconcile web conflict took=100ms")
		at += time.Second
		tell(at, "reconcile web started took=1ms")
	}
	at += a.write
	tell(at, "reconcile web wrote took=%v", a.write)
	at += ms
	var eps, ips []string
	for i := range k + 1 {
		eps, ips = append(eps, fmt.Sprintf("p%d/ready", i)), append(ips, fmt.Sprintf("10.0.0.%d:8080", i+1))
	}
	s.line(at, "mod slice web-1 %s", strings.Join(eps, " "))
	for n := range 3 {
		node, at := fmt.Sprintf("n%d", n+1), at+a.heard[n]
		tell(at, "sync %s received", node)
		at += a.waited[n]
		tell(at, "sync %s started", node)
		if a.failed[n] {
			tell(at+100*ms, "sync %s failed", node)
			at += a.sync[n]/2 + 200*ms
			tell(at, "sync %s started", node)
		}
		at += a.sync[n]
		s.line(at, "rules %s gen=%d web=%s", node, k+5, strings.Join(ips, ","))
		tell(at+ms, "sync %s committed gen=%d", node, k+5)
	}
}

// sentence is the first one about the last of seven additions of which the others were
// usual, and all of them.
func sentence(t *testing.T, a addition) (string, string) {
	t.Helper()
	s := &script{}
	for _, n := range []string{"n1", "n2", "n3"} {
		s.line(0, "list node %s ready", n)
		s.line(2*ms, "rules %s baseline gen=4 web=10.0.0.1:8080", n)
	}
	s.line(0, "list svc web ip=10.96.0.11 port=80:8080 selector=app:web")
	s.line(0, "list pod p0 label=app:web ip=10.0.0.1 node=n1 ready")
	s.line(0, "list slice web-1 svc=web port=8080 p0/ready")
	s.line(ms, "synced")
	for k := range 6 {
		s.add(k+1, time.Duration(k+1)*20*time.Second, usualAddition())
	}
	s.add(7, 200*time.Second, a)
	s.line(300*time.Second, "now")
	events, err := timelinetest.New().Parse(s.text())
	if err != nil {
		t.Fatal(err)
	}
	m := timeline.New(timeline.Options{})
	for _, e := range events {
		m.Apply(e)
	}
	snap := m.Snapshot()
	svc := snap.Service("default", "web")
	for _, p := range slices.Backward(svc.Paths) {
		if p.Op == timeline.OpAdd && p.Endpoint.Pod == "p7" {
			all := lanes.NewWaterfallOf(snap, svc, p, snap.Now).Sentences()
			return all[0], strings.Join(all, " ")
		}
	}
	t.Fatal("the addition of p7 has no path")
	return "", ""
}

// bottlenecks are ways to be slow, and what of it the sentence must name first.
var bottlenecks = []struct {
	name string
	slow func(*addition)
	want string
}{
	{"scheduling", func(a *addition) { a.scheduled = 5 * time.Second }, "scheduling"},
	{"init container", func(a *addition) { a.init = 5 * time.Second }, "the init containers"},
	{"image pull", func(a *addition) { a.started = 6 * time.Second }, "starting the containers"},
	{"readiness probe", func(a *addition) { a.probe = 10 * time.Second }, "waiting for the readiness probe"},
	{"readiness gate", func(a *addition) { a.gate = 10 * time.Second }, "waiting for a readiness gate"},
	{"queue of the reconciler", func(a *addition) { a.queued = 4 * time.Second }, "waiting in the reconciler's queue"},
	{"slow API", func(a *addition) { a.write = 4 * time.Second }, "the API server's write of the slice"},
	{"retries after 409", func(a *addition) { a.conflicts = 4 }, "writing the slice again after 4 conflicts"},
	{"late slice, nobody tells why", func(a *addition) { a.queued, a.watched = 4*time.Second, true }, "writing the slice"},
	{"one node's sync", func(a *addition) { a.sync[1] = 4 * time.Second }, "n2's rule sync"},
	{"one node's interval", func(a *addition) { a.waited[2] = 4 * time.Second }, "n3's wait for the sync interval"},
	{"one node's watch", func(a *addition) { a.heard[0] = 4 * time.Second }, "n1's watch of the slices"},
	{"one node's sync fails", func(a *addition) { a.sync[0], a.failed[0] = 2*time.Second, true }, "n1's failing rule sync"},
	{"one node, nobody tells why", func(a *addition) { a.waited[1], a.watched = 4*time.Second, true }, "n2's rule sync"},
	{"all nodes' sync", func(a *addition) { a.sync = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * ms} }, "the nodes' rule sync"},
	{"all nodes' interval", func(a *addition) { a.waited = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * ms} }, "the nodes' wait for the sync interval"},
	{"slices late to all", func(a *addition) { a.heard = [3]time.Duration{4 * time.Second, 5 * time.Second, 4500 * ms} }, "the nodes' watch of the slices"},
}

var named = regexp.MustCompile(`:  \d+ % ([^,]*?)(?:,  |\.$)`)

// TestTheSentenceNamesTheBottleneck: exactly that, and nothing before it.
func TestTheSentenceNamesTheBottleneck(t *testing.T) {
	for _, b := range bottlenecks {
		t.Run(b.name, func(t *testing.T) {
			a := usualAddition()
			b.slow(&a)
			first, all := sentence(t, a)
			m := named.FindStringSubmatch(first)
			if m == nil || m[1] != b.want {
				t.Errorf("it says %q, which does not name %q first", first, b.want)
			}
			if !strings.Contains(all, "Slower than 6 of 6 other additions") {
				t.Errorf("%q does not compare", all)
			}
		})
	}
}

func TestWhatIsUsualWasNotSlow(t *testing.T) {
	for times, want := range map[float64]bool{0.5: true, 1: true, 1.4: true, 1.6: false, 3: false} {
		first, all := sentence(t, stretched(times))
		if got := strings.Contains(first, ": nothing was slow, 0.60 s is usual (n=6)."); got != want {
			t.Errorf("%v times the usual: %q", times, first)
		}
		if strings.Contains(all, "Slower than") == want {
			t.Errorf("%v times the usual: %q", times, all)
		}
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
