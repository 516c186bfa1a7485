package view

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// screenSpan is how much time a picture shows at first, at least.
const screenSpan = 10 * time.Second

// planesKept is of how many nodes the planes are kept from frame to frame: those of
// thousands would hold much memory.
const planesKept = 256

// TimelineView shows one Service's lanes.
type TimelineView struct {
	rows list
	key  string // of the chosen row, so that it stays chosen when rows come
	// planes are those of the last frame's nodes. They are kept so that the next
	// frame finds those that have not changed, and of the others what has not.
	planes *timeline.MadePlanes

	cell   time.Duration
	zoomed bool // cell was chosen; else it follows the width
	follow bool
	to     time.Time // right edge while not following
	cursor time.Time // zero: now
	marks  timeMarks
	keep   bool // unfold quiet time
	unfold bool
	all    bool
	// maxPods is how many pods get a lane, given the height, and kept how many
	// lines the lanes of the Service keptFor have, so that the panel below them
	// does not move with every pod.
	maxPods int
	kept    int
	keptFor string
	cost    episodeCost

	// Of the last drawing: for movement and the mouse.
	pic    *lanes.Picture
	layout draw.LaneLayout
	lanesY int
	lanesH int
}

// NewTimeline makes the view; it follows now.
func NewTimeline() *TimelineView { return &TimelineView{follow: true, key: "wanted"} }

// Title implements View.
func (*TimelineView) Title() string { return "Timeline" }

// Offers implements View.
func (*TimelineView) Offers() []Action {
	return []Action{Left, Up, ZoomIn, Fit, Follow, PrevEpisode, Open, UnfoldPods, Scale, Restart, DeletePod, Copy, Help, Palette}
}

// Following tells whether the picture moves with time.
func (v *TimelineView) Following() bool { return v.follow }

// Every implements Mover: while a Service converges and the picture follows, the
// newest cells are worth drawing as they fill; else once a second.
func (v *TimelineView) Every(c *Context) time.Duration {
	svc := c.Service()
	if !v.follow || svc == nil {
		return 0
	}
	if svc.State == timeline.Converged {
		return time.Second
	}
	return max(200*time.Millisecond, min(v.cell, time.Second))
}

// options say what is drawn on the given number of columns.
func (v *TimelineView) options(c *Context, cols int) lanes.Options {
	if !v.zoomed {
		v.cell = lanes.CellFor(screenSpan, cols)
	}
	to := v.to
	if v.follow || to.IsZero() {
		to = lanes.AlignEnd(c.Now, v.cell)
	}
	cursor := v.cursor
	if cursor.IsZero() {
		cursor = c.Now
	}
	return lanes.Options{
		Cols: cols, To: to, Cell: v.cell, Now: c.Now, Cursor: cursor, Location: c.Loc,
		FoldQuiet: !v.keep, UnfoldPods: v.unfold, AllNodes: v.all, MaxPods: v.maxPods,
	}
}

// Draw implements View.
func (v *TimelineView) Draw(s *draw.Screen, r draw.Rect, c *Context) {
	svc := c.Service()
	v.layout = draw.LayoutLanes(r.Min.X, r.Dx())
	if svc == nil {
		v.pic = nil
		drawWaiting(s, r, c)
		return
	}
	avail := r.Dy() - 4 // title, axis, legend
	nodes := svc.Rules.Len()
	v.maxPods = podsThatFit(avail, nodes)
	planes := svc.Rules.Make(v.planes)
	defer runtime.KeepAlive(planes)
	if v.planes = nil; nodes <= planesKept {
		v.planes = planes
	}
	v.pic = lanes.Build(c.Snap, svc, v.options(c, v.layout.Cols))
	c.Focus.Pod = ""
	v.drawTitle(s, r, c, svc)

	at := v.pic.Cursor.In(c.Loc).Format("15:04:05.000")
	switch {
	case v.cursor.IsZero() && v.layout.State < 15:
		at = "now"
	case v.cursor.IsZero():
		at = "now " + c.Now.In(c.Loc).Format("15:04:05")
	case v.layout.State >= 18:
		at = "at " + at
	case v.layout.State < 13:
		at = v.pic.Cursor.In(c.Loc).Format("05.000")
	}
	s.Axis(v.layout, r.Min.Y+1, v.pic, at)
	v.marks.draw(s, v.layout, r.Min.Y+2, v.pic)

	instant := lanes.Instant(svc, v.pic.Cursor)
	// What the panel wants does not grow with the differences: it would move.
	wants := nodes + 8
	laneH, panelH := divide(avail, len(v.pic.Rows), wants)
	if more := min(v.calm(key(svc), len(v.pic.Rows)), avail-max(panelLeast(avail, wants), 3)) - laneH; panelH > 0 && more > 0 {
		laneH, panelH = laneH+more, panelH-more
	}
	v.lanesY, v.lanesH = r.Min.Y+3, laneH
	if i := v.pic.Row(v.key); i >= 0 {
		v.rows.at = i
	}
	v.rows.fit(len(v.pic.Rows), laneH)
	for i := 0; i < laneH && v.rows.first+i < len(v.pic.Rows); i++ {
		row := &v.pic.Rows[v.rows.first+i]
		chosen := v.rows.first+i == v.rows.at
		if chosen {
			v.key = row.Key
		}
		s.Lane(v.layout, v.lanesY+i, row, v.pic.CursorCol, chosen)
	}
	for i := len(v.pic.Rows); i < laneH; i++ {
		s.NoLane(v.layout, v.lanesY+i)
	}
	for i := range svc.Pods {
		if "pod/"+svc.Pods[i].UID == v.key {
			c.Focus.Pod = svc.Pods[i].Name
			now, ok := svc.Pods[i].At(c.Now)
			c.Focus.PodGone = ok && now.Phase == timeline.PodGone
		}
	}
	if panelH > 0 {
		v.drawPanel(s, draw.Box(r.Min.X, v.lanesY+laneH, r.Dx(), panelH), c, svc, instant)
	}
	v.drawLegend(s, r.Min.X, r.Max.Y-1, r.Dx(), len(v.pic.Rows))
}

