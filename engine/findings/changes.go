package findings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	preStopShort = code(Code{
		ID: "KC501", Severity: Warning, Title: "pods stop before all nodes have let go of them",
		Means: "Containers ended while some node still sent new connections there: lost requests at each rollout (kubernetes/kubernetes 43576). Nothing waits for the nodes but a preStop.",
		Seen:  "Within 15 min removals by a pod's termination where the time from the observed exit of its containers to the last node that let go is over 0 even at its least (interval and error taken off).",
		Do:    "Give the containers a preStop sleep at least as long as the finding says, and a terminationGracePeriodSeconds that holds it and the shutdown.",
	})
	flaps = code(Code{
		ID: "KC502", Severity: Warning, Title: "pods flap between ready and unready",
		Means: "A pod turns unready and ready again and again; each time all slices and all nodes are written.",
		Seen:  "A pod that is not on its way out turned unready 3 times or more within 15 min.",
		Do:    "Give the readiness probe a longer timeoutSeconds or failureThreshold, or find out why the container does not answer in time.",
	})
	minReadySlow = code(Code{
		ID: "KC503", Severity: Info, Title: "minReadySeconds slows the rollout",
		Means: "Pods are ready and get connections, but count as available only after minReadySeconds, and the rollout waits for that.",
		Seen:  "A workload that is not settled has minReadySeconds and fewer available than ready replicas.",
		Do:    "Nothing, if that is meant; else lower spec.minReadySeconds.",
	})
	longTogether = code(Code{
		ID: "KC504", Severity: Warning, Title: "old and new pods answer side by side for long",
		Means: "Nodes send connections to two or more revisions of a workload at once for minutes: clients see both.",
		Seen:  "Within 15 min an interval of over 5 min in which a node that is seen routed to endpoints of two revisions.",
		Do:    "Speed up readiness, raise maxSurge, or switch by a selector (blue and green) if the revisions must not mix.",
	})
	probeSlow = code(Code{
		ID: "KC505", Severity: Info, Title: "the readiness probe's period takes most of the time",
		Means: "From the start of its containers to the last node, most of the time passes before the pod is ready, and about as much as the probe's period: the kubelet asks that seldom.",
		Seen:  "Within 15 min, for at least 2 pods that became ready for the first time: the time from start to ready is at least 5 s, at most the probe's period x successThreshold plus 2 s, and over 3 times what came after; the period is 5 s or more, and no probe is known to have failed.",
		Do:    "Use a shorter periodSeconds (1 or 2 s) or a startupProbe; it costs little.",
	})
	officialAbsurd = code(Code{
		ID: "KC506", Severity: Info, Title: "the official metric says something absurd",
		Means: "kube-proxy's network_programming_duration_seconds got a number that has nothing to do with how long the nodes took: the trigger time of the slice was that of something long ago, such as when an old pod became ready that is selected now.",
		Seen:  "Within 15 min an arrival whose official number is over 60 s and over 10 times the measured lag.",
		Do:    "Nothing: go by the measured lag. Alerts on the official metric will see it.",
	})
	officialMissing = code(Code{
		ID: "KC507", Severity: Info, Title: "the official metric misses changes",
		Means: "kube-proxy put no number into network_programming_duration_seconds for some changes, and often for the bad ones: a failed sync, a retried write and a deletion lose the trigger time (kubernetes/kubernetes 81360, 74294, 82378, 100861).",
		Seen:  "Within 15 min arrivals in nodes' rules without an official number, in a Service that has others with one. Changes that no slice took part in are left out.",
		Do:    "Nothing: go by the measured lag.",
	})
	wrongPod = code(Code{
		ID: "KC508", Severity: Error, Title: "connections went to the wrong pod",
		Means: "A pod's address was given to another pod while nodes still had it as the first one's endpoint: connections meant for one reached the other (kubernetes/kubernetes 109414).",
		Seen:  "Within 15 min a removal during which a new pod was seen with the address before the last node let go, or a slice said whose it is.",
		Do:    "Find out why the removal came late (the path shows each hop); a larger address range per node makes re-use rarer.",
	})
)

