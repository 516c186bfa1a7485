package view

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// stateMark is a Service's state as a sign and a word with its role.
func stateMark(svc *timeline.Service, now time.Time, g *draw.Glyphs) (string, theme.Role) {
	if !svc.Deleted.IsZero() {
		return g.StoppedAt + " deleted", theme.Dim
	}
	switch svc.State {
	case timeline.Unknown:
		return "? not listed yet", theme.Warn
	case timeline.Converged:
		if !svc.Coverage.Complete() {
			return "? converged where seen", theme.Warn
		}
		return g.Converged + " converged", theme.Good
	case timeline.Stalled:
		return g.Stalled + " stalled " + age(svc, now), theme.Bad
	}
	return g.Converging + " converging " + age(svc, now), theme.Warn
}

func age(svc *timeline.Service, now time.Time) string {
	if svc.Since.IsZero() {
		return ""
	}
	return lanes.Age(max(0, now.Sub(svc.Since)))
}

// waiting says what a Service waits for, in several lengths, the longest first:
// "waiting for node-3 (2 removals)", "waiting for 3 nodes (1 addition, 1
// removal)", "waiting for 3 nodes (+1 −1)". It is empty when it waits for
// nothing.
func waiting(svc *timeline.Service) []string {
	type group struct{ adds, removes, other int }
	groups := map[string]*group{}
	var planes []string
	for _, d := range svc.Differences {
		if d.Plane.Kind == timeline.PlaneEndpoints {
			continue // advisory: it never holds anything back
		}
		name := string(d.Plane.Kind)
		if d.Plane.Node != "" {
			name = d.Plane.Node
		}
		g := groups[name]
		if g == nil {
			g = &group{}
			groups[name] = g
			planes = append(planes, name)
		}
		switch d.Kind {
		case "missing":
			g.adds++
		case "stale", "unexpected":
			g.removes++
		default:
			g.other++
		}
	}
	if len(planes) == 0 {
		return nil
	}
	sort.Strings(planes)
	inWords := func(g group) string {
		var what []string
		if g.adds > 0 {
			what = append(what, lanes.Plural(g.adds, "addition"))
		}
		if g.removes > 0 {
			what = append(what, lanes.Plural(g.removes, "removal"))
		}
		if g.other > 0 {
			what = append(what, lanes.Plural(g.other, "change"))
		}
		return strings.Join(what, ", ")
	}
	inSigns := func(g group) string {
		var what []string
		for _, x := range []struct {
			n    int
			sign string
		}{{g.adds, "+"}, {g.removes, lanes.Minus}, {g.other, "≠"}} {
			if x.n > 0 {
				what = append(what, x.sign+strconv.Itoa(x.n))
			}
		}
		return strings.Join(what, " ")
	}
	// Planes that wait for the same are named together.
	var kinds []group
	same := map[group][]string{}
	for _, n := range planes {
		g := *groups[n]
		if same[g] == nil {
			kinds = append(kinds, g)
		}
		same[g] = append(same[g], n)
	}
	say := func(most int, what func(group) string) string {
		var parts []string
		for i, g := range kinds {
			if i == most {
				parts = append(parts, fmt.Sprintf("%d more", len(kinds)-i))
				break
			}
			who := strings.Join(same[g], " ")
			if len(same[g]) > 2 {
				who = strconv.Itoa(len(same[g])) + " planes"
				if !slices.Contains(same[g], string(timeline.PlaneSlices)) {
					who = strconv.Itoa(len(same[g])) + " nodes"
				}
			}
			parts = append(parts, who+" ("+what(g)+")")
		}
		return strings.Join(parts, ", ")
	}
	out := []string{"waiting for " + say(3, inWords), "waiting for " + say(3, inSigns), "waiting for " + say(1, inSigns)}
	short := lanes.Plural(len(planes), "plane")
	if len(planes) == 1 {
		short = planes[0]
	} else if _, ok := groups[string(timeline.PlaneSlices)]; !ok {
		short = lanes.Plural(len(planes), "node")
	}
	return append(out, "waiting for "+short)
}

// risky tells whether a node routes to something that has stopped.
func risky(svc *timeline.Service) bool {
	for _, d := range svc.Differences {
		if !d.Stopped.IsZero() {
			return true
		}
	}
	return false
}

// counts are the sizes of a Service's planes now, in several lengths, the longest
// first: "pods 5  slices 5  endpoints 5  rules 5 5 7", "5 5 5 rules 5 5 7" (pods,
// slices, endpoints), "rules 5 5 7".
func counts(svc *timeline.Service) []string {
	ready := 0
	for i := range svc.Pods {
		if n := len(svc.Pods[i].Changes); n > 0 && svc.Pods[i].Changes[n-1].Phase == timeline.PodReady {
			ready++
		}
	}
	number := func(c timeline.PlaneChange) string {
		switch {
		case c == (timeline.PlaneChange{}):
			return "–"
		case c.Knowledge == timeline.Blind:
			return "?"
		}
		return strconv.Itoa(c.Have)
	}
	last := func(p *timeline.Plane) string {
		if p == nil || len(p.Changes) == 0 {
			return "–"
		}
		return number(p.Changes[len(p.Changes)-1])
	}
	pods, sl, eps := strconv.Itoa(ready), last(svc.Slices), last(svc.Endpoints)
	rules := "no rules"
	if svc.RoutedByProxy {
		rules = "rules"
		for i, c := range svc.Rules.Latest(7) {
			if i == 6 {
				rules += " …"
				break
			}
			rules += " " + number(c)
		}
	}
	return []string{
		"pods " + pods + "  slices " + sl + "  endpoints " + eps + "  " + rules,
		pods + " " + sl + " " + eps + " " + rules,
		rules,
	}
}

