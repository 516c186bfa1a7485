package view

import (
	"fmt"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// EngineView shows the embedded reconciler and each node's rule sync.
type EngineView struct {
	l list
	h int
	n int
}

// NewEngine makes the view.
func NewEngine() *EngineView { return &EngineView{} }

// Title implements View.
func (*EngineView) Title() string { return "Engine" }

// Offers implements View.
func (*EngineView) Offers() []Action { return []Action{Up, Help, Palette} }

// Draw implements View.
func (v *EngineView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	v.n = 0
	if c.Snap == nil {
		drawWaiting(s, r, c)
		return
	}
	x, y, w := r.Min.X, r.Min.Y, r.Dx()
	s.Rule(x, y, w, "reconciler", "")
	y++
	steps := v.steps(c)
	if c.Snap.Reconciler == nil && len(steps) == 0 {
		for _, line := range noSteps(c.Snap.Session.ControlPlane) {
			s.TextIn(x+2, y, w-4, theme.Dim, line)
			y++
		}
		y++
	} else {
		y = drawControllers(s, x, y, w, c)
	}
	nodesH := min(len(c.Snap.Nodes)+2, (r.Dy()-3)/2)
	v.n, v.h = len(steps), max(1, r.Max.Y-y-nodesH-1)
	v.l.fit(v.n, v.h)
	for i := 0; i < v.h && v.l.first+i < len(steps); i++ {
		m := steps[len(steps)-1-v.l.first-i]
		k := m.Step.(*collect.ReconcileStep)
		role := theme.Text
		switch k.Step {
		case "conflict", "retry":
			role = theme.Warn
		case "dropped":
			role = theme.Bad
		case "queued", "started", "unchanged":
			role = theme.Dim
		}
		if v.l.first+i == v.l.at {
			s.Glyph(x, y, theme.Accent, s.Glyphs.Chosen)
		}
		s.Text(x+2, y, theme.Dim, m.At.In(c.Loc).Format("15:04:05.000"))
		s.NameIn(x+16, y, 14, theme.Dim, k.Controller)
		s.TextIn(x+31, y, w-32, role, stepText(k))
		y++
	}
	y = max(y, r.Max.Y-nodesH)
	s.Rule(x, y, w, "rule sync of each node", "")
	y++
	for i, n := range c.Snap.Nodes {
		if y >= r.Max.Y {
			s.Right(x+w-1, r.Max.Y-1, theme.Dim, fmt.Sprintf("%d more nodes", len(c.Snap.Nodes)-i))
			break
		}
		s.NameIn(x+2, y, 20, theme.Text, n.Name)
		if n.Sync == nil {
			s.TextIn(x+24, y, w-25, theme.Dim, "not of this program")
		} else {
			role := theme.Text
			if n.Sync.Step == "failed" {
				role = theme.Bad
			}
			t := lanes.SyncText(n.Sync)
			if n.Sync.Pending > 0 && n.Sync.Step != "committed" {
				t += "   " + lanes.Plural(n.Sync.Pending, "Service") + " pending"
			}
			s.TextIn(x+24, y, w-25, role, t)
		}
		y++
	}
}

// noSteps says, in lines, why there are no steps of controllers.
func noSteps(controlPlane string) []string {
	where := "the controllers of this cluster run elsewhere"
	switch controlPlane {
	case "":
	case collect.OwnControlPlane:
		return []string{"no steps yet"}
	default:
		where = "the controllers are " + controlPlane
	}
	return []string{where, "their steps (queue, tries, conflicts) are not seen", "what they write is on the Timeline"}
}

func stepText(k *collect.ReconcileStep) string {
	t := k.Step
	if k.Took > 0 {
		t += " in " + lanes.Duration(k.Took)
	}
	if k.Tries > 1 {
		t += fmt.Sprintf(", try %d", k.Tries)
	}
	if k.Detail != "" {
		t += ": " + k.Detail
	}
	return t
}

// steps are the reconciler's marks, by time.
func (v *EngineView) steps(c *Context) []timeline.Mark {
	var all []timeline.Mark
	if c.Snap == nil {
		return nil
	}
	svcMarks := []timeline.Mark(nil)
	if svc := c.Service(); svc != nil {
		svcMarks = svc.Marks
	}
	for _, m := range mergeMarks(newest(c.Snap.Marks), newest(svcMarks)) {
		if _, ok := m.Step.(*collect.ReconcileStep); ok {
			all = append(all, m)
		}
	}
	return all
}

// Do implements View.
func (v *EngineView) Do(a Action, _ *Context) Request {
	if v.l.do(a, v.n, v.h) {
		return handled
	}
	return Request{}
}

// mergeMarks joins lists that are each sorted by time.
func mergeMarks(a, b []timeline.Mark) []timeline.Mark {
	out := make([]timeline.Mark, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && !a[0].At.After(b[0].At) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}