// preStop judges removals that came after the pod's end.
func (j *judge) preStop() {
	paths := j.recentPaths()
	if len(paths) == 0 {
		return
	}
	var worst time.Duration
	n, path := 0, ""
	var at time.Time
	for _, p := range paths {
		r := &p.Risk
		if p.Op != timeline.OpRemove || p.Cause != timeline.CausePodTerminating || r.FromExit == nil || r.FromTermination == nil {
			continue
		}
		if least := *r.FromExit - r.Width - r.Error; least <= 0 {
			continue
		}
		n++
		if *r.FromExit > worst {
			worst, path = *r.FromExit, p.ID
		}
		if at.IsZero() {
			at = p.Origin.At
		}
	}
	if n == 0 {
		return
	}
	a := j.svc.Advice(paths)
	more := ""
	if a.Worst.Growing {
		more = "more than "
	}
	j.report(Finding{Code: preStopShort, Object: "Service " + j.name(), Since: at, Namespace: j.svc.Namespace, Service: j.svc.Name, Path: path,
		Message: fmt.Sprintf("%s still routed to after the containers had ended, for up to %s; of %s the last node let go %s%s after the termination began", plural(n, "removal")+map[bool]string{true: " was", false: " were"}[n == 1],
			age(worst), plural(a.N, "removal"), more, age(a.Worst.D)),
		Fix: fmt.Sprintf("give the containers a preStop of %s%s (lifecycle.preStop.sleep.seconds: %d) and a grace period that holds it", more, age(a.Worst.Needed()), int((a.Worst.Needed()+time.Second-1)/time.Second))})
}

