package timeline

import (
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Before are the moments of a pod's life before it was ready (observed where
// the watch saw them, else claimed); zero when unknown.
type Before struct {
	Created, Scheduled, Initialized, Started, Ready Moment
	// ContainersReady is when all its containers were: what is between it and Ready
	// is a readiness gate's.
	ContainersReady Moment
	// Again: it had been ready before, so that how it was created and started is of
	// an earlier change.
	Again bool
	// Probes are those that failed since the pod was ready last, or since it
	// was created, as far as Kubernetes Events tell. By First.
	Probes []Probe
	// Pulls are the images that were pulled for its containers before they had
	// started, as far as Kubernetes Events tell. By At.
	Pulls []Pull
}

// After are the moments of a pod's life from when it was taken away; zero when
// unknown, or not yet. When the last node let go of it is in the path's hops.
type After struct {
	// Terminating is when the deletion was requested, Stopped when none of its
	// containers ran any more, Terminal when its phase was final, Unpublished
	// when it was in no slice of the Service any more, Gone when the object
	// was.
	Terminating, Stopped, Terminal, Unpublished, Gone Moment
}

// ending reports that a cause is the end of a pod.
func (c Cause) ending() bool {
	return c == CausePodTerminating || c == CausePodTerminal || c == CausePodGone
}

// observeBetween notes a moment, with the interval that it lies in where a list
// after an interruption told of it. What a first list brings was not observed.
func (ch *change) observeBetween(mo *Moment, was, is bool, claimed time.Time) {
	switch {
	case !is:
		*mo = Moment{} // a container that was started again
		return
	case !claimed.IsZero():
		mo.Claimed, mo.ClaimedPrecision = claimed, time.Second
	}
	if !was && mo.At.IsZero() && !ch.baseline {
		mo.At, mo.NotBefore = ch.at, ch.notBefore
	}
}

// observeEnd notes how a pod's life ends.
func (ch *change) observeEnd(p *podState, old, now *collect.Pod, gone bool) {
	var requested time.Time
	if now.Terminating() {
		requested = now.Deletion.Add(-now.Grace)
	}
	a := p.ending()
	ch.observeBetween(&a.Terminating, old != nil && old.Terminating(), now.Terminating(), requested)
	ch.observeBetween(&a.Stopped, old != nil && !old.Stopped.IsZero(), !now.Stopped.IsZero(), now.Stopped)
	ch.observeBetween(&a.Terminal, old != nil && old.Terminal(), now.Terminal(), time.Time{})
	ch.observeBetween(&a.Gone, false, gone, time.Time{})
	if p.after = nil; a != (After{}) {
		p.after = &a
	}
}

// ending is how the pod's life ended, or ends.
func (p *podState) ending() After {
	if p.after == nil {
		return After{}
	}
	return *p.after
}

// tellAfter brings the path's After in line with its pod and the slices, where
// the pod's end is what the path is of.
func (p *path) tellAfter() {
	if p.pod == nil || !p.Cause.ending() {
		return
	}
	out := p.After.Unpublished
	p.After = p.pod.ending()
	p.After.Unpublished = out
	if c := p.svc.slices.find(p.Endpoint.EndpointID); c != nil {
		p.After.Unpublished = Moment{}
		if c.had == absent && !c.hadAt.IsZero() && !c.hadBaseline {
			p.After.Unpublished = Moment{At: c.hadAt, NotBefore: c.hadNB}
		}
	}
}

// unpublished makes the paths of an endpoint that left the slices be told anew.
func (s *service) unpublished(id EndpointID) {
	if pod := s.m.podsByUID[id.UID]; pod != nil {
		for _, p := range pod.paths {
			if p.Cause.ending() && p.svc == s && p.Endpoint.EndpointID == id {
				p.touch()
			}
		}
	}
}
