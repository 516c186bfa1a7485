package findings

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	routedToStopped = code(Code{
		ID: "KC301", Severity: Error, Title: "nodes send connections to a pod that has stopped",
		Means: "A node's rules still have an endpoint whose containers have ended (or whose pod is gone). New connections that are sent there fail now.",
		Seen:  "A node that is seen has an endpoint that the slices no longer want, its pod stopped more than 3 s ago, and the node's source has vouched for that.",
		Do:    "If it goes on, look at kube-proxy on the node (KC302, KC310). If it happens at each rollout, the preStop is too short (KC501).",
	})
	nodeBehind = code(Code{
		ID: "KC302", Severity: Error, Title: "a node's rules are behind those of the others",
		Means: "The node routes otherwise than the slices say, while most other nodes agree with them: its kube-proxy hangs, fails, is slow, or hears nothing (kubernetes/kubernetes 76338, 71706, 48107, 139328).",
		Seen:  "A difference in the node's rules is older than the budget of rules (10 s) by the word of the node's own source, and at most half of the nodes that are seen have one.",
		Do:    "Look at kube-proxy on that node: its log, its metrics at 127.0.0.1:10249, and restart it. A watch that hangs looks healthy.",
	})
	nodesBehind = code(Code{
		ID: "KC303", Severity: Error, Title: "most nodes' rules do not follow the slices",
		Means: "More than half of the nodes route otherwise than the slices say. That is rarely each node's own trouble: very large rule sets, an API server that delivers nothing, or a change of all kube-proxies.",
		Seen:  "As KC302, on more than half of the nodes that are seen.",
		Do:    "Look at how long syncs take (KC313), at the API server, and at what was rolled out to the nodes.",
	})
	unexpectedRules = code(Code{
		ID: "KC304", Severity: Error, Title: "rules lead to addresses that no slice has had",
		Means: "A node's rules for the Service have an address that was in none of its slices, as far as they were seen: somebody or something else writes rules, or the slices were changed before the watch began.",
		Seen:  "An endpoint in the rules that was never wanted there, for longer than the budget of rules (10 s).",
		Do:    "Find out who writes the table; a restart of kube-proxy writes all its rules anew.",
	})
	unknownRules = code(Code{
		ID: "KC305", Severity: Warning, Title: "rules belong to no Service",
		Means: "The node has Service rules that cannot be tied to a Service that exists: left over from one that is gone, or of a kind that is not known.",
		Seen:  "The decoder of the node's rules lists them, all Services have been listed, and the newest of it is 10 s old (as far as its age is known).",
		Do:    "A restart of kube-proxy cleans up what is its own.",
	})
)

// stoppedFor is how long an endpoint must have been dead and routed to: the usual
// sync comes within 1 s of the last, and what is told takes a while.
const stoppedFor = 3 * time.Second

// stoppedButRouted judges endpoints that are routed to and cannot answer.
func (j *judge) stoppedButRouted() {
	var nodes, who []string
	var since time.Time
	var longest time.Duration
	for i := range j.svc.Differences {
		d := &j.svc.Differences[i]
		if d.Plane.Kind != timeline.PlaneRules || d.Stopped.IsZero() || !slices.Contains(j.svc.Coverage.Seen, d.Plane.Node) {
			continue
		}
		from := d.Stopped
		if d.Since.After(from) {
			from = d.Since
		}
		a := j.heardOf(d.Plane).Sub(from)
		if a < stoppedFor {
			continue
		}
		nodes, who = append(nodes, d.Plane.Node), append(who, endpointName(&d.Endpoint)+" ("+d.Endpoint.IP.String()+")")
		longest = max(longest, a)
		if since.IsZero() || from.Before(since) {
			since = from
		}
	}
	if len(nodes) == 0 {
		return
	}
	n := len(slices.Compact(slices.Sorted(slices.Values(nodes))))
	j.report(Finding{Code: routedToStopped, Object: "Service " + j.name(), Since: since, Namespace: j.svc.Namespace, Service: j.svc.Name, Node: nodes[0],
		Message: fmt.Sprintf("%s still %s connections to %s, stopped for %s: %s", plural(n, "node"), verb(n, "send"), names(who), age(longest), names(nodes)),
		Fix:     "look at kube-proxy on " + nodes[0] + ", and restart it: " + restartProxy(nodes[0])})
}

func restartProxy(node string) string {
	return "kubectl -n kube-system delete pod -l k8s-app=kube-proxy --field-selector spec.nodeName=" + shell(node)
}

