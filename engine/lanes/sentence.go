package lanes

import (
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Sentences say in words where the time went: the whole, and, when it is clear,
// the hops that took most of it.
func (w *Waterfall) Sentences() []string {
	p := w.Path
	end := "to the last node"
	if len(p.Rules) == 0 {
		end = "to the slices"
	}
	if w.Open {
		end = "so far"
	}
	total := Duration(w.Total)
	if w.loose() {
		total = "At most " + total
	}
	first := fmt.Sprintf("%s from %s %s", total, w.Start, end)
	parts := w.parts()
	switch {
	case p.Status == timeline.StatusSuperseded:
		first += ": superseded by an opposite change."
	case w.usualWhole() > 0 && w.unusualHop() != nil:
		b := w.unusualHop()
		first += ": as is usual (" + Duration(w.usualWhole()) + ", n=" + strconv.Itoa(len(w.wholes())) + "), but " + Duration(b.Took) + " " + w.hopText(b) + ", where " + Duration(b.Usual) + " is usual."
	case w.usualWhole() > 0:
		first += ": nothing was slow, " + Duration(w.usualWhole()) + " is usual (n=" + strconv.Itoa(len(w.wholes())) + ")."
	case len(parts) == 0 || parts[0].share < 40:
		first += ": no single hop stands out."
	default:
		first += ":  "
		for i, x := range parts[:min(len(parts), 2)] {
			if i > 0 {
				first += ",  "
			}
			first += strconv.Itoa(x.share) + " % " + x.text
		}
		first += "."
	}
	out := []string{first}
	if !w.Open && w.slowestIsClear() && w.usualWhole() == 0 {
		next := &w.Nodes[1]
		out = append(out, fmt.Sprintf("Without %s: %s.", w.Nodes[0].Plane.Node, AtMost(next, next.At.Sub(w.From))))
	}
	if w.Open {
		if miss := p.Missing(); len(miss) > 0 {
			out = append(out, "Missing: "+Plural(len(miss), "node")+", first of them "+miss[0]+".")
		}
	}
	if p.Op == timeline.OpRemove {
		if d := routedAfterTermination(p, w.To); d > 0 {
			s := "Routed for " + Duration(d) + " after termination began"
			if e := p.Risk.FromExit; e != nil && *e > 0 {
				s += ", " + Age(*e) + " of them with the containers gone"
			}
			if p.Risk.Growing {
				s += ", and still growing"
			}
			out = append(out, s+".")
		}
		if d := p.Risk.WrongPod; d > 0 {
			out = append(out, "New connections could reach another pod, which had the address, for "+Age(d)+".")
		}
	}
	return out
}

// loose reports that the end of the whole is known as an interval only.
func (w *Waterfall) loose() bool {
	if w.Open {
		return false
	}
	if len(w.Nodes) > 0 {
		return Loose(&w.Nodes[0])
	}
	return w.Path.Slice != nil && Loose(w.Path.Slice)
}

// hopPart is a hop that took a share of the whole worth naming.
type hopPart struct {
	share int
	text  string
}

// parts are the hops that took a quarter or more, the longest first.
func (w *Waterfall) parts() []hopPart {
	var out []hopPart
	for i := range w.Bars {
		if b := &w.Bars[i]; b.Depth == 0 && b.Share >= 25 {
			out = append(out, hopPart{b.Share, w.hopText(b)})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].share > out[j].share })
	return out
}

// hopText says what a hop's time went to.
func (w *Waterfall) hopText(b *Bar) string {
	switch {
	case b.Label == "ready" && b.Note != "":
		return "waiting for " + b.Note
	case b.Label == "ready" || b.Label == "containers":
		return "waiting for the readiness probe"
	case b.Label == "started":
		return "starting the containers" + b.pulling()
	case b.Label == "initialised":
		return "the init containers" + b.pulling()
	case b.Label == "scheduled":
		return "scheduling"
	case b.Label == "slice":
		return w.sliceText(b.Took)
	case b.Kind == BarNode || b.Kind == BarOpen && len(w.Nodes) > 0:
		return w.nodesText()
	}
	return b.Label
}

