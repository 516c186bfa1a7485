package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// track is a PodTrack in the making.
type track struct {
	pod     *podState
	changes series[PodChange]
	owner   string
	// shown is the pod as it was in the last view, and how many changes it had.
	shown        *collect.Pod `graph:"-"`
	shownChanges int          `graph:"-"`
}

// same reports that the view that was made last is still right.
func (t *track) same() bool {
	return t.shown == t.pod.pod && t.shownChanges == t.changes.len() && t.changes.viewed()
}

// phase is what a pod's lane shows.
func (p *podState) phase(selected bool) PodPhase {
	switch pod := p.pod; {
	case !p.gone.IsZero():
		return PodGone
	case !selected:
		return PodUnselected
	case pod.Terminal() || !pod.Stopped.IsZero():
		return PodStopped
	case pod.Terminating():
		return PodTerminating
	case pod.IsReady():
		return PodReady
	case p.wasReady:
		return PodUnready
	case !pod.Started.IsZero():
		return PodStarting
	}
	return PodPending
}

// track writes the pod's phase on its lane in the Service.
func (ch *change) track(s *service, p *podState, selected bool) {
	t := s.tracks[p]
	if t == nil {
		if !selected {
			return
		}
		t = &track{pod: p}
		s.tracks[p] = t
		if p.before.Created.At.IsZero() {
			for _, c := range p.claimedPast(ch.at) {
				t.changes.append(c)
			}
		}
	}
	phase := p.phase(selected)
	last, ok := t.changes.last()
	c := PodChange{At: ch.at, Phase: phase, Ended: !p.exitAt.IsZero()}
	switch {
	case ok && last.Phase == phase && last.Ended == c.Ended && !last.Claimed:
		return
	case ok && !last.Claimed && !ch.at.After(last.At):
		c.At = last.At // within the disorder of two watches
		t.changes.replaceLast(c)
	default:
		t.changes.append(c)
	}
}

// claimedPast is the pod's life before it was observed, by its own words.
func (p *podState) claimedPast(until time.Time) []PodChange {
	var out []PodChange
	add := func(at time.Time, phase PodPhase) {
		if at.IsZero() || !at.Before(until) {
			return
		}
		if n := len(out); n > 0 && !at.After(out[n-1].At) {
			out[n-1].Phase, out[n-1].Ended = phase, phase == PodStopped // within the same second
			return
		}
		out = append(out, PodChange{At: at.UTC(), Phase: phase, Claimed: true, Ended: phase == PodStopped})
	}
	add(p.pod.Created, PodPending)
	add(p.pod.Started, PodStarting)
	if p.pod.IsReady() {
		add(p.pod.Ready.Since, PodReady)
	}
	if p.pod.Terminating() {
		add(p.pod.Deletion.Add(-p.pod.Grace), PodTerminating)
	}
	add(p.pod.Stopped, PodStopped)
	return out
}

// ownerName is "ReplicaSet/web-7d9c", made once for each owner.
func (t *track) ownerName() string {
	o := t.pod.pod.Owner
	if o == nil {
		return ""
	}
	if kind, name, ok := strings.Cut(t.owner, "/"); !ok || kind != o.Kind || name != o.Name {
		t.owner = o.Kind + "/" + o.Name
	}
	return t.owner
}

// trackViews lists the Service's pods by first change, then name.
func (s *service) trackViews() []PodTrack {
	same := s.tracksView != nil && len(s.tracksView) == len(s.tracks)
	for _, t := range s.tracks {
		if same = same && t.same(); !same {
			break
		}
	}
	if same {
		return s.tracksView
	}
	out := make([]PodTrack, 0, len(s.tracks))
	for _, t := range s.tracks {
		t.shown, t.shownChanges = t.pod.pod, t.changes.len()
		out = append(out, PodTrack{Name: t.pod.name, UID: t.pod.uid, Node: t.pod.pod.Node, IPs: t.pod.pod.IPs, Owner: t.ownerName(), Revision: revisionOf(t.pod.pod), Changes: t.changes.view()})
	}
	slices.SortFunc(out, func(a, b PodTrack) int {
		return cmp.Or(a.Changes[0].At.Compare(b.Changes[0].At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	s.tracksView = out
	return out
}
