package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Result is what became of a check.
type Result struct {
	That string
	Met  bool
	// Found is what there was, part by part, those that do not hold with what was
	// expected.
	Found string
}

// court judges one check by one snapshot.
type court struct {
	check *Check
	snap  *timeline.Snapshot
	svc   *timeline.Service // nil when it does not exist
	since time.Time
}

// part is one thing that a check asks for.
type part struct {
	name  string
	judge func(*court) (found string, ok bool)
}

// Judge says whether a check holds. since are the times of the marks.
func Judge(c *Check, snap *timeline.Snapshot, since map[string]time.Time) Result {
	ct := &court{check: c, snap: snap, since: since[c.Since]}
	namespace, name := serviceOf(c.Service)
	ct.svc = snap.Service(namespace, name)
	out := Result{That: c.That, Met: true}
	var found []string
	for _, p := range c.parts() {
		text, ok := p.judge(ct)
		if !ok {
			out.Met = false
			text = "NOT " + text
		}
		found = append(found, p.name+" "+text)
	}
	out.Found = collect.Plain(strings.Join(found, "; "))
	return out
}

func serviceOf(text string) (namespace, name string) {
	if text == "" {
		text = "web"
	}
	if ns, name, ok := strings.Cut(text, "/"); ok {
		return ns, name
	}
	return "default", text
}

// within says what was found and, when it is wrong, what was expected.
func within(s span, x float64, text string) (string, bool) {
	if s.holds(x) {
		return text, true
	}
	return fmt.Sprintf("%s, but %s", s.text, text), false
}

func (c *Count) of(n int) (string, bool) { return within(c.span, float64(n), fmt.Sprint(n)) }

func (l *Length) of(d time.Duration) (string, bool) {
	return within(l.span, float64(d), d.Round(time.Millisecond).String())
}

func (c *Check) parts() (out []part) {
	add := func(given bool, name string, f func(*court) (string, bool)) {
		if given {
			out = append(out, part{name, f})
		}
	}
	service := func(f func(*timeline.Service, *court) (string, bool)) func(*court) (string, bool) {
		return func(ct *court) (string, bool) {
			if ct.svc == nil {
				return "there is no such Service", false
			}
			return f(ct.svc, ct)
		}
	}
	count := func(n *Count, f func(*timeline.Service, *court) int) func(*court) (string, bool) {
		return service(func(s *timeline.Service, ct *court) (string, bool) { return n.of(f(s, ct)) })
	}
	add(c.State != "", "state", service(func(s *timeline.Service, _ *court) (string, bool) {
		if string(s.State) == c.State {
			return c.State, true
		}
		return fmt.Sprintf("%s, but %s", c.State, s.State), false
	}))
	add(c.Pods != nil, "pods", count(c.Pods, func(s *timeline.Service, _ *court) int { return routable(s) }))
	add(c.Selected != nil, "selected pods", count(c.Selected, func(s *timeline.Service, _ *court) int { return len(s.Facts.Pods) }))
	add(c.Unready != nil, "unready pods", count(c.Unready, func(s *timeline.Service, _ *court) int { return unready(s) }))
	add(c.Endpoints != nil, "Endpoints", count(c.Endpoints, func(s *timeline.Service, _ *court) int {
		if s.Facts.Legacy == nil {
			return 0
		}
		return len(s.Facts.Legacy.Addresses)
	}))
	add(c.Truncated != nil, "Endpoints cut", service(func(s *timeline.Service, _ *court) (string, bool) {
		cut := s.Facts.Legacy != nil && s.Facts.Legacy.Truncated
		return fmt.Sprint(cut), cut == *c.Truncated
	}))
	add(c.Slices != nil, "slices", service(judgeSlices))
	add(c.Rules != nil, "rules", service(judgeRules))
	add(c.Paths != nil, "paths", service(judgePaths))
	add(c.Lag != nil, "lag", service(judgeLag))
	add(c.Risk != nil, "risk", service(judgeRisk))
	add(c.Together != nil, "old and new together", service(judgeTogether))
	add(c.Answering != nil, "answering", service(judgeAnswering))
	add(len(c.Findings) > 0, "findings", func(ct *court) (string, bool) { return ct.codes(c.Findings, true) })
	add(len(c.Without) > 0, "without", func(ct *court) (string, bool) { return ct.codes(c.Without, false) })
	add(c.Connections != nil, "connections", service(judgeConnections))
	add(c.Reconcile != nil, "controller", judgeReconcile)
	add(c.Syncs != nil, "syncs", judgeSyncs)
	add(c.Events != nil, "Events", judgeEvents)
	add(c.Official != nil, "official numbers", service(judgeOfficial))
	add(len(c.LeftOut) > 0, "left out", service(func(s *timeline.Service, _ *court) (string, bool) {
		have := slices.Clone(s.Coverage.LeftOut)
		want := slices.Clone([]string(c.LeftOut))
		slices.Sort(have)
		slices.Sort(want)
		return fmt.Sprint(have), slices.Equal(have, want)
	}))
	return out
}

// routable is how many endpoints should be routed to by the pods' word.
func routable(s *timeline.Service) int {
	if n := len(s.Wanted); n > 0 {
		return s.Wanted[n-1].N
	}
	return 0
}

func unready(s *timeline.Service) (n int) {
	for _, p := range s.Facts.Pods {
		if !p.Pod.IsReady() && !p.Pod.Terminating() && !p.Pod.Terminal() {
			n++
		}
	}
	return n
}

