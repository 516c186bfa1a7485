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
	of   string // the Service's key
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
	m, of := &v.cost, key(svc)
	fresh := m.svc == svc
	if e.End.IsZero() {
		// One that is not over changes all the time: once a second is enough.
		fresh = c.Now.Sub(m.now) < time.Second && !c.Now.Before(m.now)
	}
	if !fresh || m.of != of || m.n != e.N {
		*m = episodeCost{svc, of, e.N, c.Now, lanes.CapacityText(svc, *e, c.Now)}
	}
	return v.cost.text
}
