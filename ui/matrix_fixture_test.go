package ui_test

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// manyEndpoints is a Service of so many pods on so many nodes (at least six of
// both) in which every kind of cell is found: the last pod became ready 2 s ago
// and every seventh node has not got it; the one before it began to end 3 s ago
// and stopped a second later, and every fifth node still routes to it. Nothing
// observes the fourth node, the third is in a gap, the second has an endpoint that
// was never wanted and another one that differs in a port, and the first should
// not route to the first pod, nor does it.
func manyEndpoints(pods, nodes int) *timeline.Snapshot {
	spec := lanestest.Web(time.Second)
	spec.Pods, spec.Nodes, spec.Actions, spec.Reconciles = nil, nil, nil, nil
	for i := range nodes {
		spec.Nodes = append(spec.Nodes, fmt.Sprintf("node-%02d", i+1))
	}
	every := func(n int, then time.Duration) map[string]time.Duration {
		out := map[string]time.Duration{}
		for i, name := range spec.Nodes {
			if out[name] = then + time.Duration(i)*time.Millisecond; i%n == n-1 {
				out[name] = lanestest.Never
			}
		}
		return out
	}
	const slice = 8 * time.Millisecond
	for i := range pods {
		p := lanestest.Pod{
			Name: fmt.Sprintf("web-7d9c4b-%c%c%dxq", 'a'+i%26, 'z'-i/26, i%10), Node: spec.Nodes[i%nodes], IP: fmt.Sprintf("10.244.%d.%d", i/50+1, i%50+2),
			Base: true, Ready: spec.First.Add(-time.Minute),
		}
		switch i {
		case pods - 1:
			p.Base, p.Created, p.Started, p.Ready = false, spec.Now.Add(-4*time.Second), spec.Now.Add(-3*time.Second), spec.Now.Add(-2*time.Second)
			p.Add = lanestest.Lags{Slice: slice, Endpoints: slice, Nodes: every(7, 90*time.Millisecond)}
		case pods - 2:
			p.Term, p.Stop = spec.Now.Add(-3*time.Second), spec.Now.Add(-2*time.Second)
			p.Remove = lanestest.Lags{Slice: slice, Endpoints: slice, Nodes: every(5, 120*time.Millisecond)}
		}
		spec.Pods = append(spec.Pods, p)
	}
	spec.Blind = []string{spec.Nodes[3]}
	snap := spec.Snapshot()
	svc := snap.Services[0]

	planes := svc.Rules.All()
	gap := planes[2]
	last := gap.Changes[len(gap.Changes)-1]
	last.At, last.Knowledge = spec.Now.Add(-1500*time.Millisecond), timeline.InGap
	gap.Changes = append(gap.Changes, last)
	svc.Coverage.Gap = []string{gap.ID.Node}

	odd := planes[1]
	for i, kind := range []string{"unexpected", "changed"} {
		at := spec.Now.Add(-time.Duration(900-100*i) * time.Millisecond)
		m := &odd.Members[1+i]
		c := timeline.MemberChange{At: at, Have: true, Want: kind == "changed", Unexpected: kind == "unexpected"}
		m.Changes = append(m.Changes[:len(m.Changes):len(m.Changes)], c)
		svc.Differences = append(svc.Differences, timeline.Difference{Plane: odd.ID, Endpoint: m.Endpoint, Kind: kind, Since: at})
	}
	c := odd.Changes[len(odd.Changes)-1]
	c.At, c.Unexpected, c.Changed = spec.Now.Add(-800*time.Millisecond), 1, 1
	odd.Changes = append(odd.Changes, c)

	planes[0].Members = planes[0].Members[1:]
	return snap
}
