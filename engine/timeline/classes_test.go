package timeline

import (
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// A load balancer's source range that has one node's own address lets the load
// balancer's addresses through on that node alone (k8s.io/kubernetes v1.37.2
// pkg/proxy/nftables/proxier.go, isFromSelf). What is wanted of the nodes differs
// by that, also when a change of the slices moves it for all of them at once.
func TestASourceRangeWithANodesOwnAddressIsOfThatNodeAlone(t *testing.T) {
	m, sc := New(Options{}), newScenario()
	feed := func(text string) {
		events, err := sc.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch p := e.Payload.(type) {
			case *collect.Node:
				p.Addresses = []netip.Addr{netip.MustParseAddr(map[string]string{"n1": "203.0.113.1", "n2": "198.51.100.2"}[e.Object.Name])}
			case *collect.Rules:
				for i := range p.Ports {
					if p.Node == "n1" {
						p.Ports[i].Sources = collect.CanonicalPrefixes(append(p.Ports[i].Sources, netip.MustParsePrefix("192.0.2.1/32")))
					}
				}
			}
			m.Apply(e)
		}
	}
	feed(`0 list node n1 ready
0 list node n2 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web lb=192.0.2.1 from=203.0.113.0/24
0 list pod a label=app:web ip=10.0.0.1 node=n1 ready
0 list pod b label=app:web ip=10.0.0.2 node=n2 ready
0 list slice web-1 svc=web port=8080 a/ready
0 list endpoints web a/ready
1ms synced
2ms rules n1 baseline gen=5 web=10.0.0.1:8080 lb=192.0.2.1:80 from=203.0.113.0/24
2ms rules n2 baseline gen=5 web=10.0.0.1:8080 lb=192.0.2.1:80 from=203.0.113.0/24
1s mod slice web-1 a/ready b/ready
1s mod endpoints web a/ready b/ready
1010ms rules n1 gen=6 web=10.0.0.1:8080,10.0.0.2:8080 lb=192.0.2.1:80 from=203.0.113.0/24
1020ms rules n2 gen=6 web=10.0.0.1:8080,10.0.0.2:8080 lb=192.0.2.1:80 from=203.0.113.0/24
2s now`)
	svc := m.Snapshot().Service("default", "web")
	if svc.State != Converged {
		t.Errorf("%s: %+v", svc.State, svc.Differences)
	}
	for _, p := range svc.Rules.All() {
		if c := p.Changes[len(p.Changes)-1]; c.Want != 2 || !c.Agrees() {
			t.Errorf("%s: %+v", p.ID, c)
		}
		if n := len(p.Arrivals); n != 1 || p.Arrivals[0].Lag > 20*time.Millisecond {
			t.Errorf("%s: arrivals %+v", p.ID, p.Arrivals)
		}
	}
}
