package view

import (
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestANodeTellsOfItsKubeProxyAndItsAgentsClock(t *testing.T) {
	now := time.Unix(1000, 0)
	n := &timeline.Node{Name: "node-1", Zone: "zone-a"}
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, []string{"node-1  zone zone-a"}},
		{func() { n.Unknown = []string{"table x"} }, []string{"node-1  zone zone-a  1 rule of no Service: table x"}},
		{func() {
			n.Unknown, n.Proxy = nil, &collect.ProxyState{Why: "connection refused"}
			n.Agent = &collect.AgentState{Version: "v1"}
		}, []string{"node-1  zone zone-a", "kube-proxy does not answer: connection refused", "agent v1"}},
		{func() {
			n.Proxy = &collect.ProxyState{Reachable: true, Version: "v1.37.2", Mode: "nftables", LastSync: now.Add(-3 * time.Second)}
			n.Clock = collect.ClockBound{Offset: -2 * time.Second, Error: 40 * time.Millisecond, How: "logs", OneSided: true}
		}, []string{
			"node-1  zone zone-a", "kube-proxy v1.37.2 nftables, says nothing of its health, last sync told of 3.00 s ago",
			"agent v1, clock 2.00 s off, known to ±40 ms (logs), one side only",
		}},
		{func() {
			n.Agent = nil
			n.Proxy.Healthy, n.Proxy.SyncFailures, n.Proxy.PendingServices, n.Proxy.PendingEndpoints = new(false), 2, 1, 3
			n.Proxy.ProgrammingCount, n.Proxy.ProgrammingSeconds = 4, 2
		}, []string{
			"node-1  zone zone-a",
			"kube-proxy v1.37.2 nftables, says it is NOT healthy, last sync told of 3.00 s ago, 2 failed syncs, 4 changes pending; official latency: mean 0.50 s, n=4, all Services",
		}},
	} {
		c.change()
		if got := nodeDetail(n, now); !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
