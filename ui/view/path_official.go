package view

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// officialText is what the nodes' kube-proxies will have put into their own
// metric for the change, or why nothing: one sentence, to be wrapped. Empty while
// no node has arrived.
func officialText(nodes []timeline.Hop, loc *time.Location) string {
	const named = 4
	var text, why string
	var since time.Time
	n, none, more := 0, 0, 0
	same := true
	for i := range nodes {
		h := &nodes[i]
		switch {
		case h.Status != timeline.StatusArrived:
		case h.Official == nil:
			none++
			if why != "" && why != h.OfficialWhy {
				why = "not for the same reason"
			} else {
				why = h.OfficialWhy
			}
		case n < named:
			n++
			if text != "" {
				text += ", "
			}
			same = same && (since.IsZero() || since.Equal(h.Trigger))
			text += h.Plane.Node + " " + lanes.AtMost(h, *h.Official)
			since = h.Trigger
		default:
			n++
			more++
		}
	}
	switch {
	case n == 0 && why == "":
		return ""
	case n == 0:
		return "the official metric has nothing of it: " + why
	}
	if more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	text = "the official metric says: " + text
	if same {
		text += ", since " + since.In(loc).Format("15:04:05")
	}
	if none > 0 {
		text += fmt.Sprintf("; nothing of %s: %s", lanes.Plural(none, "node"), why)
	}
	return text
}
