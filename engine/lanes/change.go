package lanes

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// causeText are the causes in plain words.
var causeText = map[timeline.Cause]string{
	timeline.CausePodReady:        "pod ready",
	timeline.CausePodUnready:      "pod unready",
	timeline.CausePodTerminating:  "pod terminating",
	timeline.CausePodTerminal:     "pod terminal",
	timeline.CausePodGone:         "pod gone",
	timeline.CauseAddressChanged:  "address changed",
	timeline.CauseRelabelled:      "pod relabelled",
	timeline.CauseSelectorChanged: "selector changed",
	timeline.CausePortsChanged:    "ports changed",
	timeline.CausePolicyChanged:   "traffic policy changed",
	timeline.CausePublishNotReady: "publishNotReadyAddresses changed",
	timeline.CauseAffinityChanged: "session affinity changed",
	timeline.CauseHintsChanged:    "hints changed",
	timeline.CauseZoneChanged:     "zone of the node changed",
	timeline.CauseServiceCreated:  "Service created",
	timeline.CauseServiceDeleted:  "Service deleted",
	timeline.CauseSliceEdited:     "slice edited by hand",
	timeline.CauseEndpointsEdited: "Endpoints edited by hand",
	timeline.CauseFallback:        "fallback",
	timeline.CauseNodeAdded:       "node added",
	timeline.CauseNodeGone:        "node gone",
	timeline.CausePodChanged:      "pod changed",
	timeline.CauseServiceChanged:  "Service changed",
}

// CauseText is a cause in plain words.
func CauseText(c timeline.Cause) string {
	if s, ok := causeText[c]; ok {
		return s
	}
	return string(c)
}

// OpSign is "+", "−" or "~".
func OpSign(o timeline.Op) string {
	switch o {
	case timeline.OpAdd:
		return "+"
	case timeline.OpRemove:
		return Minus
	}
	return "~"
}

// PathName is what a path did to whom: "+ web-7d9c-x7k2p". A pod's endpoint of
// IPv6 says so, "+ web-7d9c-x7k2p IPv6": a pod of a dual-stack Service has a path
// in each family.
func PathName(p *timeline.Path) string {
	name := p.Endpoint.Pod
	switch {
	case name == "":
		name = EndpointText(p.Endpoint)
	case p.Endpoint.Family == collect.IPv6:
		name += " IPv6"
	}
	return OpSign(p.Op) + " " + name
}

// pathsBack is how many paths before the cursor PathAt looks at.
const pathsBack = 1000

// PathAt finds the change that the cursor is on: one that the lane with the key
// is about (a pod's own, or one with a hop on that plane), running at t if there
// is one, else the last that began before t, else the first of all.
func PathAt(svc *timeline.Service, key string, t time.Time) *timeline.Path {
	best, bestRank := (*timeline.Path)(nil), 99
	paths := svc.Paths
	// What began long before the cursor is of no interest when much came since.
	after := sort.Search(len(paths), func(i int) bool { return paths[i].Origin.At.After(t) })
	if from := after - pathsBack; from > 0 {
		paths = paths[from:]
	}
	paths = paths[:min(len(paths), 2*pathsBack)]
	rank := func(p *timeline.Path) int {
		rank := 0
		if !concerns(p, key) {
			rank += 8
		}
		if p.Op == timeline.OpChange && key != string(timeline.PlaneSlices) {
			rank += 4 // nothing became or stopped being routable
		}
		return rank
	}
	// Of those that began before t the latest among equals, of the others the earliest.
	began := sort.Search(len(paths), func(i int) bool { return paths[i].Origin.At.After(t) })
	for i := began - 1; i >= 0 && bestRank > 0; i-- {
		p := paths[i]
		r := rank(p)
		if r < bestRank && p.Status != timeline.StatusOpen && p.End().Before(t) {
			r++
		}
		if r < bestRank {
			best, bestRank = p, r
		}
	}
	for i := began; i < len(paths) && bestRank > 3; i++ {
		if r := rank(paths[i]) + 3; r < bestRank {
			best, bestRank = paths[i], r
		}
	}
	return best
}

