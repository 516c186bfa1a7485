package timeline

import (
	"github.com/kconverge/kconverge/collect"
)

// onAction takes something a person or a script asked for.
func (ch *change) onAction() {
	a := ch.e.Payload.(*collect.Action)
	mark := Mark{At: ch.at, Kind: "action", Text: a.Text, Step: a}
	if a.Service != "" {
		if s := ch.m.ns(a.Namespace).services[a.Service]; s != nil {
			s.mark(mark)
			return
		}
	}
	ch.m.mark(mark)
}

func earlier(a, b Mark) bool { return a.At.Before(b.At) }

func (m *Model) mark(x Mark) { m.marks.insert(x, earlier) }

func (s *service) mark(x Mark) {
	s.marks.insert(x, earlier)
	s.dirty = true
}

// onReconcileStep takes a step of the embedded controllers.
func (ch *change) onReconcileStep() {
	r := ch.e.Payload.(*collect.ReconcileStep)
	ch.m.reconcile = r
	ch.m.work = worked(ch.m.work, r)
	text := r.Controller + " " + r.Step
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	mark := Mark{At: ch.at, Kind: "reconcile", Text: text, Step: r}
	if s := ch.m.ns(ch.e.Object.Namespace).services[ch.e.Object.Name]; s != nil {
		s.mark(mark)
		return
	}
	ch.m.mark(mark)
}

// onKubeEvent takes a Kubernetes Event. One that a list brought is drawn where
// it says it was.
func (ch *change) onKubeEvent() {
	k := ch.e.Payload.(*collect.KubeEvent)
	ch.onProbeEvent(k)
	ch.onPullEvent(k)
	at := ch.at
	if ch.baseline || ch.e.Op == collect.OpListed {
		if at = k.Last.UTC(); k.Last.IsZero() {
			return
		}
	}
	text := k.Reason
	if k.Message != "" {
		text += ": " + k.Message
	}
	mark := Mark{At: at, Kind: "event", Text: text, Step: k}
	n := ch.m.ns(k.Regarding.Namespace)
	switch k.Regarding.Kind {
	case "Pod":
		if p := ch.m.podsByUID[k.UID]; p != nil {
			for _, s := range p.watchers {
				s.mark(mark)
			}
			return
		}
	case "Service":
		if s := n.services[k.Regarding.Name]; s != nil {
			s.mark(mark)
			return
		}
	case "EndpointSlice":
		if s := n.slices[k.Regarding.Name]; s != nil {
			s.mark(mark)
			return
		}
	case "Node":
		mark.Node = k.Regarding.Name
	}
	ch.m.mark(mark)
}