// podsThatFit is how many pods may have a lane so that every other row and some
// of the panel stay in view.
func podsThatFit(avail, nodes int) int {
	others := 7 + nodes // with the row of the folded ones
	if nodes > 12 {
		others = 7 + 8
	}
	if n := avail - panelLeast(avail, 8+nodes) - others; n > 0 {
		return n
	}
	return -1
}

// laneStep is by how many lines the room for lanes grows.
const laneStep = 3

// calm is how many lines n lanes of a Service get where there is room: as many
// at first, then more in steps, and fewer only when that frees a good part.
func (v *TimelineView) calm(service string, n int) int {
	switch {
	case service != v.keptFor || v.kept-n >= 2*laneStep:
		v.kept, v.keptFor = n, service
	case n > v.kept:
		v.kept = max(n, v.kept+laneStep)
	}
	return v.kept
}

// divide shares avail lines between n lanes and a panel that wants p: lanes come
// first, but on a tall screen some panel stays.
func divide(avail, n, p int) (laneH, panelH int) {
	if n+p <= avail {
		return n, avail - n
	}
	laneH = min(n, max(avail-panelLeast(avail, p), 1))
	panelH = avail - laneH
	if panelH < 3 {
		return min(n, avail), 0
	}
	return laneH, panelH
}

// panelLeast is how many of avail lines a panel that wants p gets in any case.
func panelLeast(avail, p int) int {
	switch {
	case avail >= 24:
		return min(p, avail/3)
	case avail >= 14:
		return 3
	}
	return 0
}

func (v *TimelineView) drawTitle(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service) {
	if text := v.marks.text(v.pic.Cursor); text != "" {
		s.Rule(r.Min.X, r.Min.Y, r.Dx(), serviceTitle(svc), text)
		return
	}
	right := []string{lanes.SpanOf(v.pic.Scale.Visible()) + "/screen", lanes.SpanOf(v.cell) + "/cell"}
	if !v.keep {
		right = append(right, "folding quiet")
	}
	n := len(right)
	for n > 1 && draw.Width(strings.Join(right[:n], " · ")) > r.Dx()/2 {
		n--
	}
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), serviceTitle(svc), strings.Join(right[:n], " · "))
}

// serviceTitle is a Service in one line: "web · app=web · ClusterIP
// 10.96.0.11:80 → 8080".
func serviceTitle(svc *timeline.Service) string {
	parts := []string{svc.Name}
	if svc.Spec == nil {
		return svc.Name
	}
	if sel := svc.Spec.Selector; len(sel) > 0 {
		var kv []string
		for k, val := range sel {
			kv = append(kv, k+"="+val)
		}
		sort.Strings(kv)
		parts = append(parts, strings.Join(kv, ","))
	} else {
		parts = append(parts, "no selector")
	}
	kind := svc.Spec.Kind
	if svc.Spec.Headless {
		kind = "headless"
	}
	for i, ip := range svc.Spec.ClusterIPs {
		kind += [2]string{" ", " + "}[min(i, 1)]
		if ip.Is6() {
			kind += "[" + ip.String() + "]" // the port follows
		} else {
			kind += ip.String()
		}
	}
	for i, p := range svc.Spec.Ports {
		sep := ":"
		if i > 0 {
			sep = ", "
		}
		target := p.TargetName
		if target == "" {
			target = fmt.Sprint(p.Target)
		}
		kind += sep + fmt.Sprint(p.Port) + " → " + target
	}
	return strings.Join(append(parts, kind), " · ")
}

// drawWaiting fills the view while there is no Service to show.
func drawWaiting(s *draw.Screen, r draw.Rect, c *Context) {
	lines := []string{c.Waiting}
	switch {
	case c.Snap == nil:
	case trouble(c.Snap) != "":
		lines = []string{trouble(c.Snap), "it is tried again; kconverge lab runs a cluster of your own"}
	case c.Focus.Service != "":
		lines = []string{"Service " + c.Focus.Namespace + "/" + c.Focus.Service + " is not there yet"}
	case len(c.Snap.Services) == 0 && c.Snap.Watermark.IsZero():
		lines = []string{"waiting for the first lists"}
	case len(c.Snap.Services) == 0 && len(c.Snap.Session.Namespaces) > 0:
		lines = []string{"no Service in namespace " + strings.Join(c.Snap.Session.Namespaces, ", ") + " yet", "-n chooses another, -A observes every namespace"}
	case len(c.Snap.Services) == 0:
		lines = []string{"no Service yet"}
	default:
		lines = []string{"no Service is chosen: " + c.Keys(Show(Services)) + " lists them"}
	}
	if c.Hint != "" {
		lines = append(lines, "", "from another terminal:", c.Hint)
	}
	y := r.Min.Y + max(1, (r.Dy()-len(lines))/3)
	for i, l := range lines {
		role := theme.Dim
		if i == 0 {
			role = theme.Text
		}
		if l == c.Hint && l != "" {
			role = theme.Accent
		}
		w := draw.Width(draw.Clean(l))
		s.TextIn(max(r.Min.X+2, r.Min.X+(r.Dx()-w)/2), y+i, r.Dx()-4, role, l)
	}
}
