package cluster_test

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/timeline"
)

// second is how exact the times are that the API writes (metav1.Time).
const second = time.Second

// witness keeps what a kubelet said about the pods of web: every version of their
// status, by a watch of its own, and the Events.
type witness struct {
	mu   sync.Mutex
	pods map[types.UID]*told
}

// told is what was said of one pod.
type told struct {
	name      string
	started   time.Time   // as the kubelet claims, in whole seconds, as are the next three
	ready     []time.Time // each time that it became so
	unready   []time.Time // after it was ready
	requested time.Time   // its deletion
	readySeen []time.Time // when the watch brought what ready says
	events    map[string][]time.Time
}

func (w *world) kubeletSays() *witness {
	w.Helper()
	k := &witness{pods: map[types.UID]*told{}}
	watch, err := w.client.CoreV1().Pods("default").Watch(w.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	w.must(err)
	w.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				k.take(p, time.Now())
			}
		}
	}()
	return k
}

func (k *witness) take(p *corev1.Pod, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.pods[p.UID]
	if t == nil {
		t = &told{name: p.Name, events: map[string][]time.Time{}}
		k.pods[p.UID] = t
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil {
			t.started = c.State.Running.StartedAt.Time
		}
	}
	for _, c := range p.Status.Conditions {
		at := c.LastTransitionTime.Time
		switch {
		case c.Type != corev1.PodReady:
		case c.Status == corev1.ConditionTrue && len(t.ready) == len(t.unready):
			t.ready, t.readySeen = append(t.ready, at), append(t.readySeen, now)
		case c.Status == corev1.ConditionFalse && len(t.ready) > len(t.unready):
			t.unready = append(t.unready, at)
		}
	}
	if d := p.DeletionTimestamp; d != nil && t.requested.IsZero() {
		t.requested = d.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
}

// events adds the Events that the kubelet has written.
func (k *witness) events(w *world) {
	w.Helper()
	list, err := w.client.CoreV1().Events("default").List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,source=kubelet"})
	w.must(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range list.Items {
		if t := k.pods[e.InvolvedObject.UID]; t != nil {
			t.events[e.Reason] = append(t.events[e.Reason], e.FirstTimestamp.Time, e.LastTimestamp.Time)
		}
	}
}

// agrees compares every path of a pod that became ready, or unready, or was deleted,
// with what the kubelet said. Everything runs by one clock, so that nothing may be seen
// before the second in which it is said to have happened. It returns how many
// paths there were of each cause, and how far apart two watches saw them.
func (k *witness) agrees(w *world, s *timeline.Snapshot) (n map[timeline.Cause]int, apart []time.Duration) {
	w.Helper()
	k.events(w)
	k.mu.Lock()
	defer k.mu.Unlock()
	n = map[timeline.Cause]int{}
	for _, p := range s.Service("default", "web").Paths {
		t := k.pods[types.UID(p.Endpoint.UID)]
		if t == nil {
			continue
		}
		switch {
		case p.Op == timeline.OpAdd && p.Cause == timeline.CausePodReady:
			if i := slices.IndexFunc(t.ready, p.Origin.Claimed.Equal); i < 0 {
				w.Errorf("%s: ready, says the kubelet, at %s; the path's origin is %+v", t.name, t.ready, p.Origin)
			} else {
				apart = append(apart, p.Origin.At.Sub(t.readySeen[i]).Abs())
			}
			k.rose(w, p, t)
		case p.Op == timeline.OpRemove && p.Cause == timeline.CausePodUnready:
			k.sank(w, p, t)
		case p.Op == timeline.OpRemove && p.Cause == timeline.CausePodTerminating:
			k.went(w, p, t)
		default:
			continue
		}
		n[p.Cause]++
		hops := slices.Clone(p.Rules)
		if p.Slice != nil {
			hops = append(hops, *p.Slice)
		}
		for _, h := range hops {
			if h.Status != timeline.StatusArrived || h.At.Before(p.Origin.Claimed) {
				w.Errorf("%s: %s has %s at %s, because of what was at %s", t.name, h.Plane, h.Status, h.At, p.Origin.Claimed)
			}
		}
		if p.Origin.At.Before(p.Origin.Claimed) || len(hops) != 1+len(w.cluster.Nodes()) {
			w.Errorf("%s: %d planes followed %+v", t.name, len(hops), p.Origin)
		}
	}
	return n, apart
}

// rose compares a pod that became ready: it started, was probed in vain, was ready,
// in this order.
func (k *witness) rose(w *world, p *timeline.Path, t *told) {
	w.Helper()
	if !p.Before.Started.Claimed.Equal(t.started) || p.Before.Started.At.Before(t.started) {
		w.Errorf("%s: the kubelet says started at %s; the path %+v", t.name, t.started, p.Before.Started)
	}
	started, unhealthy := t.events["Started"], t.events["Unhealthy"]
	if len(started) == 0 || len(unhealthy) == 0 {
		w.Errorf("%s: the kubelet's events are %v", t.name, t.events)
		return
	}
	if started[0].Before(t.started.Add(-second)) || started[0].After(p.Origin.At) {
		w.Errorf("%s: started at %s, the event says %s, and ready at %s", t.name, t.started, started[0], p.Origin.At)
	}
	if first := slices.MinFunc(unhealthy, time.Time.Compare); first.Before(t.started.Add(-second)) || first.After(p.Origin.At) {
		w.Errorf("%s: started at %s, ready at %s, and its first probe in vain was at %s", t.name, t.started, p.Origin.At, first)
	}
}

// sank compares a pod that became unready: a probe in vain came before that.
func (k *witness) sank(w *world, p *timeline.Path, t *told) {
	w.Helper()
	if !slices.ContainsFunc(t.unready, p.Origin.Claimed.Equal) {
		w.Errorf("%s: unready, says the kubelet, at %s; the path's origin is %+v", t.name, t.unready, p.Origin)
	}
	var before time.Time // it was ready last
	for _, r := range t.ready {
		if !r.After(p.Origin.Claimed) {
			before = r
		}
	}
	if !slices.ContainsFunc(t.events["Unhealthy"], func(e time.Time) bool { return !e.Before(before) && !e.After(p.Origin.At) }) {
		w.Errorf("%s: ready at %s, unready at %s, and in vain were the probes of %s", t.name, before, p.Origin.At, t.events["Unhealthy"])
	}
}

// went compares a pod that was deleted: the kubelet killed it after the request.
func (k *witness) went(w *world, p *timeline.Path, t *told) {
	w.Helper()
	if !p.Origin.Claimed.Equal(t.requested) || p.Origin.At.Before(t.requested) {
		w.Errorf("%s: its deletion was asked for at %s, the path's origin is %+v", t.name, t.requested, p.Origin)
	}
	killed := t.events["Killing"]
	if len(killed) == 0 || killed[0].Before(t.requested.Add(-second)) {
		w.Errorf("%s: its deletion was asked for at %s, the kubelet's events are %v", t.name, t.requested, t.events)
	}
}
