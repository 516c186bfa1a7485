package timeline

import (
	"testing"
	"time"
)

// Pod b goes at 1 s, another pod has its address from 2 s on, and n1 routes to b
// until 3 s: for a second connections reach the other. Pods on their node's network
// share its address, and nobody took it.
func TestAnAddressIsTakenOnlyByAPodOfItsOwn(t *testing.T) {
	for attr, want := range map[string]time.Duration{"": time.Second, " hostnetwork": 0} {
		m := played(t, `
0     list node n1 ready
0     list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0     list pod b label=app:web ip=10.0.0.2 node=n1 ready`+attr+`
0     list slice web-1 svc=web port=8080 b/ready
1ms   synced
2ms   rules n1 baseline gen=5 web=10.0.0.2:8080
1000ms del pod b
1005ms mod slice web-1 port=8080
2000ms add pod c label=app:other ip=10.0.0.2 node=n1`+attr+`
3000ms rules n1 gen=6 web=
4s     now`)
		got := m.Snapshot().Service("default", "web").Paths[0].Risk
		if got.WrongPod != want || got.WrongPodGrowing {
			t.Errorf("pods%q: %+v, want %v", attr, got, want)
		}
	}
}
