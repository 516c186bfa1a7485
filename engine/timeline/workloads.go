package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

type loadKey struct{ kind, namespace, name string }

// workload is a Deployment, ReplicaSet, StatefulSet or DaemonSet.
type workload struct {
	key  loadKey
	uid  string
	rv   uint64
	w    *collect.Workload
	move move // what it was last told to do
	// settledAt is since when it is done, zero while it is not.
	settledAt time.Time
}

// move is something a workload was told to do.
type move struct {
	at   time.Time
	what string
}

// onWorkload takes any of them.
func (ch *change) onWorkload() {
	m, e, now := ch.m, ch.e, ch.e.Payload.(*collect.Workload)
	key := loadKey{e.Object.Kind, e.Object.Namespace, e.Object.Name}
	m.loadsView = nil
	old := m.loads[key]
	if e.Op == collect.OpDeleted || e.Op == collect.OpGone {
		delete(m.loads, key)
		delete(m.ns(key.namespace).loads, key)
		ch.dirtyOwned(key.namespace, now)
		if old != nil && old.w.Owner == nil && !ch.baseline {
			ch.toldOn(old, "delete "+key.name)
		}
		return
	}
	w := &workload{key: key, uid: e.UID, rv: e.ResourceVersion, w: now}
	if old != nil && old.uid == w.uid {
		w.move, w.settledAt = old.move, old.settledAt
		if !ch.baseline {
			w.note(old.w, ch.at)
		}
	}
	m.loads[key], m.ns(key.namespace).loads[key] = w, w
	switch {
	case old != nil && old.uid == w.uid:
		ch.toldWorkload(w, old.w)
	default:
		ch.toldWorkload(w, nil)
	}
	settled, _ := m.settled(w)
	switch {
	case !settled:
		w.settledAt = time.Time{}
	case w.settledAt.IsZero():
		w.settledAt = ch.at
	}
	ch.dirtyOwned(key.namespace, now)
}

// rolls reports whether a workload replaces its pods when its template changes.
func (w *workload) rolls() bool { return w.key.kind != "ReplicaSet" }

// scales reports whether its replicas are what people ask for.
func (w *workload) scales() bool { return w.key.kind != "DaemonSet" }

// note keeps what a change of the spec told the workload to do. A new revision
// of a Deployment is announced by its own annotation, which follows the change
// of the template; the name of the new template is the newest ReplicaSet's.
func (w *workload) note(old *collect.Workload, at time.Time) {
	switch {
	case old.Revision != w.w.Revision && old.Revision != "" && w.rolls():
		w.move = move{at, "rollout"}
	case old.Replicas != w.w.Replicas && w.scales():
		w.move = move{at, "scale"}
	}
}

// settleMargin is how long after a workload is done its pods' changes may still
// be put down to what it did: the two come from different watches.
const settleMargin = time.Second

// doing tells what the workload was doing at a time, or "".
func (w *workload) doing(at time.Time) string {
	switch {
	case w.move.at.IsZero() || at.Before(w.move.at.Add(-settleMargin)):
		return ""
	case !w.settledAt.IsZero() && w.settledAt.After(w.move.at) && at.After(w.settledAt.Add(settleMargin)):
		return ""
	}
	return w.move.what
}

// rolloutName gives the template hash of the Deployment's newest ReplicaSet.
func (m *Model) rolloutName(d *workload) string {
	for _, rs := range m.ns(d.key.namespace).loads {
		if o := rs.w.Owner; o != nil && o.UID == d.uid && rs.w.Revision == d.w.Revision {
			return rs.w.TemplateLabels["pod-template-hash"]
		}
	}
	return ""
}

// settled reports whether a workload is done. For a Deployment: what its
// controller saw is what it is told, every replica is of the new template and
// available, and no other is left. For a StatefulSet and a DaemonSet the same,
// but for the pods that the update is to leave alone; a ReplicaSet has no
// updates. Pods that are on
// their way out still count as endpoints, so a workload with such is not done
// either, although its own status no longer counts them.
func (m *Model) settled(w *workload) (ok bool, why string) {
	l := w.w
	deployment := w.key.kind == "Deployment"
	switch {
	case l.Paused && deployment && l.ObservedGeneration >= l.Generation && l.Updated != l.Replicas:
		return false, "paused"
	case l.ObservedGeneration < l.Generation:
		return false, fmt.Sprintf("generation %d not seen by its controller yet", l.Generation)
	case w.rolls() && l.Updated < l.Replicas-l.Partition:
		return false, fmt.Sprintf("%d of %d replicas updated", l.Updated, l.Replicas-l.Partition)
	case l.StatusReplicas > l.Replicas:
		return false, fmt.Sprintf("%d replicas to go", l.StatusReplicas-l.Replicas)
	case l.StatusReplicas < l.Replicas:
		return false, fmt.Sprintf("%d of %d replicas created", l.StatusReplicas, l.Replicas)
	case l.Available != l.Replicas:
		return false, fmt.Sprintf("%d of %d replicas available", l.Available, l.Replicas)
	}
	if n := m.terminatingOf(w); n > 0 {
		return false, fmt.Sprintf("%d pods terminating", n)
	}
	return true, ""
}

// terminatingOf counts the workload's pods that are on their way out.
func (m *Model) terminatingOf(w *workload) int {
	if w.key.kind != "Deployment" {
		return m.termingBy[w.uid]
	}
	if len(m.termingBy) == 0 {
		return 0
	}
	n := 0
	for _, rs := range m.ns(w.key.namespace).loads {
		if rs.w.Owner != nil && rs.w.Owner.UID == w.uid {
			n += m.termingBy[rs.uid]
		}
	}
	return n
}

// dirtyOwned marks the Services that show the workload.
func (ch *change) dirtyOwned(namespace string, w *collect.Workload) {
	n := ch.m.ns(namespace)
	for _, s := range n.selecting(w.TemplateLabels) {
		s.dirty = true
	}
	for _, s := range n.selecting(w.Selector) {
		s.dirty = true
	}
}

func (m *Model) viewOf(w *workload) Workload {
	ok, why := m.settled(w)
	return Workload{Kind: w.key.kind, Name: w.key.name, Replicas: w.w.Replicas, Settled: ok, Why: why, ResourceVersion: w.rv, Ready: w.w.Ready, Available: w.w.Available, MinReady: w.w.MinReady}
}

// workloadViews gives all workloads, keyed "Kind/namespace/name".
func (m *Model) workloadViews() map[string]Workload {
	if m.loadsView == nil {
		m.loadsView = make(map[string]Workload, len(m.loads))
		for k, w := range m.loads {
			m.loadsView[k.kind+"/"+k.namespace+"/"+k.name] = m.viewOf(w)
		}
	}
	return m.loadsView
}

// workloads lists the owners of the Service's pods: those whose pods it would
// select. A ReplicaSet of a Deployment is spoken for by that.
func (s *service) workloads() []Workload {
	var out []Workload
	if s.spec == nil {
		return out
	}
	for _, w := range s.m.ns(s.namespace).loads {
		labels := w.w.TemplateLabels
		if labels == nil {
			labels = w.w.Selector
		}
		if !desired.Selects(s.spec, labels) {
			continue
		}
		if o := w.w.Owner; o != nil && s.m.loads[loadKey{o.Kind, s.namespace, o.Name}] != nil {
			continue
		}
		out = append(out, s.m.viewOf(w))
	}
	slices.SortFunc(out, func(a, b Workload) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}
