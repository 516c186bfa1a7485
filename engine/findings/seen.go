package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	forbidden = code(Code{
		ID: "KC401", Severity: Warning, Title: "something may not be read",
		Means: "The viewer has no right to list or watch something, so that nothing is said about what rests on it.",
		Seen:  "The API server refused a list or a watch, or the logs of agents.",
		Do:    "Ask for the Roles that kconverge info --rbac prints.",
	})
	interrupted = code(Code{
		ID: "KC402", Severity: Warning, Title: "a source does not tell anything now",
		Means: "A watch broke, an agent is silent, or a log cannot be followed. What happens meanwhile is not seen, and what was known may be wrong by now.",
		Seen:  "A gap of the source is open.",
		Do:    "It is tried again by itself; the reason says what is in the way.",
	})
	nodesBlind = code(Code{
		ID: "KC403", Severity: Warning, Title: "some nodes' rules are not read",
		Means: "Nothing reads the rules of nodes that should have some, so that nothing is known of whether they follow.",
		Seen:  "Ready nodes without a source of rules, while others have one.",
		Do:    "See why no agent runs there: a taint, a node selector, a pod that does not start.",
	})
	noAgents = code(Code{
		ID: "KC404", Severity: Warning, Title: "no node's rules are read",
		Means: "No agent runs, so that pods and slices are seen, and not what nodes do with them.",
		Seen:  "No source of rules for any node.",
		Do:    "kconverge agent manifest | kubectl apply -f -",
	})
	otherProxy = code(Code{
		ID: "KC405", Severity: Warning, Title: "something else than kube-proxy routes Services",
		Means: "The node's rules are read, and they do not tell how it routes Services: another program does that (Cilium and others), or kube-proxy in a mode that is not read. Nothing is compared there.",
		Seen:  "The node has none of kube-proxy's rules of a known layout, and rules or interfaces of something else.",
		Do:    "Nothing: slices can be judged, rules cannot.",
	})
	lost = code(Code{
		ID: "KC406", Severity: Warning, Title: "events were lost",
		Means: "More happened than could be taken in; what was lost shows as gaps.",
		Seen:  "A source counted events that it had to drop.",
		Do:    "Observe less (fewer namespaces), or give the viewer more CPU.",
	})
	clockLoose = code(Code{
		ID: "KC408", Severity: Info, Title: "a node's clock is not synchronised",
		Means: "The times of the node's rules are brought to the viewer's clock by what causes and logs allow, and may be further off: each lag says by how much.",
		Seen:  "The node's kernel says that its clock is not disciplined (adjtimex), and it is not the viewer's own.",
		Do:    "Run an NTP or PTP client on the node.",
	})
)