// StateLine paints the line that says how the Service in focus is and what it
// waits for.
func StateLine(s *draw.Screen, x, y, w int, c *Context) {
	end := x + w
	if c.Snap == nil {
		s.TextIn(x+1, y, w-2, theme.Warn, s.Glyphs.Converging+" "+c.Waiting)
		return
	}
	if why := trouble(c.Snap); why != "" && c.Service() == nil {
		s.TextIn(x+1, y, w-2, theme.Bad, s.Glyphs.Alert+" "+why)
		return
	}
	if miss := unvouched(c.Snap); len(miss) > 0 && c.Service() == nil {
		s.TextIn(x+1, y, w-2, theme.Warn, s.Glyphs.Converging+" waiting for "+strings.Join(miss, ", "))
		return
	}
	svc := c.Service()
	if svc == nil {
		s.TextIn(x+1, y, w-2, theme.Dim, focusMissing(c))
		return
	}
	if risky(svc) {
		end = s.Right(end-1, y, theme.Bad, "! risk") - 1
	}
	x = s.NameIn(x+1, y, max(8, w/3), theme.Strong, svc.Namespace+"/"+svc.Name) + 2
	mark, role := stateMark(svc, c.Now, s.Glyphs)
	x = s.TextIn(x, y, end-x-1, role, mark) + 3
	waits, waitRole := stateReasons(c, svc, s.Glyphs)
	// The longest pair that fits; what the Service waits for, and what is lost,
	// counts for more than how many there are.
	room := end - x - 1
	for _, wait := range waits[:max(1, len(waits)-1)] {
		for _, n := range counts(svc) {
			if draw.Width(n)+3+draw.Width(s.Clean(wait)) <= room {
				x = s.Text(x, y, theme.Text, n) + 3
				s.TextIn(x, y, end-x-1, waitRole, wait)
				return
			}
		}
	}
	for _, wait := range waits {
		if draw.Width(s.Clean(wait)) <= room {
			s.TextIn(x, y, room, waitRole, wait)
			return
		}
	}
	if room > 7 {
		s.TextIn(x, y, room, waitRole, waits[len(waits)-1])
	}
}

// stateReasons is what stands last on the state line: what is lost, what the
// Service waits for, or until when it is known; in several lengths, the longest
// first.
func stateReasons(c *Context, svc *timeline.Service, g *draw.Glyphs) (texts []string, role theme.Role) {
	fallback, falls := lanes.FallbackAt(svc, c.Now)
	falls = falls && svc.Deleted.IsZero()
	long, short := fallback.Text()
	wait := waiting(svc)
	switch miss := unvouched(c.Snap); {
	case len(c.Health.Lost) > 0:
		return []string{g.Alert + " " + names(c.Health.Lost) + ": " + c.Health.Why}, theme.Bad
	case len(wait) > 0 && falls:
		return append([]string{wait[0] + ", " + long, wait[0] + ", " + short, wait[1] + ", " + short}, wait...), theme.Warn
	case len(wait) > 0:
		return wait, theme.Warn
	case len(miss) > 0:
		return []string{"waiting for " + strings.Join(miss, ", ")}, theme.Warn
	case falls:
		return []string{long, short}, theme.Warn
	case !svc.Coverage.Complete():
		short := "not seen: " + strings.Join(unseen(&svc.Coverage), ", ")
		for _, n := range svc.Coverage.Blind {
			if why := svc.Coverage.BlindWhy[n]; why != "" {
				return []string{short + ": " + why, short}, theme.Warn
			}
		}
		return []string{short}, theme.Warn
	case svc.State == timeline.Converged && !c.Snap.Watermark.IsZero():
		return []string{"as of " + c.Snap.Watermark.In(c.Loc).Format("15:04:05.000")}, theme.Dim
	}
	return []string{""}, theme.Dim
}

func focusMissing(c *Context) string {
	if c.Focus.Service == "" {
		switch len(c.Snap.Services) {
		case 0:
			return "no Service yet"
		case 1:
			return "1 Service"
		}
		return strconv.Itoa(len(c.Snap.Services)) + " Services"
	}
	return "waiting for Service " + c.Focus.Namespace + "/" + c.Focus.Service
}

func unseen(c *timeline.Coverage) []string {
	out := append([]string(nil), c.Blind...)
	for _, n := range c.Gap {
		out = append(out, n+" (gap)")
	}
	for p := range c.BlindPlanes {
		out = append(out, p.String())
	}
	sort.Strings(out)
	if len(out) > 4 {
		out = append(out[:4], fmt.Sprintf("%d more", len(out)-4))
	}
	return out
}

// trouble is what keeps a needed source from telling anything, or "".
func trouble(snap *timeline.Snapshot) string {
	for _, src := range snap.Sources {
		if src.Needed && src.Detail != "" && (src.State == collect.SourceBroken || src.State == collect.SourceForbidden || src.State == collect.SourceStopped) {
			return src.Detail
		}
	}
	return ""
}

// unvouched are the needed sources that have not said anything yet.
func unvouched(snap *timeline.Snapshot) []string {
	if !snap.Watermark.IsZero() {
		return nil
	}
	var out []string
	for _, s := range snap.Sources {
		if s.Needed && s.Vouched.IsZero() {
			out = append(out, string(s.ID))
		}
	}
	if len(out) > 3 {
		out = append(out[:3], fmt.Sprintf("%d more", len(out)-3))
	}
	if len(out) == 0 {
		out = []string{"the first word of every source"}
	}
	return out
}
