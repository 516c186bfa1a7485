package timeline

import (
	"slices"
	"testing"
	"time"
)

// One generation of n1 takes the new pod in and the old one out: nobody ever saw
// both. On n2 two generations do, half a second apart.
func TestOneGenerationIsOneMoment(t *testing.T) {
	pod := func(name, revision, ip string) string {
		return "pod " + name + " label=app:web label=pod-template-hash:" + revision + " owner=ReplicaSet/web-" + revision + " node=n1 ip=" + ip + " ready=0s"
	}
	m := played(t, `
0     list node n1 ready
0     list node n2 ready
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0     list `+pod("old", "1a", "10.0.0.9")+`
0     list slice web-1 svc=web port=8080 old/ready
1ms   synced
2ms   rules n1 baseline gen=5 web=10.0.0.9:8080
2ms   rules n2 baseline gen=7 web=10.0.0.9:8080
1000ms add `+pod("new", "2b", "10.0.0.1")+`
1005ms mod slice web-1 new/ready
1100ms rules n1 gen=6 web=10.0.0.1:8080
9s     now`)
	svc := m.Snapshot().Service("default", "web")
	if got := svc.Together(epoch, epoch.Add(time.Minute)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	events, err := newScenario().parse(`
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
10000ms rules n2 gen=8 web=10.0.0.1:8080,10.0.0.9:8080
10500ms rules n2 gen=9 web=10.0.0.1:8080
11s    now`)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[1:] {
		m.Apply(e)
	}
	got := m.Snapshot().Service("default", "web").Together(epoch, epoch.Add(time.Minute))
	if len(got) != 1 || got[0].Workload != "web" || !slices.Equal(got[0].Revisions, []string{"1a", "2b"}) ||
		!got[0].From.Equal(epoch.Add(10*time.Second)) || got[0].Length(epoch) != 500*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if got := m.Snapshot().Service("default", "web").Together(epoch, epoch.Add(9*time.Second)); len(got) != 0 {
		t.Errorf("before it: %+v", got)
	}
}
