package timeline

import (
	"time"
)

// sliceWrite is one event of one of a Service's slices, as a kube-proxy takes
// it.
type sliceWrite struct {
	// trigger is the slice's annotation
	// endpoints.kubernetes.io/last-change-trigger-time, zero when it has none.
	trigger time.Time
	removed bool
}

// Why there is no official number. The rules are those of k8s.io/kubernetes
// pkg/proxy/endpointschangetracker.go (EndpointSliceUpdate) and of the end of a
// proxier's sync.
const (
	whyNoSlice   = "no slice changed for it, and kube-proxy measures nothing else"
	whyNoTrigger = "the slice carries no trigger time"
	whyRemoved   = "a slice of the Service was deleted, and with it what kube-proxy had to measure"
	whyOlder     = "the trigger time is older than this kube-proxy"
	whyAsOld     = "the trigger time is about as old as this kube-proxy, which may have left it out"
	whyFailed    = "a sync failed before, and kube-proxy forgets the trigger time then"
)

// startDoubt is how long after its process a kube-proxy begins to count trigger
// times, which are of whole seconds.
const startDoubt = 3 * time.Second

// official is what kube-proxy's kubeproxy_network_programming_duration_seconds
// got from this node for the slice write behind the hop, which has arrived: the
// end of its sync minus the slice's trigger time, on the node's own clock. All
// that one sync took over from one slice write share the number. It is known as
// well as the arrival, up to the time from the commit to the end of the sync, some
// milliseconds, and is itself up to a second too large: trigger times are cut to
// seconds.
func (ch *change) official(p *plane, h *hopState) (d *time.Duration, trigger time.Time, why string) {
	w := h.write
	switch {
	case w == nil:
		return nil, trigger, whyNoSlice
	case w.removed:
		return nil, trigger, whyRemoved
	case w.trigger.IsZero():
		return nil, trigger, whyNoTrigger
	}
	between := func(from, t time.Time) bool { return !t.IsZero() && !t.Before(from) && !t.After(h.At) }
	if between(h.Step, p.svc.sliceRemoved) {
		return nil, w.trigger, whyRemoved
	}
	clock := ch.m.clockOf(p.id)
	// A node hears of a slice by a watch of its own: one of its syncs may have failed with
	// it before it was seen here, by as much as two ways may be apart.
	heard := h.Step.Add(-ch.m.ReorderWindow() - clock.Error)
	if n := ch.m.nodes[p.id.Node]; n != nil {
		if between(heard, n.syncFailed) {
			return nil, w.trigger, whyFailed
		}
		if !n.proxyStarted.IsZero() {
			began := n.proxyStarted.Add(-clock.Offset)
			switch {
			case !w.trigger.After(began):
				return nil, w.trigger, whyOlder
			case !w.trigger.After(began.Add(startDoubt)):
				return nil, w.trigger, whyAsOld
			}
		}
	}
	v := h.At.Add(-clock.Offset).Sub(w.trigger)
	return &v, w.trigger, ""
}
