package timeline

import (
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Risk is how long a removed endpoint could still be chosen for new
// connections although its process may have been unable to answer. Established
// flows are not in the rules. Nil means not applicable or not known.
type Risk struct {
	// FromTermination: last node unrouted - start of termination, when
	// servers close their listener without the API showing it.
	FromTermination *time.Duration
	// FromExit: last node unrouted - container exit, as the API told of it,
	// which is somewhat later than it was.
	FromExit *time.Duration
	// Growing: at least one node still routes to it, so both still grow.
	Growing bool
	// Width: each may be less by up to that, because the last node is only
	// known to have let go within an interval.
	Width time.Duration
	// Error is how far each may be off besides, either way: the disorder of
	// the sources, and the clock of any node that may have been the last.
	Error time.Duration
	// WrongPod: for how long nodes routed to the endpoint although its address
	// was given to another pod already. Zero when never; it grows while
	// WrongPodGrowing.
	WrongPod        time.Duration
	WrongPodGrowing bool
}

// grows reports that some of it is more with every moment.
func (r *Risk) grows() bool { return r.Growing || r.WrongPodGrowing }

// risk says how long an endpoint that was removed could still be chosen for new
// connections: from the start of its termination, and from the exit of its
// containers, to the last node that stopped routing to it. Only observed moments
// count, and none that a list after an interruption found. While a node still
// routes to it the values are as of now, and grow.
//
// It is not known when a node's step was taken back by a later one, since then
// that node did not stop because of this path.
func (p *path) risk() Risk {
	if p.Op != OpRemove || p.pod == nil || len(p.rules) == 0 {
		return Risk{}
	}
	var last span
	growing := false
	for _, h := range p.rules {
		switch h.Status {
		case StatusOpen:
			growing = true
		case StatusArrived:
			last.reach(h.At, h.Width(), p.svc.m.errorSince(h))
		case StatusSuperseded, StatusHandedOver:
			return Risk{}
		}
	}
	if growing {
		last = span{}
		for _, h := range p.rules {
			if h.Status == StatusOpen {
				last.reach(p.svc.m.now, 0, p.svc.m.errorSince(h))
			}
		}
	}
	if last.at.IsZero() {
		return Risk{}
	}
	// An endpoint that was removed for another reason has nothing to do with a
	// termination that came after.
	ending := p.Cause.ending()
	since := func(t time.Time) *time.Duration {
		d := last.at.Sub(t)
		if t.IsZero() || d < 0 && !ending {
			return nil
		}
		return &d
	}
	r := Risk{Growing: growing, FromTermination: since(p.pod.termAt)}
	if p.pod.exitSeen {
		r.FromExit = since(p.pod.exitAt)
	}
	if r.FromTermination == nil && r.FromExit == nil {
		return Risk{}
	}
	r.Width, r.Error = last.width(), last.error()
	return r
}

// errorSince is how far the time between what a pod's watch told and a node's
// rules may be off, either way.
func (m *Model) errorSince(h *hopState) time.Duration {
	if h.Status == StatusOpen {
		return m.disorder(collect.SourcePods, PlaneRules) + m.clockOf(h.Plane).Error
	}
	return h.Error - h.path.root.width() // that of the origin is not in it
}

// span is the latest of several moments, each known to lie in an interval and to
// an error.
type span struct {
	at            time.Time
	least         time.Time // without the intervals
	early, latest time.Time // with the errors
}

func (s *span) reach(at time.Time, width, err time.Duration) {
	later := func(t *time.Time, x time.Time) {
		if t.IsZero() || x.After(*t) {
			*t = x
		}
	}
	later(&s.at, at)
	later(&s.least, at.Add(-width))
	later(&s.early, at.Add(-err))
	later(&s.latest, at.Add(err))
}

func (s *span) width() time.Duration { return s.at.Sub(s.least) }
func (s *span) error() time.Duration { return max(s.latest.Sub(s.at), s.at.Sub(s.early)) }