// behind gives, for each node, what has outgrown its budget there. Rules that are
// merely there without having been wanted are for another code.
func (j *judge) behind() map[string]overdue {
	if !j.told(collect.SourceEndpointSlices) {
		return nil
	}
	all := j.overdue(func(d *timeline.Difference) bool {
		return d.Plane.Kind == timeline.PlaneRules && d.Kind != "unexpected"
	})
	if all.n == 0 {
		return nil
	}
	out := map[string]overdue{}
	for node := range all.nodes {
		out[node] = j.overdue(func(d *timeline.Difference) bool {
			return d.Plane.Kind == timeline.PlaneRules && d.Plane.Node == node && d.Kind != "unexpected"
		})
	}
	return out
}

// mostNodes judges a Service that more than half of the nodes are behind for.
func (j *judge) mostNodes() {
	late := j.behind()
	seen := len(j.svc.Coverage.Seen)
	if len(late) == 0 {
		return
	}
	if 2*len(late) <= seen {
		for node, t := range late {
			j.world.late(node, j.svc, t)
		}
		return
	}
	var since time.Time
	var longest time.Duration
	for _, t := range late {
		if since.IsZero() || t.since.Before(since) {
			since = t.since
		}
		longest = max(longest, t.age)
	}
	nodes := slices.Collect(maps.Keys(late))
	j.add(nodesBehind, since, fmt.Sprintf("the rules of %d of %s differ from what the slices say, the oldest for %s: %s", len(late), plural(seen, "node"), age(longest), names(nodes)),
		"look at kube-proxy's metrics (sync durations, failures) and at the API server: kubectl get --raw /readyz?verbose")
}

// lateNode is what is behind on one node, over all Services.
type lateNode struct {
	services []*timeline.Service
	n        int
	since    time.Time
	age      time.Duration
	text     string // of the first Service
}

func (w *world) late(node string, svc *timeline.Service, t overdue) {
	if w.lateNodes == nil {
		w.lateNodes = map[string]*lateNode{}
	}
	l := w.lateNodes[node]
	if l == nil {
		l = &lateNode{text: t.text()}
		w.lateNodes[node] = l
	}
	l.services = append(l.services, svc)
	l.n += t.n
	if l.since.IsZero() || t.since.Before(l.since) {
		l.since = t.since
	}
	l.age = max(l.age, t.age)
}

// judgeLate reports the nodes that are behind the others.
func (w *world) judgeLate() {
	for _, node := range slices.Sorted(maps.Keys(w.lateNodes)) {
		l := w.lateNodes[node]
		first := l.services[0]
		var of []string
		for _, svc := range l.services {
			of = append(of, svc.Namespace+"/"+svc.Name)
		}
		msg := "for " + of[0] + " it " + l.text
		if len(of) > 1 {
			msg = fmt.Sprintf("its rules differ from what the slices say for %s (%s), the oldest for %s", plural(len(of), "Service"), names(of), age(l.age))
		}
		if n := len(first.Coverage.Seen) - 1; n == 1 {
			msg += ", while the other node agrees"
		} else {
			msg += fmt.Sprintf(", unlike most of the other %d nodes", n)
		}
		if why := w.proxyTrouble(w.nodes[node]); why != "" {
			msg += "; " + why
		}
		w.report(Finding{Code: nodeBehind, Object: "Node " + node, Since: l.since, Node: node, Namespace: first.Namespace, Service: first.Name,
			Message: msg, Fix: "look at kube-proxy's log there, and restart it: " + restartProxy(node)})
	}
}

// unexpected judges rules that nothing ever wanted.
func (j *judge) unexpected() {
	if !j.told(collect.SourceEndpointSlices) {
		return
	}
	t := j.overdue(func(d *timeline.Difference) bool {
		return d.Plane.Kind == timeline.PlaneRules && d.Kind == "unexpected"
	})
	if t.n == 0 {
		return
	}
	nodes := slices.Sorted(maps.Keys(t.nodes))
	j.report(Finding{Code: unexpectedRules, Object: "Service " + j.name(), Since: t.since, Namespace: j.svc.Namespace, Service: j.svc.Name, Node: nodes[0],
		Message: fmt.Sprintf("the rules of %s have what no slice had: %s, for %s", names(nodes), names(t.who), age(t.age)),
		Fix:     "find out who wrote them; to have all rules written anew: " + restartProxy(nodes[0])})
}

// judgeUnknown reports rules that are tied to no Service.
func (w *world) judgeUnknown(n *timeline.Node) {
	if len(n.Unknown) == 0 || n.Rules != timeline.Known || !w.told(collect.SourceServices) ||
		w.heard(collect.SourceServices, collect.RulesSource(n.Name)).Sub(n.UnknownSince) < settle {
		return
	}
	w.report(Finding{Code: unknownRules, Object: "Node " + n.Name, Node: n.Name,
		Message: fmt.Sprintf("%s to no Service that exists: %s", plural(len(n.Unknown), "rule")+" "+verb(len(n.Unknown), "belong"), names(n.Unknown)),
		Fix:     "to have kube-proxy clean up what is its own: " + restartProxy(n.Name)})
}
