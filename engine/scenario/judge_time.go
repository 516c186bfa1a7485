package scenario

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// lag is one measured time, with the node it is of.
type lag struct {
	node string
	d    time.Duration
	open bool // it has not arrived: at least that
}

// judgeLag judges how long a hop took. What has not arrived counts with its age.
func judgeLag(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Lag
	var mine, others []lag
	for _, p := range ct.paths(s, &want.Of) {
		for _, l := range lags(p, want, ct.snap.Now) {
			if isNode(want.Hop) && l.node != want.Hop {
				others = append(others, l)
			} else {
				mine = append(mine, l)
			}
		}
	}
	if len(mine) == 0 {
		return "nothing of the kind happened", false
	}
	worst, best := extremes(mine)
	text := fmt.Sprintf("of %d: %s to %s", len(mine), round(best), round(worst))
	met := true
	for _, r := range []struct {
		name string
		l    *Length
		d    time.Duration
	}{{"worst", want.Worst, worst}, {"best", want.Best, best}} {
		if r.l != nil && !r.l.holds(float64(r.d)) {
			text += fmt.Sprintf(" (%s should be %s)", r.name, r.l)
			met = false
		}
	}
	if want.Over != nil {
		if len(others) == 0 {
			return text + ", and no other node to compare with", false
		}
		other, _ := extremes(others)
		over, ok := want.Over.of(worst - other)
		text += fmt.Sprintf(", over the other nodes' %s by %s", round(other), over)
		met = met && ok
	}
	return text, met
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func extremes(list []lag) (worst, best time.Duration) {
	worst, best = list[0].d, list[0].d
	for _, l := range list {
		worst, best = max(worst, l.d), min(best, l.d)
	}
	return worst, best
}

// lags are the times of a path's hop that a check is about.
func lags(p *timeline.Path, want *LagCheck, now time.Time) (out []lag) {
	from := p.Origin.At
	switch want.From {
	case "slice":
		if p.Slice == nil || p.Slice.At.IsZero() {
			return nil
		}
		from = p.Slice.At
	case "created":
		if from = p.Before.Created.At; from.IsZero() {
			return nil
		}
	}
	hop := func(h *timeline.Hop) {
		switch {
		case h == nil:
		case h.Status == timeline.StatusOpen:
			out = append(out, lag{h.Plane.Node, now.Sub(from), true})
		case h.Status == timeline.StatusArrived:
			out = append(out, lag{h.Plane.Node, h.At.Sub(from), false})
		}
	}
	switch want.Hop {
	case "slice":
		hop(p.Slice)
	case "endpoints":
		hop(p.Endpoints)
	case "ready":
		if a, b := p.Before.Started.At, p.Before.Ready.At; !a.IsZero() && !b.IsZero() {
			out = append(out, lag{d: b.Sub(a)})
		}
	case "claimed":
		if c := p.Origin.Claimed; !c.IsZero() {
			out = append(out, lag{d: c.Sub(p.Origin.At)})
		}
	case "end":
		if p.Status == timeline.StatusOpen {
			out = append(out, lag{d: now.Sub(from), open: true})
		} else if end := p.End(); !end.IsZero() {
			out = append(out, lag{d: end.Sub(from)})
		}
	default:
		for i := range p.Rules {
			hop(&p.Rules[i])
		}
	}
	return out
}

// marksOf are the marks of a kind since the check's mark: those of no Service, and
// those of the check's or of all.
func (ct *court) marksOf(kind string, anywhere bool) (out []timeline.Mark) {
	lists := [][]timeline.Mark{ct.snap.Marks}
	for _, s := range ct.snap.Services {
		if anywhere || s == ct.svc {
			lists = append(lists, s.Marks)
		}
	}
	for _, list := range lists {
		for _, m := range list {
			if m.Kind == kind && !m.At.Before(ct.since) {
				out = append(out, m)
			}
		}
	}
	return out
}

func judgeReconcile(ct *court) (string, bool) {
	want := ct.check.Reconcile
	n, queue := 0, 0
	var took time.Duration
	for _, m := range ct.marksOf("reconcile", want.Anywhere) {
		step, ok := m.Step.(*collect.ReconcileStep)
		if !ok || want.Controller != "" && step.Controller != want.Controller {
			continue
		}
		queue = max(queue, step.Queue)
		if want.Step == "" || step.Step == want.Step {
			n++
			took = max(took, step.Took)
		}
	}
	return steps(want, n, took, queue)
}

func judgeSyncs(ct *court) (string, bool) {
	want := ct.check.Syncs
	n := 0
	var took time.Duration
	for _, m := range ct.marksOf("sync", true) {
		step, ok := m.Step.(*collect.SyncStep)
		if !ok || want.Node != "" && step.Node != want.Node || want.Step != "" && step.Step != want.Step {
			continue
		}
		n++
		took = max(took, step.Took)
	}
	return steps(want, n, took, 0)
}

func steps(want *StepsCheck, n int, took time.Duration, queue int) (string, bool) {
	return all(counted(want.Step, want.Count, n), func() (string, bool) {
		if want.Took == nil {
			return "at most " + round(took).String(), true
		}
		text, ok := want.Took.of(took)
		return "took " + text, ok
	}, counted("queue", want.Queue, queue))
}

func judgeEvents(ct *court) (string, bool) {
	want := ct.check.Events
	n := 0
	for _, m := range ct.marksOf("event", false) {
		if e, ok := m.Step.(*collect.KubeEvent); ok && e.Reason == want.Reason {
			n++
		}
	}
	return counted(want.Reason, want.Count, n)()
}

func judgeConnections(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Connections
	ok, pods := 0, map[string]bool{}
	for _, c := range s.Connections {
		if c.To.Before(ct.since) || want.Node != "" && c.Node != want.Node {
			continue
		}
		ok += c.OK
		for _, uid := range c.Pods {
			pods[uid] = true
		}
	}
	failed, unexplained := 0, 0
	which := ""
	for i := range s.Failures {
		f := &s.Failures[i]
		if f.Began.Before(ct.since) || want.Node != "" && f.Node != want.Node {
			continue
		}
		failed++
		if s.ExplainFailure(f, ct.snap.Nodes).Kind == timeline.Unexplained {
			unexplained++
			if which == "" {
				which = fmt.Sprintf(" (%s to %s, %s after %s, begun %s)", f.Node, f.Address, f.Result, round(f.Ended.Sub(f.Began)), f.Began.Format("15:04:05.000"))
			}
		}
	}
	text, met := all(counted("ok", want.OK, ok), counted("failed", want.Failed, failed),
		counted("unexplained", want.Unexplained, unexplained), counted("answered by pods", want.Pods, len(pods)))
	return text + which, met
}
