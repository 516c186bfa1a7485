package findings

import (
	"fmt"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	internalLocal = code(Code{
		ID: "KC331", Severity: Warning, Title: "internalTrafficPolicy Local, and nodes have no endpoint",
		Means: "Connections from pods on these nodes to the cluster IP are dropped: with this policy a node sends to its own endpoints only.",
		Seen:  "internalTrafficPolicy is Local and a ready node has neither a ready endpoint of the Service nor one that serves while it terminates.",
		Do:    "Run a pod on each node (a DaemonSet), or use the policy Cluster with trafficDistribution, which falls back.",
	})
	externalLocal = code(Code{
		ID: "KC332", Severity: Info, Title: "externalTrafficPolicy Local, and nodes have no endpoint",
		Means: "These nodes drop what comes from outside. That is the policy; load balancers ask the healthCheckNodePort and leave such nodes out, clients that go to a nodePort directly do not.",
		Seen:  "externalTrafficPolicy is Local on a NodePort or LoadBalancer Service, and a ready node has no ready endpoint of it.",
		Do:    "Nothing behind a load balancer that asks the health port. For direct clients use a DaemonSet or the policy Cluster.",
	})
	localDrains = code(Code{
		ID: "KC333", Severity: Error, Title: "externalTrafficPolicy Local drops while a node drains",
		Means: "All endpoints of the node are on their way out. Until load balancers have noticed, connections from outside still come there, and the node drops them: the endpoints no longer serve, or its kube-proxy does not use endpoints that terminate (before 1.26; kubernetes/kubernetes 85643).",
		Seen:  "externalTrafficPolicy is Local on a NodePort or LoadBalancer Service, every endpoint on the node terminates, and for 3 s none of them serves, or the node's rules lack one that does.",
		Do:    "Keep endpoints serving while they terminate (a preStop as long as the load balancer takes to notice), and roll out so that a new pod is there before the old one goes.",
	})
	zoneWithout = code(Code{
		ID: "KC334", Severity: Info, Title: "hints leave a zone without endpoints",
		Means: "The endpoints carry hints, and none is meant for this zone: its nodes ignore the hints and send to all zones.",
		Seen:  "Every ready endpoint has zone hints and none names the zone of a ready node (k8s.io/kubernetes pkg/proxy/topology.go topologyModeFromHints).",
		Do:    "Nothing, if cross-zone traffic is fine. Else run endpoints in the zone (topologySpreadConstraints).",
	})
	onDeadNode = code(Code{
		ID: "KC336", Severity: Error, Title: "endpoints of a node that is not ready are still used",
		Means: "The node's kubelet no longer reports, and the slices still say that endpoints on it are ready, so that other nodes send connections there (kubernetes/kubernetes 97112).",
		Seen:  "A Node has been not ready for 10 s and a slice has ready endpoints on it, not because of publishNotReadyAddresses.",
		Do:    "Look at the node. The node lifecycle controller marks its pods; if it does not, see whether it runs.",
	})
)

// onNode is what a Service has on one node.
type onNode struct {
	ready, serving, terminating int
}

func (j *judge) perNode() map[string]onNode {
	out := map[string]onNode{}
	for _, sl := range j.svc.Facts.Slices {
		for _, e := range sl.Slice.Endpoints {
			n := out[e.Node]
			switch {
			case e.Terminating && !j.svc.Spec.PublishNotReadyAddresses:
				n.terminating++
				if e.Serving {
					n.serving++
				}
			case e.Ready:
				n.ready++
			}
			out[e.Node] = n
		}
	}
	return out
}

// local judges the policies that keep traffic on its node.
func (j *judge) local() {
	spec := j.svc.Spec
	external := spec.ExternalPolicy == "Local" && (spec.Kind == "NodePort" || spec.Kind == "LoadBalancer" || len(spec.ExternalIPs) > 0)
	if !j.svc.RoutedByProxy || spec.InternalPolicy != "Local" && !external || !j.told(collect.SourceNodes, collect.SourceEndpointSlices) {
		return
	}
	per := j.perNode()
	if external {
		j.drains(per)
	}
	if j.endpoints() == 0 || !j.quiet(collect.SourceEndpointSlices) {
		return
	}
	var without, noReady []string
	for i := range j.s.Nodes {
		n := &j.s.Nodes[i]
		if !n.Exists || !n.Ready {
			continue
		}
		if x := per[n.Name]; x.ready == 0 {
			noReady = append(noReady, n.Name)
			if x.serving == 0 {
				without = append(without, n.Name)
			}
		}
	}
	if spec.InternalPolicy == "Local" && len(without) > 0 {
		j.add(internalLocal, time.Time{}, fmt.Sprintf("internalTrafficPolicy is Local and %s no endpoint: connections from there are dropped: %s", nodesHave(len(without)), names(without)),
			"run a pod on each node, or set the policy Cluster: "+j.kubectl("edit service %s", shell(j.svc.Name)))
	}
	if external && len(noReady) > 0 {
		j.add(externalLocal, time.Time{}, fmt.Sprintf("externalTrafficPolicy is Local and %s no ready endpoint: %s", nodesHave(len(noReady)), names(noReady)),
			"nothing to do behind a load balancer that asks the health port")
	}
}

