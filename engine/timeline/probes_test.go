package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// played is a model that the scenario's lines were applied to.
func played(t *testing.T, lines string) *Model {
	t.Helper()
	events, err := newScenario().parse(lines)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{})
	for _, e := range events {
		m.Apply(e)
	}
	return m
}

const probedPod = `
0     list node n1 ready
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0     list slice web-1 svc=web port=8080
1ms   synced
2ms   rules n1 baseline gen=5 web=
`

const becomesReady = `
5000ms add pod a label=app:web ip=10.0.0.1 node=n1 unready=5s
9000ms mod pod a ready=9s
10s    now
`

func probesOf(t *testing.T, m *Model) []Probe {
	t.Helper()
	for _, p := range m.Snapshot().Service("default", "web").Paths {
		if p.Cause == CausePodReady {
			return p.Before.Probes
		}
	}
	t.Fatal("no path of the pod being ready")
	return nil
}

func TestProbesAreKeptForAPodThatIsSeenLater(t *testing.T) {
	got := probesOf(t, played(t, probedPod+"4000ms event a Unhealthy last=4s count=2 Startup probe failed: refused\n"+becomesReady))
	if len(got) != 1 || got[0].Kind != "startup" || got[0].Count != 2 || got[0].Message != "refused" {
		t.Errorf("%+v", got)
	}
}

func TestTheTextOfAProbeIsPlainAndCut(t *testing.T) {
	got := probesOf(t, played(t, probedPod+becomesReady+"8000ms event a Unhealthy last=8s Readiness probe failed: \x1b[31mred\u202e "+strings.Repeat("ä", 500)+"\n"))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if m := got[0].Message; strings.ContainsAny(m, "\x1b\u202e") || len([]rune(m)) != probeMessage || !strings.HasPrefix(m, "[31mred ") || !strings.HasSuffix(m, "…") {
		t.Errorf("%q", m)
	}
}

func TestOnlyEventsOfProbesAreProbes(t *testing.T) {
	lines := ""
	for i, l := range []string{
		"Unhealthy last=8s the pod feels bad", "Unhealthy last=8s Readyness probe failed: x", "Unhealthy last=8s",
		"BackOff last=8s Readiness probe failed: x", "Killing last=8s Stopping container app", "Killing last=8s Container app failed liveness probe, will be restarted",
	} {
		lines += fmt.Sprintf("%dms event a %s\n", 8000+i, strings.Replace(l, " ", fmt.Sprintf(" object=e%d ", i), 1))
	}
	if got := probesOf(t, played(t, probedPod+becomesReady+lines)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTheLatestProbesAreKeptAndForgottenInTheEnd(t *testing.T) {
	lines := ""
	for i := range 40 {
		lines += fmt.Sprintf("%dms event a Unhealthy object=e%d last=%dms Readiness probe failed: %d\n", 6000+i, i, 6000+i, i)
	}
	m := played(t, probedPod+becomesReady+lines)
	got := probesOf(t, m)
	if len(got) != keepProbes || got[0].Message != "24" || got[keepProbes-1].Message != "39" {
		t.Errorf("%d probes: %+v", len(got), got)
	}
	for _, e := range []string{"11s del pod a\n11s del svc web\n", "7200s now\n", "7300s now\n", "7400s now\n"} {
		events, err := newScenario().parse("0 list pod a label=app:web\n" + e)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events[1:] {
			m.Apply(e)
		}
	}
	if len(m.probes) != 0 {
		t.Errorf("%d pods' probes are kept two hours after %v", len(m.probes), 11*time.Second)
	}
}
