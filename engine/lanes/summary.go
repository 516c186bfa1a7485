package lanes

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Summary tells in a line or two what a session saw: how many changes of how many
// Services, and the slowest of them with the hop that took most of it. It is for
// whoever has closed the screen.
func Summary(s *timeline.Snapshot) []string {
	if s == nil {
		return nil
	}
	n, open, services := 0, 0, 0
	var slowest *Waterfall
	var of *timeline.Service
	for _, svc := range s.Services {
		if len(svc.Paths) > 0 {
			services++
		}
		var longest *timeline.Path
		for _, p := range svc.Paths {
			n++
			switch {
			case p.Status == timeline.StatusOpen:
				open++
			case p.Status == timeline.StatusArrived && (longest == nil || took(p) > took(longest)):
				longest = p
			}
		}
		if longest != nil && (slowest == nil || took(longest) > took(slowest.Path)) {
			slowest, of = NewWaterfall(longest, svc.Paths, s.Now), svc
		}
	}
	first := fmt.Sprintf("%s of %s in %s", Plural(n, "change"), Plural(services, "Service"), SpanOf(s.Now.Sub(s.First).Round(time.Second)))
	switch {
	case n == 0:
		return []string{"No change in " + SpanOf(s.Now.Sub(s.First).Round(time.Second)) + "."}
	case open > 0:
		first += fmt.Sprintf(", %d of them not everywhere yet", open)
	}
	out := []string{first + "."}
	if slowest == nil {
		return out
	}
	p := slowest.Path
	took := Duration(took(p))
	if slowest.loose() {
		took = "at most " + took
	}
	text := fmt.Sprintf("Slowest: %s of %s/%s (%s), %s", PathName(p), of.Namespace, of.Name, CauseText(p.Cause), took)
	if len(slowest.Nodes) > 0 {
		text += " to " + slowest.Nodes[0].Plane.Node
	}
	if hop := slowestHop(slowest); hop != "" {
		text += "; longest hop: " + hop
	}
	return append(out, text+".")
}

// took is the time from a path's origin to its last arrival.
func took(p *timeline.Path) time.Duration { return p.End().Sub(p.Origin.At) }

// slowestHop names the hop from the origin on that took longest.
func slowestHop(w *Waterfall) string {
	var longest *Bar
	for i := range w.Bars {
		b := &w.Bars[i]
		if b.Depth != 0 || b.From.Before(w.Path.Origin.At) || b.Took <= 0 {
			continue
		}
		if longest == nil || b.Took > longest.Took {
			longest = b
		}
	}
	if longest == nil {
		return ""
	}
	return longest.Label + ", " + Duration(longest.Took)
}
