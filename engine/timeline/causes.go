package timeline

import (
	"reflect"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// moment is the event's own time, as a path's origin.
func (ch *change) moment() Moment { return Moment{At: ch.at, NotBefore: ch.notBefore} }

// podCause tells what about a pod moved what a Service's slices should hold.
func podCause(old, now *collect.Pod, gone, wasSelected, selected bool, d *wantDelta) Cause {
	switch {
	case gone:
		return CausePodGone
	case old == nil:
		if now.IsReady() {
			return CausePodReady
		}
		return CausePodChanged
	case wasSelected != selected && !reflect.DeepEqual(old.Labels, now.Labels):
		return CauseRelabelled
	case now.Terminal() && !old.Terminal():
		return CausePodTerminal
	case now.Terminating() && !old.Terminating():
		return CausePodTerminating
	case len(old.IPs) > 0 && !slices.Equal(old.IPs, now.IPs) && (d.old == nil || d.new == nil):
		return CauseAddressChanged
	case now.IsReady() && !old.IsReady():
		return CausePodReady
	case !now.IsReady() && old.IsReady():
		return CausePodUnready
	}
	return CausePodChanged
}

// decorate adds to a path what its pod says: the time it claims for the cause,
// and who was behind it.
func (ch *change) decorate(p *path, pod *podState) {
	p.Origin.Claimed = claimed(p.Cause, pod.pod)
	if !p.Origin.Claimed.IsZero() {
		p.Origin.ClaimedPrecision = time.Second
	}
	p.By = ch.m.by(p.Cause, pod)
	if p.Cause == CausePodUnready {
		p.By = ch.m.probes[pod.uid].unreadyBy(p.Origin.Claimed)
	}
	p.tellProbes()
	p.tellPulls()
	p.touch()
}

// claimed is when the pod's own words put the cause: a condition's transition
// time, or for a deletion the time of the request, which is deletionTimestamp
// less the grace period.
func claimed(c Cause, pod *collect.Pod) time.Time {
	switch c {
	case CausePodReady, CausePodUnready:
		if pod.Ready != nil {
			return pod.Ready.Since
		}
	case CausePodTerminating:
		return pod.Deletion.Add(-pod.Grace)
	case CausePodTerminal:
		return pod.Stopped
	}
	return time.Time{}
}

// disruptions are the reasons of the DisruptionTarget condition
// (k8s.io/api/core/v1, PodDisruptionConditionType) in plain words.
var disruptions = map[string]string{
	evicted:                     "eviction",
	"PreemptionByScheduler":     "preemption",
	"PreemptionByKubeScheduler": "preemption",
	"DeletionByTaintManager":    "node taint",
	"DeletionByPodGC":           "pod garbage collection",
	"TerminationByKubelet":      "kubelet",
}

// evicted is the reason of a pod that was taken away through the Eviction API
// (k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go).
const evicted = "EvictionByEvictionAPI"

// by tells who or what was behind a pod's change, where that is known.
func (m *Model) by(c Cause, pod *podState) string {
	switch c {
	case CausePodTerminating, CausePodTerminal, CausePodGone:
		if pod.by == "" {
			pod.by = m.takenBy(pod)
		}
		return pod.by
	case CausePodReady, CausePodChanged:
		return m.broughtBy(pod)
	}
	return ""
}

func (m *Model) takenBy(pod *podState) string {
	if d := pod.pod.Disruption; d != nil && d.Status {
		// Who drains a node cordons it first and evicts its pods then
		// (k8s.io/kubectl pkg/drain).
		if n := m.nodes[pod.pod.Node]; d.Reason == evicted && n != nil && n.obj != nil && n.obj.Unschedulable {
			return "drain of " + n.name
		}
		if s := disruptions[d.Reason]; s != "" {
			return s
		}
		return d.Reason
	}
	if pod.termAt.IsZero() {
		return ""
	}
	return m.moved(pod, pod.termAt)
}

func (m *Model) broughtBy(pod *podState) string {
	if pod.before.Created.At.IsZero() {
		return "" // it was there before anything was watched
	}
	return m.moved(pod, pod.before.Created.At)
}

// moved tells what its owners were doing at the time that the pod was created
// or told to go.
func (m *Model) moved(pod *podState, at time.Time) string {
	o := pod.pod.Owner
	if o == nil {
		return ""
	}
	rs := m.loads[loadKey{o.Kind, pod.namespace, o.Name}]
	if rs == nil {
		return ""
	}
	if ro := rs.w.Owner; ro != nil {
		if d := m.loads[loadKey{ro.Kind, pod.namespace, ro.Name}]; d != nil {
			what := d.doing(at)
			if hash := m.rolloutName(d); what == "rollout" && hash != "" {
				what += " to " + hash
			}
			return what
		}
	}
	return rs.doing(at)
}

// serviceCause tells what about a Service moved what was wanted of an endpoint.
func serviceCause(old, now *collect.Service, created, deleted bool, pod *podState) Cause {
	switch {
	case created:
		return CauseServiceCreated
	case deleted:
		return CauseServiceDeleted
	case pod != nil && desired.Selects(old, pod.pod.Labels) != desired.Selects(now, pod.pod.Labels):
		return CauseSelectorChanged
	case !slices.Equal(old.Ports, now.Ports):
		return CausePortsChanged
	case old.InternalPolicy != now.InternalPolicy || old.ExternalPolicy != now.ExternalPolicy:
		return CausePolicyChanged
	case old.PublishNotReadyAddresses != now.PublishNotReadyAddresses:
		return CausePublishNotReady
	case old.SessionAffinity != now.SessionAffinity || old.AffinityTimeout != now.AffinityTimeout:
		return CauseAffinityChanged
	}
	return CauseServiceChanged
}
