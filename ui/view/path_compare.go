package view

import (
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// keep keeps a change, so that those chosen next are shown beside it, or lets go the one
// that is kept.
func (v *PathView) keep(c *Context, svc *timeline.Service, p *timeline.Path) Request {
	if v.keptPath(c) != nil {
		v.kept = Focus{}
		return Request{Handled: true, Say: "beside what is usual again"}
	}
	v.kept = Focus{Namespace: svc.Namespace, Service: svc.Name, Path: p.ID}
	return Request{Handled: true, Say: lanes.PathName(p) + " is kept: choose another to see it beside this one"}
}

// keptPath is the change that is kept, or nil: there is none, or it was forgotten.
func (v *PathView) keptPath(c *Context) *timeline.Path {
	if v.kept.Path == "" || c.Snap == nil {
		return nil
	}
	svc := c.Snap.Service(v.kept.Namespace, v.kept.Service)
	if svc == nil {
		return nil
	}
	for _, q := range svc.PathsOf([]string{v.kept.Path}) {
		return q
	}
	return nil
}

// beside is the change to compare p with, or nil.
func (v *PathView) beside(c *Context, p *timeline.Path) *timeline.Path {
	if q := v.keptPath(c); q != nil && q.ID != p.ID {
		return q
	}
	return nil
}

// usualOrKept is what a hop's time is shown beside.
func usualOrKept(w *lanes.Waterfall, b *lanes.Bar, kept *timeline.Path) (time.Duration, bool) {
	if kept != nil {
		return w.Against(b, kept)
	}
	return b.Usual, b.UsualN >= 2
}
