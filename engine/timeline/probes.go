package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Probe is a probe of a pod that failed, by the word of a Kubernetes Event. The
// kubelet counts failures with the same message into one Event and drops Events
// of a pod that come too often (client-go tools/record, EventSourceObjectSpamFilter),
// so Count is the least. Everything is claimed: whole seconds on the node's
// clock.
type Probe struct {
	Kind        string // readiness, liveness, startup
	Count       int32
	First, Last time.Time
	// Message is the kubelet's, in one line and cut.
	Message string

	id collect.ObjectKey // of the Event
}

const (
	// probeMessage is how many characters of a message are kept.
	probeMessage = 120
	// keepProbes is how many Events of failed probes are kept of one pod.
	keepProbes = 16
	// claimedSecond is how far two claims of one clock may be apart and still
	// be of the same moment.
	claimedSecond = time.Second
	// killReach is how long before a pod turns unready its container may have
	// been told to go because of a probe: the default grace period, and the
	// second by which either claim may be off.
	killReach = 31 * time.Second
)

// podProbes are the failed probes of one pod, kept apart from it since Events
// and pods come from different watches.
type podProbes struct {
	failed []Probe
	// killed are containers that were told to go because of a probe.
	killed []Probe
}

// onProbeEvent takes what an Event tells of a pod's probes. The words are the
// kubelet's (k8s.io/kubernetes pkg/kubelet/prober/prober.go recordContainerEvent,
// kuberuntime/kuberuntime_manager.go computePodActions).
func (ch *change) onProbeEvent(k *collect.KubeEvent) {
	var kind, text string
	var killed bool
	switch k.Reason {
	case "Unhealthy": // "Readiness probe failed: …"
		kind, text, _ = strings.Cut(k.Message, " probe ")
	case "Killing": // "Container app failed liveness probe, will be restarted"
		_, rest, ok := strings.Cut(k.Message, " failed ")
		if !ok {
			return
		}
		kind, text, _ = strings.Cut(rest, " probe")
		killed = true
	}
	kind = strings.ToLower(kind)
	if kind != "readiness" && kind != "liveness" && kind != "startup" || k.UID == "" {
		return
	}
	if _, rest, ok := strings.Cut(text, ": "); ok {
		text = rest
	}
	pr := Probe{Kind: kind, Count: k.Count, First: k.First.UTC(), Last: k.Last.UTC(), Message: cut(collect.Plain(text), probeMessage), id: ch.e.Object}
	all := ch.m.probes[k.UID]
	if all == nil {
		all = &podProbes{}
		ch.m.probes[k.UID] = all
	}
	if killed {
		all.killed = keepProbe(all.killed, pr)
	} else {
		all.failed = keepProbe(all.failed, pr)
	}
	p := ch.m.podsByUID[k.UID]
	if p == nil {
		return
	}
	for _, x := range p.paths {
		if !killed {
			x.tellProbe(pr)
		}
		if x.Cause == CausePodUnready && x.By == "" {
			if x.By = all.unreadyBy(x.Origin.Claimed); x.By != "" {
				x.touch()
			}
		}
	}
}

func cut(s string, n int) string {
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// keepProbe puts a probe into a list by its first time. The list may be shown
// already, so that it is never written to.
func keepProbe(list []Probe, pr Probe) []Probe {
	list = slices.Clone(list)
	list = slices.DeleteFunc(list, func(x Probe) bool { return x.id == pr.id })
	list = append(list, pr)
	slices.SortStableFunc(list, func(a, b Probe) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
	return list[max(len(list)-keepProbes, 0):]
}

// tellProbe adds a failed probe to a path that starts with the pod being ready.
// What an Event counts on to after that is of a later time, and no longer told
// here.
func (p *path) tellProbe(pr Probe) {
	if p.Cause != CausePodReady || p.Origin.Claimed.IsZero() {
		return
	}
	ready := p.Origin.Claimed.Add(claimedSecond)
	if pr.First.After(ready) || pr.Last.Before(p.probesFrom) {
		return
	}
	if pr.Last.After(ready) && slices.ContainsFunc(p.Before.Probes, func(x Probe) bool { return x.id == pr.id }) {
		return
	}
	p.Before.Probes = keepProbe(p.Before.Probes, pr)
	p.touch()
}

// tellProbes adds those that are known when the path begins.
func (p *path) tellProbes() {
	p.probesFrom = p.pod.readyBefore
	if all := p.svc.m.probes[p.pod.uid]; all != nil {
		for _, pr := range all.failed {
			p.tellProbe(pr)
		}
	}
}

// unreadyBy tells which probe made a pod unready at a time that the kubelet
// claims: one that failed at that time, or one that made it stop a container
// shortly before. A probe that also failed at other times makes no difference,
// since only the last failure's time is known.
func (a *podProbes) unreadyBy(claimed time.Time) string {
	if a == nil || claimed.IsZero() {
		return ""
	}
	for _, pr := range a.failed {
		if pr.Kind == "readiness" && pr.Last.Sub(claimed).Abs() <= claimedSecond {
			return "readiness probe failed"
		}
	}
	for _, pr := range a.killed {
		if d := claimed.Sub(pr.Last); d >= -claimedSecond && d <= killReach {
			return pr.Kind + " probe failed"
		}
	}
	return ""
}

// retainProbes drops the probes of pods that are not known any more.
func (m *Model) retainProbes(cut time.Time) {
	old := func(list []Probe) bool {
		return !slices.ContainsFunc(list, func(x Probe) bool { return !x.Last.Before(cut) })
	}
	for uid, a := range m.probes {
		if m.podsByUID[uid] == nil && old(a.failed) && old(a.killed) {
			delete(m.probes, uid)
		}
	}
}
