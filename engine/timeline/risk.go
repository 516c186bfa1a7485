package timeline

import "time"

// risk says how long an endpoint that was removed could still be chosen for new
// connections: from the start of its termination, when servers close their
// listener without the API showing it, and from the exit of its containers, to
// the last node that stopped routing to it. Only observed moments count. While
// a node still routes to it the values are as of now, and grow.
//
// It is not known when a node's step was taken back by a later one, since then
// that node did not stop because of this path.
func (p *path) risk() Risk {
	if p.Op != OpRemove || p.pod == nil || len(p.rules) == 0 {
		return Risk{}
	}
	var last time.Time
	growing := false
	for _, h := range p.rules {
		switch h.Status {
		case StatusOpen:
			growing = true
		case StatusArrived:
			if h.At.After(last) {
				last = h.At
			}
		case StatusSuperseded, StatusHandedOver:
			return Risk{}
		}
	}
	if growing {
		last = p.svc.m.now
	}
	if last.IsZero() {
		return Risk{}
	}
	// An endpoint that was removed for another reason has nothing to do with a
	// termination that came after.
	ending := p.Cause == CausePodTerminating || p.Cause == CausePodTerminal || p.Cause == CausePodGone
	since := func(t time.Time) *time.Duration {
		d := last.Sub(t)
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
	return r
}
