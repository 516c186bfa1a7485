package timeline

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// podState is one pod, by UID: a pod made anew under the same name is another.
type podState struct {
	namespace, name, uid string
	pod                  *collect.Pod
	gone                 time.Time
	before               Before
	after                *After // nil while nothing of its end was seen
	// taken is when another pod was seen with one of its addresses.
	taken map[addr]time.Time
	// readyBefore is since when, by its own word, it was ready the last time
	// but one.
	readyBefore time.Time
	// termAt is when its deletion was observed to be requested, exitAt since
	// when nothing of it can answer; exitSeen tells that the end was observed
	// and not found.
	termAt, exitAt time.Time
	exitSeen       bool
	wasReady       bool
	by             string // who took it away
	counted        string // UID of the owner under which it counts as terminating
	selecting      []*service
	paths          []*path
	ips            []netip.Addr // all it ever had
	// watchers have or had it as a member.
	watchers []*service
}

// onPod takes a Pod.
func (ch *change) onPod() {
	m, e := ch.m, ch.e
	n := m.ns(e.Object.Namespace)
	p := n.pods[e.Object.Name]
	if p != nil && e.UID != "" && p.uid != e.UID {
		if e.Op == collect.OpDeleted || e.Op == collect.OpGone {
			return // of one that was replaced already
		}
		ch.podChanged(n, p, p.pod, true) // its deletion was not seen
		p = nil
	}
	gone := e.Op == collect.OpDeleted || e.Op == collect.OpGone
	if p == nil {
		if gone {
			return
		}
		p = &podState{namespace: e.Object.Namespace, name: e.Object.Name, uid: e.UID}
		n.pods[p.name] = p
		m.podsByUID[p.uid] = p
	}
	ch.podChanged(n, p, e.Payload.(*collect.Pod), gone)
}

// podChanged takes a pod's new facts, or its end.
func (ch *change) podChanged(n *namespace, p *podState, now *collect.Pod, gone bool) {
	old, was, before := p.pod, p.selecting, p.end()
	ch.observe(p, old, now, gone)
	p.pod = now
	ch.takeAddresses(p, now)
	if gone {
		p.gone = ch.at
		if n.pods[p.name] == p {
			delete(n.pods, p.name)
		}
	}
	var oldLabels, labels map[string]string
	if old != nil {
		oldLabels = old.Labels
	}
	if !gone {
		labels = now.Labels
	}
	n.indexPod(p, oldLabels, labels)
	ch.m.placePod(p, old)
	ch.m.countTerminating(p)
	p.selecting = nil
	if !gone {
		p.selecting = n.selecting(now.Labels)
	}
	if old == nil || gone || len(was) != len(p.selecting) || !maps.Equal(oldLabels, labels) {
		ch.m.relist(n)
	}
	for _, s := range unionServices(was, p.selecting) {
		ch.touch(s)
		selected, wasSelected := slices.Contains(p.selecting, s), slices.Contains(was, s)
		s.setMember(p, selected)
		ch.track(s, p, selected)
		var cause func(*podState, *wantDelta) Cause
		if !ch.baseline {
			cause = func(_ *podState, d *wantDelta) Cause {
				return podCause(old, now, gone, wasSelected, selected, d)
			}
		}
		ch.rewant(s, []*podState{p}, cause)
	}
	for _, s := range p.watchers {
		if !slices.Contains(p.selecting, s) && !slices.Contains(was, s) {
			ch.touch(s)
			ch.track(s, p, false)
		}
		ch.restop(s, p)
	}
	if p.end() == before {
		return
	}
	for _, pa := range p.paths {
		pa.touch() // its risk may be known now
	}
}

// podEnd is what of a pod's end its paths tell of.
type podEnd struct {
	after          After
	termAt, exitAt time.Time
	exitSeen       bool
}

func (p *podState) end() podEnd { return podEnd{p.ending(), p.termAt, p.exitAt, p.exitSeen} }

