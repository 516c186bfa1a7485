package reference

import (
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Hop is one plane's part of a path: the step in what it wanted of the endpoint,
// and what became of it.
type Hop struct {
	Step, At, NotBefore time.Time
	Status              string // open, arrived, superseded, handed-over, already-routed
}

// LookBack is how long before a step the change of a node's rules that satisfies
// it may have been observed: a watch and a kernel have no mutual order.
const LookBack = 250 * time.Millisecond

// directions of a step.
const (
	removes = -1
	changes = 0
	adds    = 1
)

func direction(from, to Value) int {
	switch {
	case !from.Routable && to.Routable:
		return adds
	case from.Routable && !to.Routable:
		return removes
	}
	return changes
}

// step is one step of one endpoint on one plane.
type step struct {
	k    int // the moment that made it
	id   Endpoint
	to   Value
	dir  int
	path *Path
	hop  *Hop
	end  int // the moment that ended it; 0 while open
	came int // the moment whose had satisfied it, which may lie before k
}

// track is one endpoint on one plane, moment by moment.
type track struct {
	h          *History
	svc, plane string
	id         Endpoint
	steps      []*step // all, by moment
}

func (t *track) want(k int) Value { return t.h.at(k, t.svc, t.plane).Want[t.id] }
func (t *track) had(k int) Value  { return t.h.at(k, t.svc, t.plane).Had[t.id] }

// open lists the steps that are open after moment k.
func (t *track) open(k int) (out []*step) {
	for _, s := range t.steps {
		if s.k <= k && (s.end == 0 || s.end > k) {
			out = append(out, s)
		}
	}
	return out
}

func (s *step) finish(k int, status string) { s.end, s.hop.Status = k, status }

func (t *track) arrive(s *step, k, came int) {
	s.finish(k, "arrived")
	s.came, s.hop.At, s.hop.NotBefore = came, t.h.moments[came].e.At, t.h.notBefore(came)
}

// since is the moment that brought what is had of the endpoint at moment k; ok is
// false when a baseline did, or an address that went over from another endpoint.
func (t *track) since(k int) (j int, ok bool) {
	id := t.id
	for j = k; ; j-- {
		if j == 0 || !t.h.comparable(j-1, t.svc, t.plane) {
			return j, false
		}
		now, before := t.h.at(j, t.svc, t.plane).Had[id], t.h.at(j-1, t.svc, t.plane).Had
		if now == before[id] {
			continue
		}
		if from := t.renamed(j, id); from == Unknown {
			id.UID = Unknown
			continue
		} else if from != "" {
			return j, false
		}
		return j, !t.h.baseline(j)
	}
}

// renamed tells who had the endpoint's address on the node until moment k, when a
// slice said that it belongs to the endpoint; "" when that did not happen.
func (t *track) renamed(k int, id Endpoint) string {
	if _, slice := t.h.moments[k].e.Payload.(*collect.EndpointSlice); !slice || t.plane == Slices {
		return ""
	}
	now, before := t.h.at(k, t.svc, t.plane).Had, t.h.at(k-1, t.svc, t.plane).Had
	if now[id] == (Value{}) || before[id] != (Value{}) {
		return ""
	}
	for other := range before {
		if _, still := now[other]; other.IP == id.IP && !still {
			return other.UID
		}
	}
	return ""
}

// handed reports that at moment k the endpoint's address on the node went over to
// another one.
func (t *track) handed(k int) bool {
	_, slice := t.h.moments[k].e.Payload.(*collect.EndpointSlice)
	return slice && t.plane != Slices && t.id.UID != Unknown && t.had(k-1) != (Value{}) && t.had(k) == (Value{})
}

// ahead reports that what is had at moment k, as the step at k wants it, came to be
// so because of what that step is about, although that was told only now. The
// versions of objects tell; a node's rules must have moved shortly before, and
// after what was wanted last.
func (t *track) ahead(k int) (came int, ok bool) {
	came, ok = t.since(k)
	if !ok {
		return came, false
	}
	now, then := t.h.moments[k].e, t.h.moments[came].e
	if t.plane == Slices {
		return came, then.ResourceVersion > now.ResourceVersion
	}
	moved := time.Time{}
	for j := k - 1; j >= 0 && t.h.comparable(j, t.svc, t.plane); j-- {
		before := Value{}
		if j > 0 && t.h.comparable(j-1, t.svc, t.plane) {
			before = t.want(j - 1)
		}
		if t.want(j) != before {
			moved = t.h.moments[j].e.At
			break
		}
	}
	return came, then.At.After(moved) && !then.At.Before(now.At.Add(-LookBack))
}

// next takes moment k. root gives the path of a step; nil means that nothing that
// moves is a step.
func (t *track) next(k int, root func(dir int) *Path) {
	if !t.h.comparable(k, t.svc, t.plane) || t.h.born(k, t.svc) {
		for _, s := range t.open(k - 1) {
			s.finish(k, "superseded")
		}
	}
	if !t.h.comparable(k, t.svc, t.plane) || !t.h.comparable(k-1, t.svc, t.plane) {
		return // what there is when it begins is the baseline
	}
	if t.handed(k) {
		for _, s := range t.open(k - 1) {
			s.finish(k, "handed-over")
		}
	}
	if from, to := t.want(k-1), t.want(k); from != to {
		if root == nil {
			for _, s := range t.open(k - 1) {
				s.finish(k, "superseded")
			}
		} else {
			t.step(k, from, to, root)
		}
	}
	if t.had(k) != t.had(k-1) && t.renamed(k, t.id) == "" {
		for _, s := range t.open(k) {
			if t.had(k) == s.to || t.had(k) == t.want(k) {
				t.arrive(s, k, k)
			}
		}
	}
}

// step makes a step at moment k and says what becomes of those still open.
func (t *track) step(k int, from, to Value, root func(dir int) *Path) {
	dir, had := direction(from, to), t.had(k)
	came, ahead := 0, false
	if had == to {
		came, ahead = t.ahead(k)
	}
	takesBack := false
	for _, s := range t.open(k) {
		if dir == changes && s.dir != changes {
			// What was to leave and now is to be gone altogether still
			// leaves.
			if had != to {
				continue
			}
			if j, ok := t.since(k); ok && t.after(j, s) {
				t.arrive(s, k, j)
				continue
			}
		}
		s.finish(k, "superseded")
		takesBack = true
	}
	if had == to && !ahead && !t.handed(k) && (takesBack || dir != adds) {
		return // nothing has to move
	}
	p := root(dir)
	if p == nil {
		return
	}
	// Of two steps of one path the later counts.
	t.steps = slices.DeleteFunc(t.steps, func(s *step) bool { return s.path == p && (s.end == 0 || s.end > k) })
	s := &step{k: k, id: t.id, to: to, dir: dir, path: p, hop: &Hop{Step: t.h.moments[k].e.At, Status: "open"}, came: -1}
	t.steps = append(t.steps, s)
	p.hop(t.plane, s.hop)
	switch {
	case had != to:
	case t.handed(k):
		s.finish(k, "handed-over")
	case ahead:
		t.arrive(s, k, came)
	default:
		s.finish(k, "already-routed")
	}
}

// after reports that what came at moment j came after the step was made.
func (t *track) after(j int, s *step) bool {
	then, made := t.h.moments[j].e, t.h.moments[s.k].e
	if t.plane == Slices {
		return then.ResourceVersion > made.ResourceVersion
	}
	return !then.At.Before(made.At)
}

// baseline reports that moment k only tells what there is: an object in a first
// list, the end of such a list.
func (h *History) baseline(k int) bool {
	e := h.moments[k].e
	if _, ok := e.Payload.(*collect.SourceState); ok {
		return true
	}
	return strings.HasPrefix(string(e.Source), "kube/") && !h.moments[k].facts.listed(e.Source)
}

// notBefore bounds the time of a moment from below when a list or a dump brought
// it, in a source that had watched before.
func (h *History) notBefore(k int) time.Time {
	e := h.moments[k].e
	r, rules := e.Payload.(*collect.Rules)
	late := e.Op == collect.OpListed || e.Op == collect.OpGone || rules && r.Baseline
	if rules && !e.NotBefore.IsZero() && k > 0 {
		if s := h.moments[k-1].facts.sources[e.Source]; s != nil && s.gap && s.lost.Before(e.NotBefore) {
			return s.lost
		}
	}
	if !e.NotBefore.IsZero() || !late || k == 0 {
		return e.NotBefore
	}
	if s := h.moments[k-1].facts.sources[e.Source]; s != nil {
		return s.vouched
	}
	return time.Time{}
}

// born reports that at moment k the Service took the place of another one of its
// name.
func (h *History) born(k int, svc string) bool {
	if k == 0 {
		return false
	}
	was, is := h.moments[k-1].facts.services[svc], h.moments[k].facts.services[svc]
	return is.exists && was.Service != nil && was.uid != is.uid
}
