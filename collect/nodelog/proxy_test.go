package nodelog

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// kube-proxy's word comes only when it is news: a viewer that comes later is told
// the last one all the same, at its own time and on its own clock.
func TestKubeProxysWordOfThePastIsTold(t *testing.T) {
	viewerAt := time.Unix(2000, 0).UTC()
	const ahead = time.Hour // the node's clock
	node := func(t time.Time) time.Time { return t.Add(ahead) }
	var got []collect.Event
	s := newStream("node-1", collect.SinkFunc(func(e collect.Event) {
		if e.Source == collect.AgentSource("node-1") {
			got = append(got, e)
		}
	}), newKnown(), nil, func() collect.NodeClock { return collect.NodeClock{} })
	line := func(seq uint64, at time.Time, source collect.SourceID, p collect.Payload) {
		s.line(collect.Event{Seq: seq, At: node(at), Source: source, Payload: p}, at)
	}
	agent := collect.AgentSource("node-1")
	line(1, viewerAt.Add(-60*time.Second), agent, &collect.AgentState{Node: "node-1", Instance: "a", Heartbeat: time.Hour})
	line(2, viewerAt.Add(-50*time.Second), agent, &collect.ProxyState{Node: "node-1", Reachable: true, Version: "old"})
	line(3, viewerAt.Add(-40*time.Second), agent, &collect.ProxyState{Node: "node-1", Reachable: true, LastSync: node(viewerAt.Add(-45 * time.Second))})
	line(4, viewerAt.Add(-30*time.Second), collect.RulesSource("node-1"), &collect.Rules{Node: "node-1", Generation: 1, Baseline: true})
	if len(got) > 0 {
		t.Fatalf("told before the viewer came: %+v", got)
	}
	s.present(viewerAt)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	p := got[1].Payload.(*collect.ProxyState)
	if p.Version != "" || !p.Started.IsZero() || p.LastSync.Sub(viewerAt.Add(-45*time.Second)).Abs() > time.Second {
		t.Errorf("%+v, want the last sync at about %s", p, viewerAt.Add(-45*time.Second))
	}
	if at := got[1].At; at.Before(viewerAt.Add(-31 * time.Second)) {
		t.Errorf("told as of %s, before what is known of the node's rules", at)
	}
	line(5, viewerAt.Add(time.Second), agent, &collect.ProxyState{Node: "node-1", Why: "gone"})
	if p := got[2].Payload.(*collect.ProxyState); p.Why != "gone" {
		t.Errorf("%+v", p)
	}
}
