package report

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// TestConnectionsAreThoseOfTheTimeAskedFor: in every second one connection fails, and as
// many succeed as the second's number.
func TestConnectionsAreThoseOfTheTimeAskedFor(t *testing.T) {
	s := addition()
	svc := s.Services[0]
	for i := range 4 {
		from := at(1000 * i)
		svc.Connections = append(svc.Connections, timeline.ConnectionCount{From: from, To: from.Add(900 * time.Millisecond), Node: "node-1", OK: i})
		svc.Failures = append(svc.Failures, timeline.ConnectionFailure{Began: from.Add(100 * time.Millisecond), Ended: from.Add(200 * time.Millisecond), Node: "node-1"})
	}
	for _, c := range []struct{ from, to, ok, failed int }{
		{-1, -1, 6, 4}, {-1, 1500, 1, 2}, {2150, -1, 5, 2}, {1300, 2050, 3, 0}, {3950, -1, 0, 0},
	} {
		limit := func(ms int) time.Time {
			if ms < 0 {
				return time.Time{}
			}
			return at(ms)
		}
		got := BuildBetween(s, nil, limit(c.from), limit(c.to)).Services[0].Connections
		if got == nil || got.OK != c.ok || got.Failed != c.failed || len(got.Failures) != c.failed {
			t.Errorf("from %d to %d ms: %+v, want %d and %d that failed", c.from, c.to, got, c.ok, c.failed)
		}
	}
}