func concerns(p *timeline.Path, key string) bool {
	if uid, ok := strings.CutPrefix(key, "pod/"); ok {
		return p.Endpoint.UID == uid
	}
	switch {
	case key == string(timeline.PlaneSlices):
		return p.Slice != nil
	case key == string(timeline.PlaneEndpoints):
		return p.Endpoints != nil
	}
	if node, ok := strings.CutPrefix(key, string(timeline.PlaneRules)+"@"); ok {
		for i := range p.Rules {
			if p.Rules[i].Plane.Node == node {
				return true
			}
		}
		return false
	}
	return true
}

// ChangeLine is one line of the panel "change under cursor".
type ChangeLine struct {
	Label, Text string
	Tone        Tone
}

// Change describes a path as of now in at most room lines: its cause, how long
// after its origin every plane followed, and what that puts at risk. Where not
// every node has a line, the latest have, those that have not arrived first, and
// the others are counted.
func Change(p *timeline.Path, now time.Time, loc *time.Location, room int) []ChangeLine {
	if loc == nil {
		loc = time.UTC
	}
	out := []ChangeLine{{Label: "cause", Text: p.Origin.At.In(loc).Format("15:04:05.000") + "  " + CauseText(p.Cause)}}
	if p.By != "" {
		out = append(out, ChangeLine{Label: "by", Text: p.By})
	}
	if p.Slice != nil {
		out = append(out, hopLine("slice", *p.Slice, p.Origin.At, now))
	}
	if p.Endpoints != nil {
		out = append(out, hopLine("endpts", *p.Endpoints, p.Origin.At, now))
	}
	risk := riskLines(p, now)
	// Where not all of it fits, what is risked stands before the hops and the Endpoints go.
	if len(risk) > 0 && len(out)+2+len(risk) > room {
		out = slices.DeleteFunc(out, func(l ChangeLine) bool { return l.Label == "endpts" })
		i := 1
		if p.By != "" {
			i = 2
		}
		out, risk = slices.Insert(out, i, risk...), nil
	}
	rules := ByLateness(p.Rules)
	var left []timeline.Hop
	if n := max(room-len(out)-len(risk), 2); len(rules) > n {
		rules, left = rules[:n-1], rules[n-1:]
	}
	if len(left) == 0 {
		sort.SliceStable(rules, func(i, j int) bool { return rules[i].Plane.Node < rules[j].Plane.Node })
	}
	for _, h := range rules {
		out = append(out, hopLine(h.Plane.Node, h, p.Origin.At, now))
	}
	if len(left) > 0 {
		out = append(out, leftLine(left))
	}
	return append(out, risk...)
}

// leftLine counts the nodes that have no line of their own. They followed sooner
// than the others only if all of them have followed.
func leftLine(left []timeline.Hop) ChangeLine {
	open, arrived := 0, 0
	for _, h := range left {
		switch h.Status {
		case timeline.StatusOpen:
			open++
		case timeline.StatusArrived:
			arrived++
		}
	}
	switch {
	case arrived == len(left):
		return ChangeLine{Text: "and " + Plural(arrived, "node") + " sooner", Tone: Dim}
	case open > 0:
		return ChangeLine{Text: fmt.Sprintf("and %s more, %d not yet", Plural(len(left), "node"), open), Tone: Warn}
	}
	return ChangeLine{Text: "and " + Plural(len(left), "node") + " more", Tone: Dim}
}

func hopLine(label string, h timeline.Hop, origin, now time.Time) ChangeLine {
	text, tone := HopText(h, origin, now)
	return ChangeLine{Label: label, Text: text, Tone: tone}
}

