package timeline

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// churn makes Service svc0 lose and regain a pod every 100 ms for so long.
func churn(m *Model, d time.Duration) time.Time {
	_, loop := benchCluster(1, 2)
	rv, shift := uint64(1000), time.Duration(0)
	var at time.Time
	for shift < d {
		for _, e := range loop {
			e.At = e.At.Add(shift)
			if e.ResourceVersion != 0 {
				rv++
				e.ResourceVersion = rv
			}
			m.Apply(e)
			at = e.At
		}
		shift += 100 * time.Millisecond
	}
	return at
}

func TestRetentionDropsWhatIsOldAndKeepsWhatIsNow(t *testing.T) {
	m, _ := benchCluster(1, 2)
	m.opt.Retention = 20 * time.Second
	end := churn(m, 3*time.Minute)
	m.Apply(advance(end.Add(time.Second)))
	svc := m.Snapshot().Service("default", "svc0")
	// At 20 changes a second, and looked for once a minute.
	if n := len(svc.Paths); n > 20*81 || n < 20*19 {
		t.Errorf("%d paths kept of 3600", n)
	}
	oldest := svc.Paths[0].Origin.At
	if oldest.Before(end.Add(-81 * time.Second)) {
		t.Errorf("the oldest path is of %v, the end is %v", oldest, end)
	}
	for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
		if n := len(p.Changes); n > 2*20*81 {
			t.Errorf("%s keeps %d changes", p.ID, n)
		}
		if c, ok := p.At(end.Add(time.Second)); !ok || c.Want != 10 || c.Have != 10 {
			t.Errorf("%s is now %+v", p.ID, c)
		}
	}
	if n := len(svc.Pods); n != 10 {
		t.Errorf("%d pods kept, want 10", n)
	}
	if svc.State != Converged {
		t.Errorf("state %s", svc.State)
	}
}

func TestRetentionKeepsWhatIsOpenAndForgetsADeletedService(t *testing.T) {
	m, sc := New(Options{Retention: time.Minute}), newScenario()
	feed := func(text string) {
		events, err := sc.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			m.Apply(e)
		}
	}
	feed(`0 list node n1 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0 list pod a label=app:web ip=10.0.0.1 node=n1 ready
0 list slice web-1 svc=web port=8080 a/ready
0 list endpoints web a/ready
1ms synced
2ms rules n1 baseline gen=5 web=10.0.0.1:8080
1s mod pod a unready=1s
1005ms mod slice web-1 a/unready
1006ms mod endpoints web a/notready
10m now
11m1s now`)
	svc := m.Snapshot().Service("default", "web")
	if len(svc.Paths) != 1 || svc.Paths[0].Status != StatusOpen || svc.State != Stalled {
		t.Fatalf("an open path is not kept: %d paths, %s", len(svc.Paths), svc.State)
	}
	feed(`12m rules n1 gen=6 web=
12m1s del svc web
12m1s del slice web-1
12m1s del endpoints web
12m1s del pod a
12m2s rules n1 gen=7 web=none
12m3s now
20m now
21m1s now`)
	if s := m.Snapshot(); s.Service("default", "web") != nil || len(m.podsByUID) != 0 {
		t.Errorf("a Service deleted long ago is still there, or its pod: %v", m.podsByUID)
	}
}

func TestRetentionForgetsANodeThatWentLongAgo(t *testing.T) {
	m, sc := New(Options{Retention: time.Minute}), newScenario()
	events, err := sc.parse(`0 list node n1 ready
0 list node n2 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0 list pod a label=app:web ip=10.0.0.1 node=n1 ready
0 list slice web-1 svc=web port=8080 a/ready
0 list endpoints web a/ready
1ms synced
2ms rules n1 baseline gen=5 web=10.0.0.1:8080
2ms rules n2 baseline gen=5 web=10.0.0.1:8080
1s del node n2
2s now
90s now
3m now
5m now
5m1s rules n1 gen=6 web=10.0.0.1:8080
5m2s now`)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		m.Apply(e)
		if e.At.Sub(events[0].At) == 2*time.Second && m.nodes["n2"] == nil {
			t.Error("n2 is forgotten at once")
		}
	}
	s := m.Snapshot()
	if len(s.Nodes) != 1 || s.Nodes[0].Name != "n1" || m.nodes["n2"] != nil {
		t.Errorf("nodes %+v, want n1 only", s.Nodes)
	}
	if web := s.Service("default", "web"); web.State != Converged || web.Rules.Len() != 1 {
		t.Errorf("web is %s with the rules of %d nodes", web.State, web.Rules.Len())
	}
}

// TestSnapshotsMayBeReadWhileTheModelGoesOn is for the race detector.
func TestSnapshotsMayBeReadWhileTheModelGoesOn(t *testing.T) {
	m, loop := benchCluster(2, 2)
	var wg sync.WaitGroup
	rv := uint64(1000)
	for i := range 50 {
		for _, e := range loop {
			e.At = e.At.Add(time.Duration(i) * 100 * time.Millisecond)
			if e.ResourceVersion != 0 {
				rv++
				e.ResourceVersion = rv
			}
			m.Apply(e)
			s := m.Snapshot()
			wg.Go(func() {
				if !strings.Contains(dumpOf(s, "svc0"), "svc0-") {
					t.Error("the snapshot lacks the pods")
				}
			})
		}
	}
	wg.Wait()
}

func dumpOf(s *Snapshot, name string) string {
	var out string
	for _, section4 := range []string{"state", "planes", "paths", "differences", "pods", "episodes", "lane slices", "arrivals"} {
		text, err := section(s, section4+" of "+name)
		if err != nil {
			return err.Error()
		}
		out += text
	}
	return out
}

// TestUntouchedServicesAreTheSamePointer: only what something happened to is
// made anew.
func TestUntouchedServicesAreTheSamePointer(t *testing.T) {
	m, loop := benchCluster(3, 2)
	before := m.Snapshot()
	for _, e := range loop[:2] {
		m.Apply(e)
	}
	m.Apply(advance(loop[1].At.Add(time.Second)))
	after := m.Snapshot()
	if before.Service("default", "svc1") != after.Service("default", "svc1") {
		t.Error("svc1 was made anew")
	}
	if before.Service("default", "svc0") == after.Service("default", "svc0") {
		t.Error("svc0 was not")
	}
}
