package lanestest

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// Addition is how long each hop of one new pod takes on its way to three nodes: what
// the bottleneck of a change is can be chosen.
type Addition struct {
	Scheduled, Init, Started, Probe, Gate time.Duration
	InitPull, Pull                        time.Duration // of Init and of Started, as the kubelet's Events tell
	Queued, Write                         time.Duration
	Conflicts                             int // a tenth of a second each, and a second until the next try
	Retries                               int // syncs that fail, as long apart as conflicts
	Heard, Waited, Sync                   [3]time.Duration
	Behind                                [3]time.Duration // of Waited, in which the sync before still runs
	Failed                                [3]bool          // a sync failed before the last
	Watched                               bool             // nobody tells of steps
}

// UsualAddition takes 0.60 s.
func UsualAddition() Addition {
	return Addition{Scheduled: 20 * time.Millisecond, Started: 300 * time.Millisecond, Probe: 200 * time.Millisecond, Queued: 2 * time.Millisecond, Write: 5 * time.Millisecond,
		Heard: [3]time.Duration{2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond}, Sync: [3]time.Duration{50 * time.Millisecond, 60 * time.Millisecond, 70 * time.Millisecond}}
}

// Stretched is UsualAddition, with so many times as long in every hop.
func Stretched(times float64) Addition {
	a := UsualAddition()
	for _, d := range []*time.Duration{&a.Scheduled, &a.Started, &a.Probe, &a.Queued, &a.Write, &a.Sync[0], &a.Sync[1], &a.Sync[2], &a.Heard[0], &a.Heard[1], &a.Heard[2]} {
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
func (s *script) add(k int, from time.Duration, a Addition) {
	at, pod := from, fmt.Sprintf("p%d", k)
	s.line(at, "add pod %s label=app:web created=%v", pod, at)
	at += a.Scheduled
	s.line(at, "mod pod %s node=n1 scheduled=%v", pod, at)
	if a.InitPull > 0 {
		s.line(at+a.InitPull, "event %s Pulled init=true object=%s.i last=%v Successfully pulled image \"i\" in %v (%v including waiting)", pod, pod, at.Truncate(time.Second), a.InitPull, a.InitPull)
	}
	if a.Init > 0 {
		at += a.Init
		s.line(at, "mod pod %s initialized=%v", pod, at)
	}
	if a.Pull > 0 {
		s.line(at+a.Pull, "event %s Pulled object=%s.p last=%v Successfully pulled image \"p\" in %v (%v including waiting)", pod, pod, at.Truncate(time.Second), a.Pull, a.Pull)
	}
	at += a.Started
	s.line(at, "mod pod %s ip=10.0.0.%d started=%v unready=%v", pod, k+1, at, at)
	at += a.Probe
	if a.Gate > 0 {
		s.line(at, "mod pod %s containersready=%v", pod, at)
		at += a.Gate
		s.line(at, "mod pod %s ready=%v", pod, at)
	} else {
		s.line(at, "mod pod %s containersready=%v ready=%v", pod, at, at)
	}
	tell := func(at time.Duration, format string, args ...any) {
		if !a.Watched {
			s.line(at, format, args...)
		}
	}
	at += a.Queued
	tell(at, "reconcile web started took=%v", a.Queued)
	for range a.Conflicts {
		at += 100 * time.Millisecond
		tell(at, "reconcile web conflict took=100ms")
		at += time.Second
		tell(at, "reconcile web started took=1ms")
	}
	for range a.Retries {
		at += 10 * time.Millisecond
		tell(at, "reconcile web retry took=10ms")
		at += time.Second
		tell(at, "reconcile web started took=1ms")
	}
	at += a.Write
	tell(at, "reconcile web wrote took=%v", a.Write)
	at += time.Millisecond
	var eps, ips []string
	for i := range k + 1 {
		eps, ips = append(eps, fmt.Sprintf("p%d/ready", i)), append(ips, fmt.Sprintf("10.0.0.%d:8080", i+1))
	}
	s.line(at, "mod slice web-1 %s", strings.Join(eps, " "))
	s.line(at+11*time.Millisecond, "mod endpoints web %s", strings.Join(eps, " "))
	for n := range 3 {
		node, at := fmt.Sprintf("n%d", n+1), at+a.Heard[n]
		if d := a.Behind[n]; d > 0 {
			tell(at-5*time.Millisecond, "sync %s started", node)
			tell(at+d, "sync %s committed gen=%d", node, k+4)
		}
		tell(at, "sync %s received", node)
		at += a.Waited[n]
		tell(at, "sync %s started", node)
		if a.Failed[n] {
			tell(at+100*time.Millisecond, "sync %s failed", node)
			at += a.Sync[n]/2 + 200*time.Millisecond
			tell(at, "sync %s started", node)
		}
		at += a.Sync[n]
		s.line(at, "rules %s gen=%d web=%s", node, k+5, strings.Join(ips, ","))
		tell(at+time.Millisecond, "sync %s committed gen=%d", node, k+5)
	}
}

// Additions is what the real model makes of one pod after the other that is added to
// Service web, which has one: p1, p2, …, one every 20 s.
func Additions(all ...Addition) *timeline.Snapshot {
	s := &script{}
	for _, n := range []string{"n1", "n2", "n3"} {
		s.line(0, "list node %s ready", n)
		s.line(2*time.Millisecond, "rules %s baseline gen=4 web=10.0.0.1:8080", n)
	}
	s.line(0, "list svc web ip=10.96.0.11 port=80:8080 selector=app:web")
	s.line(0, "list pod p0 label=app:web ip=10.0.0.1 node=n1 ready")
	s.line(0, "list slice web-1 svc=web port=8080 p0/ready")
	s.line(0, "list endpoints web p0/ready")
	s.line(time.Millisecond, "synced")
	for k, a := range all {
		s.add(k+1, time.Duration(k+1)*20*time.Second, a)
	}
	end := time.Duration(len(all)+2) * 20 * time.Second
	s.line(end, "vouched %v n1 n2 n3", end)
	s.line(end, "now")
	events, err := timelinetest.New().Parse(s.text())
	if err != nil {
		panic(err)
	}
	m := timeline.New(timeline.Options{})
	for _, e := range events {
		m.Apply(e)
	}
	return m.Snapshot()
}
