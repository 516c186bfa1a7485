package view

import (
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// episodeCost remembers what an episode cost: it takes a look at every endpoint on
// every node, and stays the same until the Service's view changes.
type episodeCost struct {
	svc  *timeline.Service
	n    int
	now  time.Time
	text string
}

// capacityText says how low capacity fell in the episode around the cursor, or ""
// outside of one.
func (v *TimelineView) capacityText(c *Context, svc *timeline.Service) string {
	e := v.episodeBefore(c, svc)
	if e == nil || !e.End.IsZero() && e.End.Before(v.pic.Cursor) {
		return ""
	}
	// One that is not over grows, by a second at least before it is asked again.
	if m := &v.cost; m.svc != svc || m.n != e.N || e.End.IsZero() && c.Now.Sub(m.now) >= time.Second {
		*m = episodeCost{svc, e.N, c.Now, lanes.CapacityText(svc, *e, c.Now)}
	}
	return v.cost.text
}
