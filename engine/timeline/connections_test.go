package timeline

import (
	"net/netip"
	"testing"
	"time"
)

// TestAFailedConnectionIsExplained goes through what a node can have while a connection
// is under way.
func TestAFailedConnectionIsExplained(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	ip := netip.MustParseAddr("10.244.1.2")
	member := func(uid string, changes ...MemberChange) Member {
		return Member{Endpoint: Endpoint{EndpointID: EndpointID{UID: uid, IP: ip}, Pod: uid, Family: "IPv4"}, Changes: changes}
	}
	have := func(from int, yes bool) MemberChange {
		return MemberChange{At: s(from), Have: yes, Want: yes, Agrees: true}
	}
	track := func(uid string, changes ...PodChange) PodTrack {
		return PodTrack{UID: uid, Name: uid, Changes: changes}
	}
	phase := func(from int, p PodPhase) PodChange { return PodChange{At: s(from), Phase: p} }

	for name, c := range map[string]struct {
		members []Member
		pods    []PodTrack
		want    string
	}{
		"routed to and ready":          {[]Member{member("a", have(0, true))}, []PodTrack{track("a", phase(0, PodReady))}, Unexplained},
		"routed to and terminating":    {[]Member{member("a", have(0, true))}, []PodTrack{track("a", phase(0, PodReady), phase(5, PodTerminating))}, FailureRisk},
		"routed to and stopped":        {[]Member{member("a", have(0, true)), member("b", have(0, true))}, []PodTrack{track("a", phase(0, PodReady)), track("b", phase(0, PodReady), phase(3, PodStopped))}, FailureRisk},
		"let go of before it went":     {[]Member{member("a", have(0, true)), member("b", have(0, true), have(8, false))}, []PodTrack{track("a", phase(0, PodReady)), track("b", phase(0, PodReady), phase(7, PodTerminating))}, Unexplained},
		"terminating only later":       {[]Member{member("a", have(0, true))}, []PodTrack{track("a", phase(0, PodReady), phase(12, PodTerminating))}, Unexplained},
		"routed to and not ready":      {[]Member{member("a", have(0, true))}, []PodTrack{track("a", phase(0, PodReady), phase(9, PodUnready))}, FailureUnready},
		"nothing to route to":          {nil, nil, FailureNoEndpoints},
		"nothing since before":         {[]Member{member("a", have(0, true), have(9, false))}, []PodTrack{track("a", phase(0, PodReady))}, FailureNoEndpoints},
		"nothing for a moment of it":   {[]Member{member("a", have(0, true), have(10, false), have(11, true))}, []PodTrack{track("a", phase(0, PodReady))}, FailureNoEndpoints},
		"one after the other, no hole": {[]Member{member("a", have(0, true), have(10, false)), member("b", have(10, true))}, []PodTrack{track("a", phase(0, PodReady)), track("b", phase(0, PodReady))}, Unexplained},
	} {
		t.Run(name, func(t *testing.T) {
			svc := &Service{Pods: c.pods, Rules: PlanesOf(&Plane{ID: PlaneID{Kind: PlaneRules, Node: "n1"}, Members: c.members})}
			f := &ConnectionFailure{Began: s(10), Ended: s(11), Node: "n1", Address: netip.MustParseAddrPort("10.96.0.1:80")}
			if got := svc.ExplainFailure(f, nil); got.Kind != c.want {
				t.Errorf("%q of %v, want %q", got.Kind, got.Pods, c.want)
			}
		})
	}
}