// judgeSources reports what cannot be seen.
func (w *world) judgeSources() {
	blind := map[string]bool{} // nodes whose rules are told of by another code
	elsewhere := map[string][]string{}
	var expected, none []string
	unread := ""
	if c := w.nodeCoverage(); c != nil {
		for _, n := range c.Expected {
			if slices.Contains(c.Seen, n) || w.nodeSettled(n) {
				expected = append(expected, n)
			}
		}
		if len(c.Expected) == 0 && slices.ContainsFunc(w.s.Nodes, func(n timeline.Node) bool { return n.Exists && n.Ready }) {
			unread = c.BlindPlanes[timeline.PlaneID{Kind: timeline.PlaneRules}]
		}
		for _, n := range c.Blind {
			blind[n] = true
			if why := c.BlindWhy[n]; why != "" {
				elsewhere[why] = append(elsewhere[why], n)
			} else if w.nodeSettled(n) {
				none = append(none, n)
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(elsewhere)) {
		n := elsewhere[why]
		w.report(Finding{Code: otherProxy, Object: object("Node", n), Node: n[0],
			Message: "its rules do not tell how Services are routed: " + why, Fix: "nothing to do: slices are judged, these rules are not"})
	}
	switch {
	case unread != "":
		w.report(Finding{Code: noAgents, Object: "Nodes", Message: "the rules of no node are read: " + unread, Fix: "start the agents: kconverge agent manifest | kubectl apply -f -"})
	case len(none) > 0 && len(none) == len(expected):
		w.report(Finding{Code: noAgents, Object: "Nodes", Message: fmt.Sprintf("the rules of none of %s are read%s", plural(len(none), "node"), w.agentsSay()),
			Fix: "start the agents: kconverge agent manifest | kubectl apply -f -"})
	case len(none) > 0:
		w.report(Finding{Code: nodesBlind, Object: object("Node", none), Node: none[0], Message: fmt.Sprintf("the rules of %d of %s are not read: %s%s", len(none), plural(len(expected), "node"), names(none), w.agentsSay()),
			Fix: "see why no agent runs there: kubectl get pods -A -o wide --field-selector spec.nodeName=" + shell(none[0])})
	}
	for i := range w.s.Sources {
		src := &w.s.Sources[i]
		if src.State == collect.SourceForbidden {
			w.report(Finding{Code: forbidden, Object: "Source " + string(src.ID), Message: "may not be read: " + src.Detail, Fix: "ask for the Roles that this prints: kconverge info --rbac"})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.gaps)) {
		g := w.gaps[id]
		node, ofRules := strings.CutPrefix(string(id), collect.SourceRulesPrefix)
		if src := w.sources[id]; src != nil && src.State == collect.SourceForbidden || ofRules && (blind[node] || w.leftOut(node)) {
			continue
		}
		f := Finding{Code: interrupted, Object: "Source " + string(id), Since: g.From, Message: "has told nothing since " + g.From.UTC().Format(time.TimeOnly) + " UTC: " + g.Why,
			Fix: "it is tried again by itself; see whether the API server can be reached: kubectl get --raw /readyz"}
		if g.Why == collect.WhyUnreadable {
			f.Message = "what it told is not whole since " + g.From.UTC().Format(time.TimeOnly) + " UTC: " + g.Why
			f.Fix = "look at the time before that, or record anew; kconverge info FILE says what cannot be read"
			if ofRules {
				f.Node = node
			}
		} else if ofRules {
			f.Node, f.Fix = node, "see whether the agent there runs: kubectl get pods -A -o wide --field-selector spec.nodeName="+shell(node)
		}
		w.report(f)
	}
	if n := w.s.Dropped; n > 0 {
		w.report(Finding{Code: lost, Object: "Session", Message: plural(n, "event") + " were lost between sources and model", Fix: "observe fewer namespaces (-n), or give the viewer more CPU"})
	}
}

// nodeCoverage is that of any Service that nodes route, since it is the same for all;
// nil when none is routed, so that no node's rules matter.
func (w *world) nodeCoverage() *timeline.Coverage {
	for _, svc := range w.s.Services {
		if svc.RoutedByProxy && svc.Deleted.IsZero() {
			return &svc.Coverage
		}
	}
	return nil
}

// newNode is how long a node that became ready may take until its agent is heard of.
const newNode = 30 * time.Second

// nodeSettled reports that a node did not become ready only now, by its own word.
func (w *world) nodeSettled(name string) bool {
	n := w.nodes[name]
	return n == nil || n.ReadySince.IsZero() ||
		!w.heard(collect.SourceNodes).Before(n.ReadySince.Add(newNode))
}

func (w *world) leftOut(node string) bool {
	n := w.nodes[node]
	return n == nil || !n.Exists || !n.Ready
}

// agentsSay tells why no agent reads the rules.
func (w *world) agentsSay() string {
	if src := w.sources[collect.SourceAgents]; src != nil && src.Detail != "" {
		return "; " + src.Detail
	}
	return ""
}

func object(kind string, list []string) string {
	if len(list) == 1 {
		return kind + " " + list[0]
	}
	return kind + "s " + names(list)
}

// judgeClock reports a clock that nothing disciplines.
func (w *world) judgeClock(n *timeline.Node) {
	if a := n.Agent; a != nil && !a.Clock.Synchronised && n.Clock.How != "" && n.Clock.How != "one clock" && !w.leftOut(n.Name) {
		msg := "its clock is not synchronised: the times of its rules are off by up to " + age(n.Clock.Error)
		if n.Clock.OneSided {
			msg = "its clock is not synchronised: the times of its rules are the latest possible ones"
		}
		w.report(Finding{Code: clockLoose, Object: "Node " + n.Name, Node: n.Name, Message: msg, Fix: "run an NTP or PTP client on the node"})
	}
}
