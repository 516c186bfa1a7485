package lanes

import (
	"fmt"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// CapacityText says how far the nodes' capacity fell short in an episode: "worst in
// this episode: 4 of 7 could answer on node-3 for 2.54 s"; "" when it is not known,
// when no endpoint came or went, and when as many as wanted could answer all the
// time.
func CapacityText(svc *timeline.Service, e timeline.Episode, now time.Time) string {
	to := e.End
	if to.IsZero() {
		to = now
	}
	if e.Adds+e.Removes == 0 {
		return ""
	}
	c := svc.Capacity(e.Start, to)
	l := c.Short
	if l == nil {
		return ""
	}
	s := fmt.Sprintf("worst in this episode: %d of %d", l.Answering, l.Wanted)
	if l.WantedByPods < 0 {
		s += " over " + string(l.Family)
	}
	s += fmt.Sprintf(" could answer on %s for %s", printable(l.Node), Duration(l.For))
	if l.Error > l.For {
		s += " " + ErrorBound(l.Error)
	}
	if n := len(c.Unseen); n > 0 {
		s += ", " + Plural(n, "node") + " not known"
	}
	return s
}

// UnroutedText says what an addition cost: "not routed to for 2.92 pod-seconds to
// the last node, 1.38 as the mean"; "" for other changes, and where it is not
// known.
func UnroutedText(svc *timeline.Service, p *timeline.Path, now time.Time) string {
	u := svc.Unrouted([]*timeline.Path{p}, now)
	if u.N == 0 {
		return ""
	}
	return fmt.Sprintf("lost capacity: %s pod-seconds to the last node, %s as the mean of the nodes", podSeconds(u.ToLast), podSeconds(u.Mean))
}

func podSeconds(a timeline.Amount) string {
	s := strconv.FormatFloat(a.D.Seconds(), 'f', 2, 64)
	switch {
	case a.Growing:
		return ">" + s
	case a.Width >= looseFrom:
		return "≤" + s
	}
	return s
}

// AdviceText says which preStop the Service's removals would have needed: "a
// preStop of at least 1.4 s would have covered the worst of 6 removals"; "" when
// none is known.
func AdviceText(svc *timeline.Service) string {
	a := svc.Advice(svc.Paths)
	if a.N == 0 {
		return ""
	}
	at := "at least"
	if a.Worst.Growing {
		at = "more than"
	}
	s := fmt.Sprintf("a preStop of %s %.1f s would have covered ", at, a.Worst.Needed().Seconds())
	if a.N == 1 {
		s += "the one removal"
	} else {
		s += "the worst of " + Plural(a.N, "removal")
	}
	if a.P99 != nil {
		over := ""
		if a.P99.Growing {
			over = ">"
		}
		s += ", p99 " + over + Duration(a.P99.D)
	}
	if len(a.LeftOut) > 0 {
		n := 0
		for _, l := range a.LeftOut {
			n += l.N
		}
		s += fmt.Sprintf(" (%d not counted)", n)
	}
	return s
}