func nodesHave(n int) string {
	return plural(n, "node") + map[bool]string{true: " has", false: " have"}[n == 1]
}

// drains judges nodes whose endpoints are all on their way out.
func (j *judge) drains(per map[string]onNode) {
	var drops []string
	var since time.Time
	for i := range j.s.Nodes {
		n := &j.s.Nodes[i]
		x := per[n.Name]
		if !n.Exists || !n.Ready || x.ready > 0 || x.terminating == 0 {
			continue
		}
		from := time.Time{}
		if x.serving == 0 {
			from = j.lastUnserving(n.Name)
		}
		for k := range j.svc.Differences {
			d := &j.svc.Differences[k]
			if d.Plane.Kind == timeline.PlaneRules && d.Plane.Node == n.Name && d.Kind == "missing" && d.Endpoint.Node == n.Name && slices.Contains(j.svc.Coverage.Seen, n.Name) {
				if j.heardOf(d.Plane).Sub(d.Since) >= stoppedFor {
					from = d.Since
				}
			}
		}
		if from.IsZero() || j.heard(collect.SourceEndpointSlices).Sub(from) < stoppedFor {
			continue
		}
		drops = append(drops, n.Name)
		if since.IsZero() || from.Before(since) {
			since = from
		}
	}
	if len(drops) > 0 {
		j.report(Finding{Code: localDrains, Object: "Service " + j.name(), Since: since, Namespace: j.svc.Namespace, Service: j.svc.Name, Node: drops[0],
			Message: fmt.Sprintf("externalTrafficPolicy is Local and all endpoints on %s terminate: connections from outside are dropped there", names(drops)),
			Fix:     "have a new pod ready on the node before the old one goes, and a preStop as long as the load balancer takes to notice"})
	}
}

// lastUnserving is since when the last of a node's endpoints does not serve, as far as
// their pods were seen; zero when that is not known.
func (j *judge) lastUnserving(node string) time.Time {
	var out time.Time
	for i := range j.svc.Facts.Pods {
		p := &j.svc.Facts.Pods[i]
		if p.Pod.Node != node {
			continue
		}
		if r := p.Pod.Ready; r == nil || r.Status || r.Since.IsZero() {
			return time.Time{}
		} else if r.Since.After(out) {
			out = r.Since
		}
	}
	return out
}

// zones judges hints.
func (j *judge) zones() {
	if !j.svc.RoutedByProxy || !j.quiet(collect.SourceNodes, collect.SourceEndpointSlices) {
		return
	}
	var hinted map[string]bool
	ready := 0
	for _, sl := range j.svc.Facts.Slices {
		for _, e := range sl.Slice.Endpoints {
			if !e.Ready {
				continue
			}
			if ready++; len(e.HintZones) == 0 {
				return // then nobody goes by hints
			}
			if hinted == nil {
				hinted = map[string]bool{}
			}
			for _, z := range e.HintZones {
				hinted[z] = true
			}
		}
	}
	var without []string
	for i := range j.s.Nodes {
		if n := &j.s.Nodes[i]; n.Exists && n.Ready && n.Zone != "" && !hinted[n.Zone] {
			without = append(without, n.Zone)
		}
	}
	if ready > 0 && len(without) > 0 {
		what := "the hints of its endpoints leave"
		if d := j.svc.Spec.TrafficDistribution; d != "" {
			what = "trafficDistribution " + d + " leaves"
		}
		j.add(zoneWithout, time.Time{}, fmt.Sprintf("%s a zone without endpoints: %s; nodes there send to all zones", what, names(without)),
			"run endpoints in that zone (topologySpreadConstraints), if traffic should stay in it")
	}
}

// deadNodes judges endpoints on nodes that do not report.
func (j *judge) deadNodes() {
	if j.svc.Spec.PublishNotReadyAddresses || !j.told(collect.SourceNodes, collect.SourceEndpointSlices) {
		return
	}
	heard := j.heard(collect.SourceNodes, collect.SourceEndpointSlices)
	if !slices.ContainsFunc(j.s.Nodes, func(n timeline.Node) bool { return n.Exists && !n.Ready }) {
		return
	}
	per := j.perNode()
	for i := range j.s.Nodes {
		n := &j.s.Nodes[i]
		if !n.Exists || n.Ready || n.ReadySince.IsZero() || per[n.Name].ready == 0 {
			continue
		}
		since := n.ReadySince
		if heard.Sub(since) < patience {
			continue
		}
		j.report(Finding{Code: onDeadNode, Object: "Service " + j.name(), Since: since, Namespace: j.svc.Namespace, Service: j.svc.Name, Node: n.Name,
			Message: fmt.Sprintf("node %s has not been ready for %s, and the slices still have %s on it", n.Name, age(heard.Sub(since)), plural(per[n.Name].ready, "ready endpoint")),
			Fix:     "look at the node: kubectl describe node " + shell(n.Name)})
	}
}
