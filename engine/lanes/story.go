package lanes

import (
	"fmt"
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// StoryLine is something that happened while a hop took its time.
type StoryLine struct {
	At   time.Time
	Text string
	Tone Tone
}

// Window is the time of a hop: that of a bar, or, of one that took none, all from the
// origin to the last arrival. node is whose rule sync belongs to it, "" for a hop
// before the rules.
func (w *Waterfall) Window(b *Bar) (from, to time.Time, node string) {
	from, to = w.Path.Origin.At, w.To
	if len(w.Nodes) > 0 {
		node = w.Nodes[0].Plane.Node
	}
	if b == nil || b.Took <= 0 {
		return from, to, node
	}
	switch {
	case b.Node != "":
		node = b.Node
	case b.Kind != BarNode && b.Kind != BarOpen:
		node = ""
	}
	return b.From, b.To, node
}

// Story tells what is known to have happened during a hop, by time: actions and
// faults, Kubernetes Events, the reconciler's waits, writes and conflicts, the syncs of
// the node, and gaps of what is observed. It needs NewWaterfallOf.
func (w *Waterfall) Story(b *Bar) []StoryLine {
	if w.snap == nil {
		return nil
	}
	from, to, node := w.Window(b)
	var out []StoryLine
	add := func(at time.Time, text string, tone Tone) { out = append(out, StoryLine{at, text, tone}) }
	p := w.Path
	inside := func(t time.Time) bool { return !t.IsZero() && !t.Before(from) && !t.After(to) }
	if inside(p.Origin.At) {
		add(p.Origin.At, CauseText(p.Cause), Plain)
	}
	told := false
	for _, m := range marksIn(w.snap, w.svc, from, to.Add(markSlack)) {
		switch m.Kind {
		case "action", "fault":
			add(m.At, m.Text, Bad)
		case "event":
			add(m.At, m.Text, Dim)
		case "proxy":
			if node == "" || m.Node == node {
				add(m.At, m.Node+": "+m.Text, Warn)
			}
		case "reconcile":
			if s, ok := m.Step.(*collect.ReconcileStep); ok && s.Controller != "endpoints" {
				text, tone := reconcileText(s)
				if text != "" {
					add(m.At, text, tone)
				}
			}
		case "sync":
			if s, ok := m.Step.(*collect.SyncStep); ok && s.Node == node && node != "" {
				tone := Plain
				if s.Step == "failed" {
					tone = Bad
				}
				add(m.At, node+" "+SyncText(s), tone)
				told = true
			}
		}
	}
	if p.Slice != nil && inside(p.Slice.At) {
		add(p.Slice.At, "slice "+p.Slice.Note, Plain)
	}
	if h := hopOf(p, node); h != nil && h.Status == timeline.StatusArrived && inside(h.At) && !told {
		add(h.At, node+" committed "+h.Note, Plain)
	}
	for i := range w.snap.Faults {
		// One that begins meanwhile is a mark.
		if f := &w.snap.Faults[i]; f.From.Before(from) && (f.To.IsZero() || f.To.After(from)) {
			add(f.From, "fault since then: "+f.Text(), Bad)
		}
	}
	for i := range w.snap.Gaps {
		if g := &w.snap.Gaps[i]; g.From.Before(to) && (g.To.IsZero() || g.To.After(from)) {
			add(g.From, "gap of "+string(g.Source)+": "+g.Why, Warn)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}

// reconcileText is what a step of the reconciler says of the time it took, or "".
func reconcileText(s *collect.ReconcileStep) (string, Tone) {
	took := ""
	if s.Took > 0 {
		took = " " + Duration(s.Took)
	}
	detail := ""
	if s.Detail != "" {
		detail = ": " + s.Detail
	}
	switch s.Step {
	case "started":
		if took == "" {
			return "", Plain
		}
		return "reconciler began, queued for" + took, Plain
	case "wrote":
		if took != "" {
			took = " in" + took
		}
		return "reconciler wrote" + took + detail, Plain
	case "conflict":
		return "conflict with another writer" + detail, Bad
	case "retry":
		return "reconciler tries again" + detail, Warn
	case "dropped":
		return "reconciler gave up" + detail, Bad
	}
	return "", Plain
}

// SyncText says what a step of a node's embedded rule sync was.
func SyncText(s *collect.SyncStep) string {
	t := "sync " + s.Step
	switch s.Step {
	case "received":
		t = "received the change"
	case "waiting":
		t = "waits for its interval"
	case "started":
		t = "sync began"
	case "committed":
		t = fmt.Sprintf("committed generation %d", s.Generation)
	case "failed":
		t = "sync failed"
	}
	if s.Full {
		t += ", in full"
	}
	if s.Took > 0 {
		t += " (" + Duration(s.Took) + ")"
	}
	if s.Detail != "" {
		t += ": " + s.Detail
	}
	return t
}