// observe notes the moments of a pod's life that this event shows.
func (ch *change) observe(p *podState, old, now *collect.Pod, gone bool) {
	seen := !ch.baseline && ch.notBefore.IsZero()
	mark := func(mo *Moment, was, is bool, claimed time.Time) {
		if !is {
			return
		}
		mo.Claimed, mo.ClaimedPrecision = claimed, time.Second
		if seen && !was && mo.At.IsZero() {
			mo.At = ch.at
		}
	}
	sched := func(p *collect.Pod) bool { return p != nil && p.Scheduled != nil && p.Scheduled.Status }
	// Ready counts anew each time: it is the latest that a path starts from.
	if old != nil && !old.IsReady() && now.IsReady() {
		p.readyBefore = p.before.Ready.Claimed
		p.before.Ready = Moment{}
		p.before.Again = p.wasReady
	}
	running := func(p *collect.Pod) bool { return p != nil && p.ContainersReady != nil && p.ContainersReady.Status }
	if old != nil && !running(old) && running(now) {
		p.before.ContainersReady = Moment{}
	}
	inited := func(p *collect.Pod) bool { return p != nil && p.Initialized != nil && p.Initialized.Status }
	var schedAt, initAt, runAt, readyAt time.Time
	if now.Scheduled != nil {
		schedAt = now.Scheduled.Since
	}
	if now.Initialized != nil {
		initAt = now.Initialized.Since
	}
	if now.ContainersReady != nil {
		runAt = now.ContainersReady.Since
	}
	if now.Ready != nil {
		readyAt = now.Ready.Since
	}
	mark(&p.before.Created, old != nil, true, now.Created)
	mark(&p.before.Scheduled, sched(old), sched(now), schedAt)
	mark(&p.before.Initialized, inited(old), inited(now), initAt)
	mark(&p.before.Started, old != nil && !old.Started.IsZero(), !now.Started.IsZero(), now.Started)
	mark(&p.before.ContainersReady, running(old), running(now), runAt)
	mark(&p.before.Ready, old != nil && old.IsReady(), now.IsReady(), readyAt)
	if now.IsReady() {
		p.wasReady = true
	}
	if now.Terminating() && p.termAt.IsZero() && seen && (old == nil || !old.Terminating()) {
		p.termAt = ch.at
	}
	ch.observeEnd(p, old, now, gone)
	ended := gone || now.Terminal() || !now.Stopped.IsZero()
	switch {
	case ended && p.exitAt.IsZero():
		p.exitAt, p.exitSeen = ch.at, seen
	case !ended:
		p.exitAt, p.exitSeen = time.Time{}, false
	}
}

// placePod keeps the index of pods by node.
func (m *Model) placePod(p *podState, old *collect.Pod) {
	was, is := "", ""
	if old != nil {
		was = old.Node
	}
	if p.gone.IsZero() {
		is = p.pod.Node
	}
	if was == is {
		return
	}
	if was != "" {
		delete(m.podsBy[was], p)
	}
	if is != "" {
		if m.podsBy[is] == nil {
			m.podsBy[is] = map[*podState]struct{}{}
		}
		m.podsBy[is][p] = struct{}{}
	}
}

// countTerminating keeps, for each owner, the number of its pods that are on
// their way out but still count as endpoints.
func (m *Model) countTerminating(p *podState) {
	key := ""
	if p.pod.Owner != nil && p.gone.IsZero() && p.pod.Terminating() && !p.pod.Terminal() {
		key = p.pod.Owner.UID
	}
	if key == p.counted {
		return
	}
	if p.counted != "" {
		if m.termingBy[p.counted]--; m.termingBy[p.counted] == 0 {
			delete(m.termingBy, p.counted)
		}
	}
	if p.counted = key; key != "" {
		m.termingBy[key]++
	}
	m.loadsView = nil
}

func (s *service) setMember(p *podState, member bool) {
	if !member {
		delete(s.members, p)
		return
	}
	s.members[p] = struct{}{}
	if !slices.Contains(p.watchers, s) {
		p.watchers = append(p.watchers, s)
	}
}

// restop brings the planes' count of stopped endpoints in line with the pod.
func (ch *change) restop(s *service, p *podState) {
	touched := false
	for _, ip := range p.ips {
		id := EndpointID{UID: p.uid, IP: ip}
		for _, pl := range s.planes() {
			c := pl.find(id)
			if c != nil && c.stopped != (c.class == stale && !p.exitAt.IsZero()) {
				c = pl.cell(id)
				pl.update(c, *c, ch.at)
				touched = true
			}
		}
	}
	if touched {
		ch.touch(s)
	}
}

func unionServices(a, b []*service) []*service {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	sortServices(out)
	return out
}

func comparePods(a, b *podState) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
}