// flapping judges pods that turn unready again and again.
func (j *judge) flapping() {
	const often = 3
	var who []string
	most := 0
	var first time.Time
	for i := range j.svc.Pods {
		t := &j.svc.Pods[i]
		n := 0
		var at time.Time
		for _, c := range t.Changes {
			switch {
			case c.Phase == timeline.PodTerminating || c.Phase == timeline.PodGone:
			case c.Phase == timeline.PodUnready && !c.Claimed && j.s.Now.Sub(c.At) <= recent:
				if n++; n == 1 {
					at = c.At
				}
			}
		}
		last, _ := t.At(j.s.Now)
		if n < often || last.Phase == timeline.PodGone || last.Phase == timeline.PodTerminating || last.Phase == timeline.PodStopped {
			continue
		}
		who = append(who, t.Name)
		most = max(most, n)
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if len(who) == 0 {
		return
	}
	why := ""
	for _, p := range j.recentPaths() {
		if p.Cause == timeline.CausePodUnready && p.By != "" && slices.Contains(who, p.Endpoint.Pod) {
			why = " (" + p.By + ")"
		}
	}
	j.add(flaps, first, fmt.Sprintf("%s turned unready up to %d times within 15 min%s: %s", plural(len(who), "pod"), most, why, names(who)),
		"give the readiness probe a longer timeoutSeconds or failureThreshold, or see why it is not answered: "+j.kubectl("describe pod %s", shell(slices.Min(who))))
}

// minReady judges rollouts that wait for pods to have been ready for long.
func (j *judge) minReady() {
	for _, w := range j.svc.Workloads {
		if w.Settled || w.MinReady <= 0 || w.Available >= w.Ready {
			continue
		}
		j.add(minReadySlow, time.Time{}, fmt.Sprintf("%s %s waits: %d of %s %s not yet counted as available, since minReadySeconds is %d", w.Kind, w.Name,
			w.Ready-w.Available, plural(int(w.Ready), "ready pod"), isAre(int(w.Ready-w.Available)), int(w.MinReady.Seconds())),
			"nothing to do if that is meant; else lower it: "+j.kubectl("edit %s %s", strings.ToLower(shell(w.Kind)), shell(w.Name)))
	}
}

// together judges revisions that answer side by side.
func (j *judge) together() {
	const long = 5 * time.Minute
	for _, t := range j.svc.Together(j.s.Now.Add(-recent), j.s.Now) {
		d := t.Length(j.s.Now)
		if d-2*t.Error <= long {
			continue
		}
		still := ""
		if t.To.IsZero() {
			still = " and still are"
		}
		j.add(longTogether, t.From, fmt.Sprintf("revisions %s of %s were routed to side by side for %s%s", strings.Join(t.Revisions, " and "), t.Workload, age(d), still),
			"speed up readiness or raise maxSurge; if they must not mix, switch by a selector")
	}
}

// probePeriod judges how long pods waited for their probe.
func (j *judge) probePeriod() {
	var waits, rests []time.Duration
	period, path := time.Duration(0), ""
	var at time.Time
	for _, p := range j.recentPaths() {
		b := &p.Before
		if p.Op != timeline.OpAdd || p.Cause != timeline.CausePodReady || p.Status != timeline.StatusArrived || len(b.Probes) > 0 || b.Started.Claimed.IsZero() || b.Ready.Claimed.IsZero() {
			continue
		}
		if r := j.periodOf(p.Endpoint.UID); r < 5*time.Second || b.Ready.Claimed.Sub(b.Started.Claimed) > r+2*time.Second {
			continue
		} else {
			period = r
		}
		wait, rest := b.Ready.Claimed.Sub(b.Started.Claimed), p.End().Sub(p.Origin.At)
		if wait < 5*time.Second || wait <= 3*rest {
			continue
		}
		waits, rests = append(waits, wait), append(rests, rest)
		if path == "" {
			path, at = p.ID, p.Origin.At
		}
	}
	if len(waits) < 2 {
		return
	}
	j.report(Finding{Code: probeSlow, Object: "Service " + j.name(), Since: at, Namespace: j.svc.Namespace, Service: j.svc.Name, Path: path,
		Message: fmt.Sprintf("%s took %s (median) from container start to ready, with a probe every %s, and %s from there to the last node", plural(len(waits), "pod"), age(median(waits)), age(period), age(median(rests))),
		Fix:     "ask more often: readinessProbe.periodSeconds: 1 or 2"})
}

// periodOf is how often a pod's slowest readiness probe may say yes; 0 without one.
func (j *judge) periodOf(uid string) time.Duration {
	for i := range j.svc.Facts.Pods {
		if p := &j.svc.Facts.Pods[i]; p.UID == uid {
			return p.Pod.ReadinessPeriod * time.Duration(max(1, p.Pod.ReadinessSuccessThreshold))
		}
	}
	return 0
}

// official compares kube-proxy's own metric with what was measured.
func (j *judge) official() {
	var absurd, measured time.Duration
	path, with := "", 0
	var at time.Time
	paths := j.recentPaths()
	if len(paths) == 0 {
		return
	}
	why := map[string]int{}
	total := 0
	for _, p := range paths {
		for i := range p.Rules {
			h := &p.Rules[i]
			if h.Status != timeline.StatusArrived {
				continue
			}
			if h.Official == nil {
				if h.OfficialWhy != "" && !strings.HasPrefix(h.OfficialWhy, "no slice changed") {
					why[h.OfficialWhy]++
					total++
				}
				continue
			}
			with++
			total++
			if o := *h.Official; o-h.Width() > time.Minute && o-h.Width() > 10*h.Lag && o > absurd {
				absurd, measured, path, at = o, h.Lag, p.ID, p.Origin.At
			}
		}
	}
	if path != "" {
		j.report(Finding{Code: officialAbsurd, Object: "Service " + j.name(), Since: at, Namespace: j.svc.Namespace, Service: j.svc.Name, Path: path,
			Message: fmt.Sprintf("kube-proxy's metric got %s for a change that took %s", age(absurd), age(measured)), Fix: "go by the measured lag: kube-proxy counts from a trigger time of long ago"})
	}
	if len(why) == 0 || with == 0 {
		return
	}
	n, most := 0, ""
	for text, k := range why {
		if n += k; most == "" || k > why[most] || k == why[most] && text < most {
			most = text
		}
	}
	j.add(officialMissing, time.Time{}, fmt.Sprintf("kube-proxy's metric has nothing of %d of %s in nodes' rules, mostly because %s", n, plural(total, "arrival"), most),
		"go by the measured lag")
}

// doubt is how long something must be that lies between what two watches told.
func (j *judge) doubt(p *timeline.Path) time.Duration {
	d := 20*time.Millisecond + j.s.MaxInversion
	if p.Slice != nil {
		d += p.Slice.Error
	}
	return d
}

// wrongPod judges addresses that were another pod's already.
func (j *judge) wrongPod() {
	for _, p := range j.recentPaths() {
		if p.Risk.WrongPod <= j.doubt(p) {
			continue
		}
		howLong := age(p.Risk.WrongPod)
		if p.Risk.WrongPodGrowing {
			howLong += " so far"
		}
		j.report(Finding{Code: wrongPod, Object: "Service " + j.name(), Since: p.Origin.At, Namespace: j.svc.Namespace, Service: j.svc.Name, Path: p.ID,
			Message: fmt.Sprintf("address %s of pod %s was another pod's already while nodes routed to it: for %s", p.Endpoint.IP, p.Endpoint.Pod, howLong),
			Fix:     "see which hop of the removal was late: it is path " + p.ID})
	}
}