// HopText says how long a hop took, or how long it has been waited for.
func HopText(h timeline.Hop, origin, now time.Time) (string, Tone) {
	switch h.Status {
	case timeline.StatusOpen:
		return "not yet, " + Duration(now.Sub(origin)), Warn
	case timeline.StatusSuperseded:
		return "superseded", Dim
	case timeline.StatusHandedOver:
		return "address handed over", Dim
	case timeline.StatusAlreadyRouted:
		return "was routed already", Dim
	}
	s := Duration(h.Lag)
	if h.Lag >= 0 {
		s = "+" + s
	}
	if Loose(&h) {
		s = "at most " + s
	}
	return s, Plain
}

func riskLines(p *timeline.Path, now time.Time) []ChangeLine {
	grow := ""
	if p.Risk.Growing {
		grow = ", growing"
	}
	var out []ChangeLine
	if d := p.Risk.WrongPod; d > 0 {
		grow := ""
		if p.Risk.WrongPodGrowing {
			grow = ", growing"
		}
		out = append(out, ChangeLine{Label: "wrong pod", Text: "for " + Age(d) + grow + " !", Tone: Bad})
	}
	if d := p.Risk.FromExit; d != nil && *d > 0 {
		out = append(out, ChangeLine{Label: "stopped", Text: "routed for " + Age(*d) + grow + " !", Tone: Bad})
	}
	if d := routedAfterTermination(p, now); d > 0 && preStopHelps(p) {
		out = append(out, ChangeLine{Text: "needs a preStop above " + Duration(d) + grow, Tone: Warn})
	}
	return out
}

// preStopHelps tells that a longer preStop would have kept the endpoint answering
// until the last node let go of it: where the pod's termination is why it was
// removed. One that is routed to until it is terminal because nothing else is
// ready would be so for longer.
func preStopHelps(p *timeline.Path) bool {
	return p.Op == timeline.OpRemove && p.Cause == timeline.CausePodTerminating && p.Risk.FromTermination != nil
}

// routedAfterTermination is how long after the start of its termination, as of
// now, the last node routed to a path's endpoint; 0 when that is not known. It
// is never less than what any node's own line says: where termination is the
// cause those count from the same moment, and grow between two Snapshots.
func routedAfterTermination(p *timeline.Path, now time.Time) time.Duration {
	if p.Risk.FromTermination == nil {
		return 0
	}
	d := *p.Risk.FromTermination
	if p.Cause != timeline.CausePodTerminating {
		return d
	}
	for _, h := range p.Rules {
		switch h.Status {
		case timeline.StatusOpen:
			d = max(d, now.Sub(p.Origin.At))
		case timeline.StatusArrived:
			d = max(d, h.Lag)
		}
	}
	return d
}

// RiskRank says how a removal's risk compares with the others seen: "the most of
// 6 removals seen", "most of 6 removals seen: 2.9 s", or "" when it is the only
// one.
func RiskRank(paths []*timeline.Path, p *timeline.Path) string {
	if !preStopHelps(p) {
		return ""
	}
	n, most := 0, *p.Risk.FromTermination
	for _, q := range paths {
		if preStopHelps(q) {
			n++
			most = max(most, *q.Risk.FromTermination)
		}
	}
	switch {
	case n < 2:
		return ""
	case most == *p.Risk.FromTermination:
		return fmt.Sprintf("(the most of %d removals seen)", n)
	}
	return fmt.Sprintf("(most of %d removals seen: %s)", n, Duration(most))
}

// ByLateness sorts hops of nodes: those that have not arrived first, then the
// latest arrival first, then by name.
func ByLateness(hops []timeline.Hop) []timeline.Hop {
	out := append([]timeline.Hop(nil), hops...)
	rank := func(h timeline.Hop) int {
		switch h.Status {
		case timeline.StatusOpen:
			return 0
		case timeline.StatusArrived:
			return 1
		}
		return 2
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if x, y := rank(a), rank(b); x != y {
			return x < y
		}
		if a.Status == timeline.StatusArrived && !a.At.Equal(b.At) {
			return a.At.After(b.At)
		}
		return a.Plane.Node < b.Plane.Node
	})
	return out
}
