package lanes

import (
	"fmt"
	"sort"

	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// BarKind tells what a bar of a waterfall stands for.
type BarKind uint8

// Kinds of bars.
const (
	BarPoint   BarKind = iota // a moment: nothing took time
	BarWork                   // something was done
	BarProbe                  // waiting for a readiness probe
	BarNode                   // waiting for a node's rules
	BarSlowest                // the node that was last
	BarOpen                   // not arrived: still growing
	BarUnknown                // ended without an arrival of its own
	BarClaimed                // its times are of another clock: not to be drawn
	BarAfter                  // how the pod ended, after the change
)

// Bar is one hop of a path: from what it started, when it ended, and what share
// of the whole it took.
type Bar struct {
	Label string
	// Depth is 0 for a hop on the way, 1 for one beside it, 2 for a node.
	Depth int
	Kind  BarKind
	// From and To are when it began and ended; To is now while it is open.
	From, To time.Time
	// Took is To-From; it may be negative, since two watches have no order.
	Took time.Duration
	// Share of the whole in percent, -1 for hops beside the way.
	Share int
	// Usual is the median of the same hop over UsualN other changes of the
	// same kind; 0 of them means that it is not known.
	Usual  time.Duration
	UsualN int
	Note   string
	Node   string
	Status timeline.Status
	// Pulled is how much of it went into images that were pulled, by the kubelet's word;
	// Pulls is how many those are that are told of.
	Pulled time.Duration
	Pulls  int
	// AtMost: the end is only known to lie before To.
	AtMost bool

	// same finds how long the hop took in another change.
	same measure
}

// Waterfall is a path laid out in time.
type Waterfall struct {
	Path     *timeline.Path
	From, To time.Time
	// Total is the end-to-end time, or how long it has lasted.
	Total time.Duration
	Open  bool
	Bars  []Bar
	// Nodes are the hops of the nodes, latest first.
	Nodes []timeline.Hop
	// Start says what From was: "created", "pod terminating".
	Start string

	others []*timeline.Path
	// snap and svc say more of the hops, where they are known.
	snap  *timeline.Snapshot
	svc   *timeline.Service
	marks []timeline.Mark // while the change lasted
}

// usualOf is how many of a Service's latest paths say what is usual.
const usualOf = 500

// NewWaterfall lays a path out as of now. others are the Service's paths, for
// what is usual.
func NewWaterfall(p *timeline.Path, others []*timeline.Path, now time.Time) *Waterfall {
	w := &Waterfall{Path: p, Nodes: ByLateness(p.Rules), Open: p.Status == timeline.StatusOpen, others: likewise(p, others)}
	before := chain(p)
	w.From, w.Start = before[0].at, before[0].label
	w.To = p.End()
	if w.To.Before(p.Origin.At) {
		w.To = p.Origin.At
	}
	if w.Open && now.After(w.To) {
		w.To = now
	}
	w.Total = w.To.Sub(w.From)

	for i, m := range before {
		if m.kind == BarProbe {
			w.Bars = append(w.Bars, w.probeBars()...)
		}
		b := Bar{Label: m.label, Kind: BarPoint, From: m.at, To: m.at, Note: m.note, Share: -1}
		if i > 0 {
			b.From, b.Took, b.Kind = before[i-1].at, m.at.Sub(before[i-1].at), m.kind
			b.Share = w.share(b.Took)
			b.pull(p.Before.Pulls)
			w.usual(&b, func(q *timeline.Path) (time.Duration, bool) {
				c := chain(q)
				if len(c) != len(before) || c[i].label != m.label {
					return 0, false
				}
				return c[i].at.Sub(c[i-1].at), true
			})
		}
		w.Bars = append(w.Bars, b)
	}
	if p.Slice != nil {
		b := w.hop("slice", *p.Slice, p.Origin.At, now, BarWork)
		b.Share = w.share(b.Took)
		w.usual(&b, func(q *timeline.Path) (time.Duration, bool) {
			return lagOf(q.Slice)
		})
		w.Bars = append(w.Bars, b)
	}
	if p.Endpoints != nil {
		b := w.hop("endpoints v1", *p.Endpoints, p.Origin.At, now, BarWork)
		b.Depth, b.Share, b.Note = 1, -1, "beside the way"
		w.usual(&b, func(q *timeline.Path) (time.Duration, bool) {
			return lagOf(q.Endpoints)
		})
		w.Bars = append(w.Bars, b)
	}
	w.rules(now)
	w.Bars = append(w.Bars, w.afterBars()...)
	return w
}

// rules appends the bar of all nodes and one for each node.
func (w *Waterfall) rules(now time.Time) {
	p := w.Path
	if len(p.Rules) == 0 {
		return
	}
	from := sliceTime(p)
	last := w.Nodes[0]
	to := last.At
	if last.Status == timeline.StatusOpen {
		to = now
	}
	if to.IsZero() {
		to = from
	}
	all := Bar{Label: "rules, " + Plural(len(p.Rules), "node"), Kind: BarNode, From: from, To: to, Took: to.Sub(from), Share: w.share(to.Sub(from)), Status: last.Status}
	if last.Status == timeline.StatusOpen {
		all.Kind = BarOpen
	}
	all.AtMost = Loose(&last)
	w.usual(&all, func(q *timeline.Path) (time.Duration, bool) {
		if len(q.Rules) == 0 || q.Status != timeline.StatusArrived {
			return 0, false
		}
		return q.End().Sub(sliceTime(q)), true
	})
	w.Bars = append(w.Bars, all)
	clear := w.slowestIsClear()
	hops := append([]timeline.Hop(nil), p.Rules...)
	sort.SliceStable(hops, func(i, j int) bool { return hops[i].Plane.Node < hops[j].Plane.Node })
	for _, h := range hops {
		b := w.hop(h.Plane.Node, h, from, now, BarNode)
		b.Depth, b.Share, b.Node = 2, -1, h.Plane.Node
		if clear && h.Plane == last.Plane {
			if b.Kind == BarNode {
				b.Kind = BarSlowest
			}
			b.Note = lastNode
		}
		w.usual(&b, func(q *timeline.Path) (time.Duration, bool) {
			x := hopOf(q, h.Plane.Node)
			if x == nil || x.Status != timeline.StatusArrived {
				return 0, false
			}
			return x.FromStep, true
		})
		w.Bars = append(w.Bars, b)
	}
}

// lastNode is the note of the node that was last, where it stands out.
const lastNode = "last !"

// slowestIsClear tells whether the last node stands out: it took at least twice
// as long as the one before it, and a tenth of a second more.
func (w *Waterfall) slowestIsClear() bool {
	if len(w.Nodes) < 2 {
		return false
	}
	a, b := w.Nodes[0], w.Nodes[1]
	if a.Status == timeline.StatusOpen {
		return b.Status == timeline.StatusArrived
	}
	return a.Status == timeline.StatusArrived && b.Status == timeline.StatusArrived &&
		a.FromStep > 2*b.FromStep && a.FromStep-b.FromStep > 100*time.Millisecond
}

func (w *Waterfall) hop(label string, h timeline.Hop, from, now time.Time, kind BarKind) Bar {
	b := Bar{Label: label, Kind: kind, From: from, To: h.At, Note: h.Note, Status: h.Status, AtMost: Loose(&h)}
	switch h.Status {
	case timeline.StatusOpen:
		b.Kind, b.To, b.Note = BarOpen, now, "not yet"
	case timeline.StatusSuperseded, timeline.StatusHandedOver, timeline.StatusAlreadyRouted:
		b.Note, _ = HopText(h, from, now)
		if b.To.IsZero() {
			b.Kind, b.To = BarUnknown, from
		}
	}
	b.Took = b.To.Sub(from)
	return b
}

func (w *Waterfall) share(d time.Duration) int {
	if w.Total <= 0 || d < 0 {
		return 0
	}
	return int((d*100 + w.Total/2) / w.Total)
}

// moment is one step of a pod's life before the planes.
type moment struct {
	label string
	at    time.Time
	kind  BarKind
	note  string
}

// chain are the moments up to the origin. Those that the watch did not see are
// left out: a claimed one has another clock.
func chain(p *timeline.Path) []moment {
	var out []moment
	add := func(label string, m timeline.Moment, k BarKind, note string) {
		if !m.At.IsZero() && !m.At.After(p.Origin.At) {
			out = append(out, moment{label, m.At, k, note})
		}
	}
	if p.Op == timeline.OpAdd && p.Cause == timeline.CausePodReady {
		on := ""
		if p.Endpoint.Node != "" {
			on = "on " + p.Endpoint.Node
		}
		b := &p.Before
		if b.Again {
			// It has been created and started for an earlier change.
			return append(out, moment{CauseText(p.Cause), p.Origin.At, BarPoint, ""})
		}
		add("created", b.Created, BarPoint, "")
		add("scheduled", b.Scheduled, BarWork, on)
		add("initialised", b.Initialized, BarWork, "")
		add("started", b.Started, BarWork, "")
		if r := b.ContainersReady; !r.At.IsZero() && r.At.Before(p.Origin.At) {
			add("containers", r, BarProbe, "all ready")
			return append(out, moment{"ready", p.Origin.At, BarProbe, "a readiness gate"})
		}
		return append(out, moment{"ready", p.Origin.At, BarProbe, ""})
	}
	return append(out, moment{CauseText(p.Cause), p.Origin.At, BarPoint, ""})
}

// sliceTime is from when on the nodes could know.
func sliceTime(p *timeline.Path) time.Time {
	if p.Slice != nil && !p.Slice.At.IsZero() {
		return p.Slice.At
	}
	return p.Origin.At
}

func lagOf(h *timeline.Hop) (time.Duration, bool) {
	if h == nil || h.Status != timeline.StatusArrived {
		return 0, false
	}
	return h.Lag, true
}

// Quantiles sums up the nodes' lags from the slice: first, median, last, and how
// many are missing. A node that has not arrived counts as at least its age, and
// a quantile that rests on one gets a ">".
func (w *Waterfall) Quantiles(now time.Time) string {
	type lag struct {
		d    time.Duration
		open bool
		hop  *timeline.Hop
	}
	var ls []lag
	from := sliceTime(w.Path)
	missing := 0
	for i := range w.Nodes {
		h := &w.Nodes[i]
		switch h.Status {
		case timeline.StatusOpen:
			ls = append(ls, lag{now.Sub(from), true, h})
			missing++
		case timeline.StatusArrived:
			ls = append(ls, lag{h.At.Sub(from), false, h})
		}
	}
	if len(ls) == 0 {
		return ""
	}
	sort.SliceStable(ls, func(i, j int) bool { return ls[i].d < ls[j].d })
	show := func(l lag) string {
		if l.open {
			return ">" + Duration(l.d)
		}
		return AtMost(l.hop, l.d)
	}
	s := "first " + show(ls[0]) + "  median " + show(ls[(len(ls)-1)/2])
	if n := len(ls); n >= 100 {
		s += "  p99 " + show(ls[(n*99+99)/100-1])
	}
	return s + "  last " + show(ls[len(ls)-1]) + fmt.Sprintf("  missing %d  (n=%d)", missing, len(ls))
}
