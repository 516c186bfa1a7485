package view

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestTheOfficialMetricIsSaidInOneSentence(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 4, 13, 0, time.UTC)
	hop := func(node string, d time.Duration, why string) timeline.Hop {
		h := timeline.Hop{Status: timeline.StatusArrived, Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: node}, OfficialWhy: why}
		if why == "" {
			h.Official, h.Trigger = &d, at
		}
		return h
	}
	open := timeline.Hop{Status: timeline.StatusOpen}
	later := hop("n2", time.Second, "")
	later.Trigger = at.Add(time.Second)
	for _, c := range []struct {
		nodes []timeline.Hop
		want  string
	}{
		{nil, ""},
		{[]timeline.Hop{open}, ""},
		{[]timeline.Hop{open, hop("n1", 2990*time.Millisecond, "")}, "the official metric says: n1 2.99 s, since 12:04:13"},
		{[]timeline.Hop{hop("n1", 2990*time.Millisecond, ""), later}, "the official metric says: n1 2.99 s, n2 1.00 s"},
		{[]timeline.Hop{hop("n1", 0, "no trigger"), hop("n2", 0, "no trigger")}, "the official metric has nothing of it: no trigger"},
		{[]timeline.Hop{hop("n1", 0, "no trigger"), hop("n2", 0, "older")}, "the official metric has nothing of it: not for the same reason"},
		{[]timeline.Hop{hop("n1", 0, "older"), hop("n2", time.Second, "")}, "the official metric says: n2 1.00 s, since 12:04:13; nothing of 1 node: older"},
		{
			[]timeline.Hop{hop("a", 6*time.Second, ""), hop("b", 5*time.Second, ""), hop("c", 4*time.Second, ""), hop("d", 3*time.Second, ""), hop("e", 2*time.Second, ""), hop("f", time.Second, "")},
			"the official metric says: a 6.00 s, b 5.00 s, c 4.00 s, d 3.00 s, 2 more, since 12:04:13",
		},
	} {
		if got := officialText(c.nodes, time.UTC); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
