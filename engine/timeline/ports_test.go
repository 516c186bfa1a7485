package timeline

import (
	"slices"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// A plane of rules shows what the node's rules do now, also when that changed in
// something that no endpoint and no lag depends on.
func TestAPlaneShowsWhatTheRulesDo(t *testing.T) {
	m, sc := New(Options{}), newScenario()
	var had *Plane
	for _, text := range []string{`
0    list node n1 ready
0    list svc web ip=10.96.0.11 port=80:8080 selector=app:web lb=192.0.2.1
0    list pod a label=app:web ip=10.0.0.1 node=n1 ready
0    list slice web-1 svc=web port=8080 a/ready
1ms  synced
2ms  rules n1 baseline gen=5 web=10.0.0.1:8080 lb=192.0.2.1:80
1s   now`, `
2s   rules n1 gen=6 web=10.0.0.1:8080 front=10.96.0.11:80,192.0.2.1:80
3s   now`, `
4s   rules n1 gen=7 web=none
5s   now`} {
		events, err := sc.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var want []collect.RulePort
		for _, e := range events {
			m.Apply(e)
			if r, ok := e.Payload.(*collect.Rules); ok {
				want = slices.DeleteFunc(slices.Clone(r.Ports), func(p collect.RulePort) bool { return p.Empty() })
			}
		}
		before := had
		had = m.Snapshot().Service("default", "web").Plane(PlaneID{Kind: PlaneRules, Node: "n1"})
		if !slices.EqualFunc(had.Ports, want, func(a, b collect.RulePort) bool { return a.Equal(&b) }) {
			t.Errorf("after %s:\nshows %+v\nwant  %+v", text, had.Ports, want)
		}
		if before == had {
			t.Errorf("after %s: the plane is the one from before", text)
		}
	}
}
