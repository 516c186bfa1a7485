package timeline

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Pull is an image that was pulled for a container, by the word of a Kubernetes Event.
type Pull struct {
	// At is claimed: whole seconds on the node's clock.
	At time.Time
	// Took is the kubelet's own measure, with the wait for other pulls where it tells of
	// that.
	Took time.Duration
	// Init: it was for an init container.
	Init bool

	id collect.ObjectKey // of the Event
}

// keepPulls is how many pulls are kept of one pod.
const keepPulls = 32

// pulled is what the kubelet says (k8s.io/kubernetes pkg/kubelet/images/image_manager.go
// pullImage): up to 1.22 without the wait.
var pulled = regexp.MustCompile(`^Successfully pulled image .* in ([0-9.a-zµ]+)(?: \(([0-9.a-zµ]+) including waiting\))?`)

// onPullEvent takes what an Event tells of an image that was pulled.
func (ch *change) onPullEvent(k *collect.KubeEvent) {
	if k.Reason != "Pulled" || k.UID == "" || k.Component != "kubelet" {
		return
	}
	m := pulled.FindStringSubmatch(k.Message)
	if m == nil {
		return // the image was there, or these are other words
	}
	took, err := time.ParseDuration(cmp.Or(m[2], m[1]))
	if err != nil || took < 0 {
		return
	}
	pl := Pull{At: k.First.UTC(), Took: took, Init: k.Init, id: ch.e.Object}
	ch.m.pulls[k.UID] = keepPull(ch.m.pulls[k.UID], pl)
	if p := ch.m.podsByUID[k.UID]; p != nil {
		for _, x := range p.paths {
			x.tellPull(pl)
		}
	}
}

// keepPull puts a pull into a list by its time. The list may be shown already, so that it
// is never written to.
func keepPull(list []Pull, pl Pull) []Pull {
	list = slices.DeleteFunc(slices.Clone(list), func(x Pull) bool { return x.id == pl.id })
	list = append(list, pl)
	slices.SortStableFunc(list, func(a, b Pull) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Took, b.Took), cmp.Compare(a.id.Name, b.id.Name))
	})
	return list[max(len(list)-keepPulls, 0):]
}

// tellPull adds a pull to a path that starts with the pod being ready for the first time,
// unless it was for a container that was started again.
func (p *path) tellPull(pl Pull) {
	if p.Cause != CausePodReady || p.Before.Again {
		return
	}
	if started := p.Before.Started.Claimed; !started.IsZero() && pl.At.After(started.Add(claimedSecond)) {
		return
	}
	p.Before.Pulls = keepPull(p.Before.Pulls, pl)
	p.touch()
}

// tellPulls adds those that are known when the path begins.
func (p *path) tellPulls() {
	for _, pl := range p.svc.m.pulls[p.pod.uid] {
		p.tellPull(pl)
	}
}

// retainPulls drops those of pods that are not known any more.
func (m *Model) retainPulls(cut time.Time) {
	for uid, list := range m.pulls {
		if m.podsByUID[uid] == nil && !slices.ContainsFunc(list, func(x Pull) bool { return !x.At.Before(cut) }) {
			delete(m.pulls, uid)
		}
	}
}
