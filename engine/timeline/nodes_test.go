package timeline

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func TestAnotherKubeProxyIsAMark(t *testing.T) {
	m, _ := benchCluster(1, 1)
	at := epoch.Add(time.Minute)
	say := func(d, started time.Duration) {
		p := &collect.ProxyState{Node: "n0", Reachable: started != 0}
		if started != 0 {
			p.Started = at.Add(started)
		}
		m.Apply(collect.Event{At: at.Add(d), Source: collect.AgentSource("n0"), Payload: p})
	}
	say(0, -time.Hour)
	say(time.Second, -time.Hour+time.Second) // a clock that is known a little better
	say(2*time.Second, 0)                    // it does not answer
	say(20*time.Second, 5*time.Second)
	say(30*time.Second, 5*time.Second)
	m.Apply(advance(at.Add(time.Minute)))
	marks := m.Snapshot().Marks
	if len(marks) != 1 || marks[0].Kind != "proxy" || marks[0].Node != "n0" || !marks[0].At.Equal(at.Add(5*time.Second)) {
		t.Errorf("%+v", marks)
	}
}

func TestANodeCarriesWhatItsAgentAndKubeProxySay(t *testing.T) {
	m, _ := benchCluster(1, 2)
	at := epoch.Add(time.Minute)
	agent, proxy := &collect.AgentState{Node: "n1", Version: "v2"}, &collect.ProxyState{Node: "n1", Reachable: true}
	clock := collect.ClockBound{Offset: time.Second, Error: time.Millisecond, How: "synchronised"}
	for _, e := range []collect.Event{
		{At: at, Source: collect.AgentSource("n1"), Payload: agent},
		{At: at, Source: collect.AgentSource("n1"), Payload: proxy},
		{At: at, Source: collect.RulesSource("n1"), Payload: &clock},
		advance(at.Add(time.Minute)),
	} {
		m.Apply(e)
	}
	nodes := m.Snapshot().Nodes
	if len(nodes) != 2 || nodes[0].Agent != nil || nodes[0].Proxy != nil || nodes[0].Clock.How != "" {
		t.Errorf("%+v", nodes)
	}
	if n := nodes[1]; n.Agent != agent || n.Proxy != proxy || n.Clock != clock {
		t.Errorf("%+v", n)
	}
}
