package agent

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// What kube-proxy says is told when it changes, so that it is told again when
// that was given up.
func TestWhatKubeProxySaidIsToldAgainAfterALoss(t *testing.T) {
	for _, known := range []bool{false, true} {
		q := newQueue("node-1", collect.SystemClock{}, 10)
		if known {
			q.Emit(rulesEvent(1, true, port("web", 1)))
		}
		for _, mode := range []string{"iptables", "nftables"} {
			q.Emit(collect.Event{At: time.Now(), Source: collect.AgentSource("node-1"), Payload: &collect.ProxyState{Node: "node-1", Mode: mode}})
		}
		for i := range 10 {
			q.Emit(collect.Event{At: time.Now(), Source: collect.RulesSource("node-1"), Payload: &collect.Vouch{Generation: uint32(i)}})
		}
		events, _ := q.take()
		var modes []string
		gaps := 0
		for _, e := range events {
			switch p := e.Payload.(type) {
			case *collect.ProxyState:
				if e.Source != collect.AgentSource("node-1") || e.NotBefore.IsZero() {
					t.Errorf("said by %s, not before %s", e.Source, e.NotBefore)
				}
				modes = append(modes, p.Mode)
			case *collect.Gap:
				gaps++
			}
		}
		if gaps != 1 || len(modes) != 1 || modes[0] != "nftables" {
			t.Errorf("%d gaps, kube-proxy's modes %v", gaps, modes)
		}
	}
}
