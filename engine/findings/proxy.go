package findings

import (
	"fmt"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	syncFails = code(Code{
		ID: "KC310", Severity: Warning, Title: "syncs of a node's rules fail",
		Means: "kube-proxy could not write its rules: another program holds the lock, the kernel refused. It tries again within 30 s, and drops the trigger times it had, so that the official metric hears nothing of what comes late (kubernetes/kubernetes 48107, 71706, 112604, 122604).",
		Seen:  "kube-proxy's counters of failed syncs rose, or a step of the node's own sync failed, within 10 min.",
		Do:    "Read kube-proxy's log on that node; look for other programs that write the same tables.",
	})
	proxyUnhealthy = code(Code{
		ID: "KC311", Severity: Error, Title: "a node's kube-proxy says that it is not healthy",
		Means: "kube-proxy's health port answers with an error: it was asked to sync and has not done so for a long time, or the node is being deleted. Cloud load balancers that ask it send no more connections to the node.",
		Seen:  "The health port (10256) of the node's kube-proxy answered with something else than 200.",
		Do:    "Read kube-proxy's log on that node.",
	})
	proxyHangs = code(Code{
		ID: "KC312", Severity: Error, Title: "a node's kube-proxy was asked to sync and has not",
		Means: "Changes wait in kube-proxy, and no sync has ended since they came: a sync hangs, takes minutes, or fails over and over.",
		Seen:  "By kube-proxy's metrics the last sync was asked for after the last one that ended, more than 60 s ago.",
		Do:    "Read kube-proxy's log on that node; restart it if it does not move.",
	})
	syncsSlow = code(Code{
		ID: "KC313", Severity: Warning, Title: "syncs of a node's rules take long",
		Means: "Writing the rules takes many seconds, and everything that changes meanwhile waits (kubernetes/kubernetes 135639, 139513: minutes at 5,000 to 44,000 Services).",
		Seen:  "The mean of kubeproxy_sync_proxy_rules_duration_seconds since kube-proxy started is over 5 s, over at least 5 syncs.",
		Do:    "Use a newer kube-proxy (partial syncs), nftables mode, or fewer Services and ports.",
	})
	nodeSlow = code(Code{
		ID: "KC314", Severity: Warning, Title: "a node follows more slowly than the others",
		Means: "The node's rules come right, but clearly later than those of the other nodes: little CPU, a large table, a slow watch.",
		Seen:  "Over at least 5 changes within 15 min the node's median time from the slice to its rules is over 2 s and over 3 times the median of the other nodes' medians (of at least 2 others).",
		Do:    "Look at the node's load and at kube-proxy's CPU limits there.",
	})
)

const (
	failuresCount = 10 * time.Minute
	hangsFor      = time.Minute
	slowSync      = 5 * time.Second
	slowNode      = 2 * time.Second
	leastSamples  = 5
)

// judgeNodes reports what is wrong with nodes.
func (w *world) judgeNodes() {
	w.judgeLate()
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		if !n.Exists {
			continue
		}
		w.judgeUnknown(n)
		w.judgeProxy(n)
		w.judgeClock(n)
	}
	w.judgeSlow()
}

// proxyTrouble tells what a node's kube-proxy says is wrong with it, "" for nothing.
func (w *world) proxyTrouble(n *timeline.Node) string {
	switch {
	case n == nil:
		return ""
	case n.Proxy != nil && n.Proxy.Healthy != nil && !*n.Proxy.Healthy:
		return "its kube-proxy says that it is not healthy"
	case w.hangs(n):
		return "its kube-proxy was asked to sync and has not since " + n.Proxy.LastSync.UTC().Format(time.TimeOnly) + " UTC"
	case w.failed(n):
		return "its syncs fail"
	}
	return ""
}

func (w *world) failed(n *timeline.Node) bool {
	return !n.SyncFailed.IsZero() && w.s.Now.Sub(n.SyncFailed) <= failuresCount
}

// hangs goes by kube-proxy's own clock, and by what the agent has told since.
func (w *world) hangs(n *timeline.Node) bool {
	p := n.Proxy
	if p == nil || !p.Reachable || p.LastQueued.IsZero() || !p.LastQueued.After(p.LastSync) {
		return false
	}
	heard := w.heard(collect.AgentSource(n.Name))
	return heard.Sub(p.LastQueued.Add(n.Clock.Offset)) > hangsFor
}

