package view

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// controllerColumns are the counts of a controller, in the order in which they matter
// when there is little room.
var controllerColumns = []struct {
	title string
	width int
	count func(*timeline.ControllerWork) int
	role  theme.Role // when it is not 0
}{
	{"queue", 7, func(w *timeline.ControllerWork) int { return w.Queue }, theme.Warn},
	{"deepest", 9, func(w *timeline.ControllerWork) int { return w.Deepest }, theme.Text},
	{"busy", 6, func(w *timeline.ControllerWork) int { return w.Busy }, theme.Text},
	{"conflicts", 11, func(w *timeline.ControllerWork) int { return w.Conflicts }, theme.Warn},
	{"retries", 9, func(w *timeline.ControllerWork) int { return w.Retries }, theme.Warn},
	{"given up", 10, func(w *timeline.ControllerWork) int { return w.GivenUp }, theme.Bad},
	{"syncs", 8, func(w *timeline.ControllerWork) int { return w.Syncs }, theme.Text},
	{"wrote", 8, func(w *timeline.ControllerWork) int { return w.Wrote }, theme.Text},
	{"API writes", 12, func(w *timeline.ControllerWork) int { return w.Writes }, theme.Text},
}

// drawControllers paints how the controllers are set and what each has done, and
// returns the next line.
func drawControllers(s *draw.Screen, x, y, w int, c *Context) int {
	if t := controllersText(c); t != "" {
		s.TextIn(x+2, y, w-4, theme.Text, t)
		y++
	}
	const first = 16 // of the columns
	if len(c.Snap.Work) > 0 {
		s.TextIn(x+2, y, first-2, theme.Dim, "controller")
		at := x + first
		for _, col := range controllerColumns {
			if at += col.width; at > x+w-1 {
				break
			}
			s.Right(at, y, theme.Dim, col.title)
		}
		y++
	}
	for i := range c.Snap.Work {
		work := &c.Snap.Work[i]
		s.NameIn(x+2, y, first-2, theme.Text, work.Controller)
		at := x + first
		for _, col := range controllerColumns {
			if at += col.width; at > x+w-1 {
				break
			}
			n, role := col.count(work), theme.Dim
			if n != 0 {
				role = col.role
			}
			s.Right(at, y, role, fmt.Sprint(n))
		}
		y++
	}
	s.Rule(x, y, w, "its steps, the newest first", "")
	return y + 1
}

// controllersText says how the controllers are set; empty when they have not said so.
func controllersText(c *Context) string {
	k := c.Snap.Controllers
	if k == nil {
		return ""
	}
	parts := []string{lanes.Plural(k.Workers, "worker") + " each"}
	if left := k.NextResync.Sub(c.Now); left > 0 {
		parts = append(parts, fmt.Sprintf("looks at every Service again in %s (resync every %s)", lanes.Duration(left), lanes.Duration(k.Resync)))
	}
	return strings.Join(parts, "   ")
}
