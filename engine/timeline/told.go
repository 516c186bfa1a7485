package timeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// Whoever changes a Deployment or Service, with kubectl or otherwise, leaves no
// other word than the change itself: these read it off, so that the axis shows
// what people did without having to be told.

// toldWorkload marks what a workload was told to do on the Services whose pods
// it makes. A ReplicaSet of a Deployment is told by that and not by people.
func (ch *change) toldWorkload(w *workload, old *collect.Workload) {
	if ch.baseline || w.w.Owner != nil {
		return
	}
	name, text := w.key.name, ""
	switch {
	case old == nil && ch.e.Op == collect.OpAdded && !w.scales():
		text = "create " + name
	case old == nil && ch.e.Op == collect.OpAdded:
		text = fmt.Sprintf("create %s ×%d", name, w.w.Replicas)
	case old == nil:
	case w.rolls() && old.Revision != "" && old.Revision != w.w.Revision:
		text = fmt.Sprintf("rollout %s, revision %s", name, w.w.Revision)
	case old.Replicas != w.w.Replicas && w.scales():
		text = fmt.Sprintf("scale %s %d→%d", name, old.Replicas, w.w.Replicas)
	}
	ch.toldOn(w, text)
}

// toldOn marks an action on the Services that select the workload's pods, or for
// all when none does yet.
func (ch *change) toldOn(w *workload, text string) {
	if text == "" {
		return
	}
	mark := Mark{At: ch.at, Kind: "action", Text: text, Step: w.w}
	labels := w.w.TemplateLabels
	if labels == nil {
		labels = w.w.Selector
	}
	on := ch.m.ns(w.key.namespace).selecting(labels)
	for _, s := range on {
		s.mark(mark)
	}
	if len(on) == 0 {
		ch.m.mark(mark)
	}
}

// toldService marks what a Service was told.
func (ch *change) toldService(s *service, old, now *collect.Service, created, gone bool) {
	if ch.baseline {
		return
	}
	text := ""
	switch {
	case created && ch.e.Op != collect.OpAdded:
	case created:
		text = "create service " + s.name
	case gone:
		text = "delete service " + s.name
	case !maps.Equal(old.Selector, now.Selector):
		text = "change selector"
	case !slices.Equal(old.Ports, now.Ports):
		text = "change ports"
	case old.InternalPolicy != now.InternalPolicy || old.ExternalPolicy != now.ExternalPolicy:
		text = "change traffic policy"
	case old.PublishNotReadyAddresses != now.PublishNotReadyAddresses:
		text = "change publishNotReadyAddresses"
	case old.SessionAffinity != now.SessionAffinity || old.AffinityTimeout != now.AffinityTimeout:
		text = "change session affinity"
	case !slices.Equal(old.SourceRanges, now.SourceRanges):
		text = "change source ranges"
	}
	if text != "" {
		s.mark(Mark{At: ch.at, Kind: "action", Text: text, Step: now})
	}
}
