package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func printed(t *testing.T, s *timeline.Snapshot, o TextOptions) []string {
	t.Helper()
	var b strings.Builder
	if err := Build(s, nil).WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return strings.Split(b.String(), "\n")
}

// The story of lanestest.Web, at 10.6 s. Additions wait 2.920, 2.851 and 2.551 s
// for node-3, and (0.240+0.980+2.920)/3, (0.910+0.910+2.851)/3 and
// (0.611+0.611+2.551)/3 s as the mean. All three are in the slices from 4.947 s on,
// and node-3 routes to none of them before 4.571+2.920 s. The removals began at
// 8.252 and 8.255 s.
func TestEpisodesTellTheirCostInPlainWords(t *testing.T) {
	lines := printed(t, lanestest.Converging(), TextOptions{})
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "episode") })
	if i < 0 {
		t.Fatalf("no episode in\n%s", strings.Join(lines, "\n"))
	}
	want := []string{
		"episode 12:04:13.071, 2.92 s: +3 -0",
		"  at the lowest 4 of 7 wanted endpoints could answer, on node-3 from 12:04:13.447 for 2.54 s",
		"  3 additions waited 8.32 pod-seconds for the last node to route to them, 4.19 as the mean over the",
		"    nodes",
		"",
		"episode 12:04:16.752, not over: +0 -2",
		"  never fewer than 5 endpoints could answer on any node",
		"",
		"preStop of more than 2.4 s would have covered the worst of 2 removals (>2.35 s ±0.0 ms)",
		"",
		"warning  KC501  Service default/web  since 12:04:16",
		"         2 removals were still routed to after the containers had ended, for up to 1.3 s; of 2",
		"         removals the last node let go more than 2.3 s after the termination began",
		"       → give the containers a preStop of more than 2.4 s (lifecycle.preStop.sleep.seconds: 3) and",
		"         a grace period that holds it",
		"",
	}
	if got := lines[i:]; !slices.Equal(got, want) {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEpisodesTellTheirCostAsNumbers(t *testing.T) {
	s := Build(lanestest.Converging(), nil).Services[0]
	first, second := s.Episodes[0], s.Episodes[1]
	if l := first.Capacity.Answering; l == nil || l.Node != "node-3" || l.Answering != 4 || l.Routed != 4 || l.Wanted != 7 || l.ForMS != 2544 || *l.WantedByPods != 7 {
		t.Errorf("lowest of the first: %+v", first.Capacity.Answering)
	}
	if u := first.Unrouted; u.N != 3 || u.ToLast.MS != 8322 || u.Mean.MS != 4194.666 || u.ToLast.AtLeast {
		t.Errorf("unrouted in the first: %+v", u)
	}
	if first.Advice != nil || second.Unrouted != nil {
		t.Errorf("advice %+v without removals, unrouted %+v without additions", first.Advice, second.Unrouted)
	}
	if a := second.Advice; a.N != 2 || a.Worst.MS != 2348 || !a.Worst.AtLeast || a.P99 != nil || *a.PreStopMS != 2400 || a.WorstPath != "remove-web-7d9c4b-x7k2p" {
		t.Errorf("advice of the second: %+v %+v", a, a.Worst)
	}
	if !slices.Equal([]string{}, s.Advice.Unseen) || s.Rollouts == nil || len(s.Rollouts) != 0 {
		t.Errorf("advice %+v rollouts %+v", s.Advice, s.Rollouts)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"worst_path":"remove-web-7d9c4b-x7k2p"`, `"to_last":{"ms":8322,"error_ms":0.6}`, `"p99":null`, `"rollouts":[]`, `"probes":[]`,
		`"after":{"terminating":null,"stopped":null,"terminal":null,"unpublished":null,"gone":null,"claimed":[]}`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in\n%s", part, b)
		}
	}
}

func TestAPodsLifeStandsInOrder(t *testing.T) {
	s := addition()
	p := s.Services[0].Paths[0]
	p.Before.Initialized.At = at(40)
	p.Before.Probes = []timeline.Probe{{Kind: "readiness", Count: 3, First: at(1000), Last: at(2000), Message: "HTTP probe failed with statuscode: 500\x1b[1m"}}
	names := func() (out []string) {
		for _, l := range printed(t, s, TextOptions{})[4:] {
			if f := strings.Fields(l); len(f) > 0 && strings.HasPrefix(l, "  ") {
				out = append(out, f[0])
			}
		}
		return out
	}
	if want := []string{"created", "scheduled", "initialised", "started", "readiness", "ready", "slice", "node-1", "node-2"}; !slices.Equal(names(), want) {
		t.Errorf("rows %q, want %q", names(), want)
	}
	text := strings.Join(printed(t, s, TextOptions{Location: time.FixedZone("", 3600)}), "\n")
	if want := "  readiness failed            3 times, at 13:04:11 to 13:04:12 (claimed): HTTP probe failed with sta\n"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}

	// Taken away: stopped after 0.5 s, the last node after 0.9 s, gone after 2 s;
	// nothing is known of a terminal phase.
	p.Op, p.Cause, p.Status = timeline.OpRemove, timeline.CausePodTerminating, timeline.StatusArrived
	p.Rules[1] = arrived(node("node-2"), 2541, 2550, 3441)
	p.After = timeline.After{Terminating: timeline.Moment{At: at(2541)}, Stopped: timeline.Moment{At: at(3041)}, Gone: timeline.Moment{At: at(4541), NotBefore: at(4400)},
		Unpublished: timeline.Moment{At: at(4500)}}
	var rows []string
	for _, l := range printed(t, s, TextOptions{})[5:] {
		f := strings.Fields(l)
		if i := slices.IndexFunc(f, func(w string) bool { return strings.ContainsAny(w, "━▏") }); i > 0 {
			rows = append(rows, strings.Join(f[:i], " "))
		}
	}
	want := []string{"slice 9.0 ms", "node-1 98 ms", "node-2 891 ms", "stopped 500 ms", "out of rules 400 ms", "out of slices 1.06 s", "gone ≤41 ms"}
	if !slices.Equal(rows[1:], want) {
		t.Errorf("rows %q, want %q", rows[1:], want)
	}
	after := Build(s, nil).Services[0].Paths[0].After
	if after.Terminal != nil || after.Gone == nil || !after.Gone.Equal(at(4541)) || len(after.Claimed) != 0 || len(after.NotBefore) != 1 || !after.NotBefore["gone"].Equal(at(4400)) {
		t.Errorf("after %+v", after)
	}
}

func TestWhatTheAdviceLeavesOutIsSaid(t *testing.T) {
	r := &Report{Services: []Service{{Namespace: "default", Name: "web", Advice: &Advice{
		N: 1, Worst: &Amount{MS: 1310, WidthMS: 300, ErrorMS: 2}, PreStopMS: new(float64), P99: &Amount{MS: 1200},
		LeftOut: []LeftOut{{"taken out for another reason than its termination", 1}, {"the start of its termination was not observed", 3}}, Unseen: []string{"node-\x1b9"},
	}}}}
	*r.Services[0].Advice.PreStopMS = 1400
	var b strings.Builder
	if err := r.WriteText(&b, TextOptions{ASCII: true, Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"preStop of at least 1.4 s would have covered the one removal (<=1.31 s +-2.0 ms); 1.20 s the p99\n",
		"  a node that is not seen may have been later: node-9\n",
		"  1 removal not counted: taken out for another reason than its termination\n",
		"  3 removals not counted: the start of its termination was not observed\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestTheWrongPodIsReported(t *testing.T) {
	s := addition()
	if b, _ := json.Marshal(Build(s, nil)); !strings.Contains(string(b), `"wrong_pod":null`) {
		t.Errorf("a time where there was none: %s", b)
	}
	s.Services[0].Paths[0].Risk.WrongPod = 1500 * time.Millisecond
	if b, _ := json.Marshal(Build(s, nil)); !strings.Contains(string(b), `"wrong_pod":1500`) {
		t.Errorf("not told: %s", b)
	}
	if text := strings.Join(printed(t, s, TextOptions{}), "\n"); !strings.Contains(text, "  the wrong pod: routed to for 1.50 s after another pod was given the address\n") {
		t.Errorf("not told:\n%s", text)
	}
}

func TestLinesKeepToTheWidthAndNumbersToTheirUnits(t *testing.T) {
	for _, width := range []int{60, 72, 100} {
		for _, l := range printed(t, lanestest.Converging(), TextOptions{Width: width}) {
			if !strings.HasPrefix(l, "  at") && !strings.HasPrefix(l, "preStop") && !strings.HasPrefix(l, "    ") {
				continue
			}
			if n := len([]rune(l)); n > width {
				t.Errorf("%d cells of %d: %q", n, width, l)
			}
			if f := strings.Fields(l); len(f) > 0 && slices.Contains([]string{"s", "ms"}, f[0]) {
				t.Errorf("a unit apart from its number: %q", l)
			}
		}
	}
}