// sliceText says what took the time of the slice: what the reconciler told of must be
// half of it.
func (w *Waterfall) sliceText(took time.Duration) string {
	d := w.written()
	switch {
	case d.conflicts >= max(1, d.retries) && d.queued+d.writing < took*3/4:
		return "writing the slice again after " + Plural(d.conflicts, "conflict")
	case d.retries > 0 && d.queued+d.writing < took*3/4:
		return "trying the slice again after " + Plural(d.retries, "failed sync")
	case d.queued >= took/2 && d.queued > d.writing:
		return "waiting in the reconciler's queue"
	case d.writing >= took/2:
		return "the API server's write of the slice"
	}
	return "writing the slice"
}

// nodesText names the node that was late, if one stands out, and what it was late
// with. Of several it says so only where the first and the last of them agree.
func (w *Waterfall) nodesText() string {
	last := &w.Nodes[0]
	if len(w.Nodes) == 1 || w.slowestIsClear() {
		return last.Plane.Node + "'s " + w.applied(last).text()
	}
	what := w.applied(last).text()
	if first := w.applied(&w.Nodes[len(w.Nodes)-1]).text(); first != what {
		what = "rule sync"
	}
	return "the nodes' " + what
}

// text is what took most of a node's time. Two that share it are both named.
func (d applied) text() string {
	switch {
	case !d.told:
	case d.failed > 0:
		return "failing rule sync"
	case d.heard > d.waited && d.heard > d.syncing:
		return "watch of the slices"
	case min(d.waited, d.syncing)*3 > max(d.waited, d.syncing):
		return "wait and rule sync"
	case d.waited > d.syncing && d.behind > d.waited/2:
		return "wait for the sync before"
	case d.waited > d.syncing:
		return "wait for the sync interval"
	}
	return "rule sync"
}

// usualEnough is how many others make a usual, usualTimes how many times it something
// may take that was not slow.
const (
	usualEnough = 5
	usualTimes  = 1.5
)

// usualWhole is the median of the whole among those that did the same when this one
// took no more than 1.5 times that, else 0; 0 too while it is open, or where the
// others are fewer than five.
func (w *Waterfall) usualWhole() time.Duration {
	ds := w.wholes()
	if w.Path.Status != timeline.StatusArrived || len(ds) < usualEnough {
		return 0
	}
	if d := ds[len(ds)/2]; float64(w.Total) <= usualTimes*float64(d) {
		return d
	}
	return 0
}

// unusualHop is the hop on the way that took much longer than usual although the whole did
// not, nil without one: more than 1.5 times as long, by a fifth of the whole.
func (w *Waterfall) unusualHop() (most *Bar) {
	for i := range w.Bars {
		b := &w.Bars[i]
		if b.Depth > 0 || b.Kind == BarAfter || b.UsualN < usualEnough || float64(b.Took) <= usualTimes*float64(b.Usual) || (b.Took-b.Usual)*5 < w.Total {
			continue
		}
		if most == nil || b.Took-b.Usual > most.Took-most.Usual {
			most = b
		}
	}
	return most
}

// Rank says how the whole compares with the others, where it was not usual; else it is
// empty.
func (w *Waterfall) Rank() string {
	ds := w.wholes()
	if w.Path.Status != timeline.StatusArrived || len(ds) < usualEnough || w.usualWhole() > 0 {
		return ""
	}
	faster := sort.Search(len(ds), func(i int) bool { return ds[i] >= w.Total })
	what := map[timeline.Op]string{timeline.OpAdd: "additions", timeline.OpRemove: "removals"}[w.Path.Op]
	if what == "" {
		what = "changes"
	}
	return fmt.Sprintf("Slower than %d of %d other %s, of which half took up to %s.", faster, len(ds), what, Duration(ds[len(ds)/2]))
}

// wholes are how long the others took that did the same from the same start on.
func (w *Waterfall) wholes() []time.Duration {
	return w.sample(w.whole)
}