func (w *world) judgeProxy(n *timeline.Node) {
	add := func(c *Code, since time.Time, msg, fix string) {
		w.report(Finding{Code: c, Object: "Node " + n.Name, Node: n.Name, Since: since, Message: msg, Fix: fix})
	}
	log := "read the log of its kube-proxy, which this finds: kubectl -n kube-system get pods -l k8s-app=kube-proxy --field-selector spec.nodeName=" + shell(n.Name)
	if w.failed(n) {
		msg := "a sync of its rules failed at " + n.SyncFailed.UTC().Format(time.TimeOnly) + " UTC"
		if why := w.lastFailure(n.Name); why != "" {
			msg += ": " + why
		}
		if p := n.Proxy; p != nil && p.SyncFailures > 0 {
			msg += fmt.Sprintf(" (%s since its kube-proxy started)", plural(int(min(p.SyncFailures, 1<<31)), "failure"))
		}
		add(syncFails, n.SyncFailed, msg, log)
	}
	p := n.Proxy
	if p == nil {
		return
	}
	if p.Healthy != nil && !*p.Healthy {
		add(proxyUnhealthy, time.Time{}, "its kube-proxy answers at the health port that it is not healthy", log)
	}
	if w.hangs(n) {
		add(proxyHangs, p.LastQueued.Add(n.Clock.Offset), fmt.Sprintf("its kube-proxy was asked to sync at %s UTC and has not synced since %s UTC (%d changes of endpoints and %d of Services wait)",
			p.LastQueued.UTC().Format(time.TimeOnly), p.LastSync.UTC().Format(time.TimeOnly), p.PendingEndpoints, p.PendingServices), "restart it: "+restartProxy(n.Name))
	}
	if p.SyncCount >= leastSamples {
		if mean := time.Duration(p.SyncSeconds / float64(p.SyncCount) * float64(time.Second)); mean > slowSync {
			add(syncsSlow, time.Time{}, fmt.Sprintf("its kube-proxy's syncs take %s on average, over %d since %s", age(mean), p.SyncCount, p.Started.UTC().Format("2006-01-02 15:04 UTC")),
				"use a newer kube-proxy, nftables mode, or fewer Services")
		}
	}
}

// lastFailure is what the node's own sync said when it last failed.
func (w *world) lastFailure(node string) string {
	out := ""
	for _, m := range w.s.Marks {
		if st, ok := m.Step.(*collect.SyncStep); ok && st.Node == node && st.Step == "failed" {
			out = st.Detail
		}
	}
	return out
}

// judgeSlow compares the nodes by how long they took to follow slices.
func (w *world) judgeSlow() {
	took := map[string][]time.Duration{}
	for _, svc := range w.kept {
		for _, p := range svc.PathsFrom(w.s.Now.Add(-recent), w.s.Now) {
			if p.Slice == nil || p.Slice.Status != timeline.StatusArrived {
				continue
			}
			for i := range p.Rules {
				// What is only known as an interval says little.
				if h := &p.Rules[i]; h.Status == timeline.StatusArrived && h.Width() == 0 {
					took[h.Plane.Node] = append(took[h.Plane.Node], h.At.Sub(p.Slice.At))
				}
			}
		}
	}
	medians := map[string]time.Duration{}
	for node, list := range took {
		if len(list) >= leastSamples {
			medians[node] = median(list)
		}
	}
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		mine, ok := medians[n.Name]
		if !ok || !n.Exists || mine <= slowNode {
			continue
		}
		var others []time.Duration
		for node, d := range medians {
			if node != n.Name {
				others = append(others, d)
			}
		}
		if len(others) < 2 {
			continue
		}
		if usual := median(others); mine > 3*usual {
			w.report(Finding{Code: nodeSlow, Object: "Node " + n.Name, Node: n.Name,
				Message: fmt.Sprintf("its rules follow a slice %s after it (median of %d), those of the other nodes after %s", age(mine), len(took[n.Name]), age(usual)),
				Fix:     "look at the node's load and at kube-proxy's CPU limits: kubectl top node " + shell(n.Name)})
		}
	}
}

// median is the lower one of the two in the middle.
func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)/2]
}