// all joins several judgements.
func all(parts ...func() (string, bool)) (string, bool) {
	var texts []string
	met := true
	for _, p := range parts {
		text, ok := p()
		if !ok {
			met = false
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), met
}

// counted makes a judgement of a number that may not be asked for.
func counted(name string, c *Count, n int) func() (string, bool) {
	return func() (string, bool) {
		text := fmt.Sprint(n)
		ok := true
		if c != nil {
			text, ok = c.of(n)
		}
		return name + " " + text, ok
	}
}

func judgeSlices(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Slices
	var now timeline.PlaneChange
	if s.Slices != nil {
		now, _ = s.Slices.At(ct.snap.Now)
	}
	total := 0
	for _, x := range s.SliceList {
		total += x.Endpoints
	}
	return all(
		counted("", want.Count, len(s.SliceList)), counted("have", want.Have, now.Have),
		counted("want", want.Want, now.Want), counted("hold", want.Total, total))
}

func judgeRules(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Rules
	var texts []string
	met := true
	for _, p := range s.Rules.All() {
		if want.Node != "" && p.ID.Node != want.Node {
			continue
		}
		now, ok := p.At(ct.snap.Now)
		if !ok {
			continue
		}
		text, ok := all(counted("have", want.Have, now.Have), counted("want", want.Want, now.Want), func() (string, bool) {
			behind := !now.Agrees()
			word := map[bool]string{true: "behind", false: "as wanted"}[behind]
			return word, want.Behind == nil || *want.Behind == behind
		})
		met = met && ok
		texts = append(texts, p.ID.Node+": "+text)
	}
	if len(texts) == 0 {
		return "no rules are known", false
	}
	return strings.Join(texts, "; "), met
}

func (f *PathFilter) keeps(p *timeline.Path) bool {
	return (f.Op == "" || f.Op == string(p.Op)) && (f.Cause == "" || f.Cause == string(p.Cause)) &&
		(f.Status == "" || f.Status == string(p.Status)) && (f.Pod == "" || f.Pod == p.Endpoint.Pod) &&
		(f.Node == "" || f.Node == p.Endpoint.Node) && strings.Contains(p.By, f.By) && f.hop(p)
}

// hop reports whether a node's hop is as the filter wants it.
func (f *PathFilter) hop(p *timeline.Path) bool {
	return f.On == "" && f.HopStatus == "" || slices.ContainsFunc(p.Rules, func(h timeline.Hop) bool {
		return (f.On == "" || h.Plane.Node == f.On) && (f.HopStatus == "" || string(h.Status) == f.HopStatus)
	})
}

// paths are those of the Service that a filter keeps, since the mark.
func (ct *court) paths(s *timeline.Service, f *PathFilter) (out []*timeline.Path) {
	for _, p := range s.Paths {
		if !p.Origin.At.Before(ct.since) && f.keeps(p) {
			out = append(out, p)
		}
	}
	return out
}

func judgePaths(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Paths
	paths := ct.paths(s, &want.PathFilter)
	uids := map[string]bool{}
	for _, p := range paths {
		uids[p.Endpoint.UID] = true
	}
	text, ok := all(counted("", want.Count, len(paths)), counted("of pods", want.UIDs, len(uids)))
	if !ok {
		text += "; there are" + listed(ct.paths(s, &PathFilter{}))
	}
	return text, ok
}

// listed names paths, the first few.
func listed(paths []*timeline.Path) (out string) {
	const few = 8
	for i, p := range paths {
		if i == few {
			return out + fmt.Sprintf(" and %d more", len(paths)-few)
		}
		out += fmt.Sprintf(" %s %s (%s, %s)", p.Op, p.Endpoint.Pod, p.Cause, p.Status)
	}
	if len(paths) == 0 {
		return " none"
	}
	return out
}

func judgeRisk(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Risk
	var worst time.Duration
	n := 0
	for _, p := range ct.paths(s, &want.Of) {
		d := p.Risk.FromTermination
		switch want.From {
		case "exit":
			d = p.Risk.FromExit
		case "wrong-pod":
			d = &p.Risk.WrongPod
		}
		if d != nil {
			n++
			worst = max(worst, *d)
		}
	}
	text, ok := want.Worst.of(worst)
	return fmt.Sprintf("at worst %s of %d removals", text, n), ok
}

func judgeTogether(s *timeline.Service, ct *court) (string, bool) {
	var worst time.Duration
	for _, t := range s.Together(later(ct.since, ct.snap.First), ct.snap.Now) {
		worst = max(worst, t.Length(ct.snap.Now))
	}
	return ct.check.Together.of(worst)
}

func judgeAnswering(s *timeline.Service, ct *court) (string, bool) {
	low := s.Capacity(later(ct.since, ct.snap.First), ct.snap.Now).Answering
	if low == nil {
		return "no node's rules are known", false
	}
	text, ok := ct.check.Answering.of(low.Answering)
	return fmt.Sprintf("%s at worst, on %s for %s", text, low.Node, round(low.For)), ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// codes looks for findings.
func (ct *court) codes(want List, there bool) (string, bool) {
	keep := func(s *timeline.Service) bool { return ct.svc == nil || s == ct.svc }
	have := map[string]string{}
	for _, f := range findings.Find(ct.snap, keep) {
		have[f.Code.ID] = f.Object + ": " + f.Message
	}
	var texts []string
	met := true
	for _, code := range want {
		message, found := have[strings.ToUpper(code)]
		text := code
		if found {
			text += " (" + message + ")"
		} else if there {
			text += " is not there"
		}
		met = met && found == there
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), met
}
