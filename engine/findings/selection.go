package findings

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	selectorMistyped = code(Code{
		ID: "KC101", Severity: Error, Title: "the selector and the pods' labels differ by a typing mistake",
		Means: "The Service selects no pod, while pods in its namespace have labels that differ in one key or value, and by a character or two. Connections to the Service are refused.",
		Seen:  "No pod in the namespace has all labels of spec.selector; at least one pod that no other Service selects has all but one, and that one is nearly the same (or the same value stands under another key).",
		Do:    "Change the selector or the labels in the pod template, whichever is wrong. The finding names both.",
	})
	selectsNothing = code(Code{
		ID: "KC102", Severity: Warning, Title: "the Service selects no pod",
		Means: "No pod in the Service's namespace has all the labels of its selector, so it has no endpoints and connections are refused.",
		Seen:  "Pods have been listed and none matches spec.selector for 10 s, and no workload known to make such pods is scaled to 0.",
		Do:    "Compare the selector with the labels that the pods have; look in other namespaces too, since a Service selects in its own only.",
	})
	scaledToZero = code(Code{
		ID: "KC103", Severity: Info, Title: "what the Service selects is scaled to 0",
		Means: "The Service has no endpoints because its workload has no replicas.",
		Seen:  "No pod matches, and each workload whose template would is told to have 0 replicas.",
		Do:    "Scale the workload up, or leave it: this is what was asked for.",
	})
	portMissing = code(Code{
		ID: "KC120", Severity: Error, Title: "no selected pod has the named target port",
		Means: "The Service's port targets a container port by name, and no container of the selected pods has a port of that name and protocol. The slices then have the endpoints without that port, and nothing can be routed to it.",
		Seen:  "spec.ports[].targetPort is a name that is in no selected pod's spec.containers[].ports.",
		Do:    "Name the container port, or target one that exists; the finding lists those.",
	})
	portMissingSome = code(Code{
		ID: "KC121", Severity: Warning, Title: "some selected pods lack the named target port",
		Means: "Some of the pods have the port and others do not, so that the others get no connections on it although they are ready.",
		Seen:  "spec.ports[].targetPort is a name that some selected pods have and some lack, while no rollout is under way.",
		Do:    "Give all pods that the Service selects the port, or select only those that have it.",
	})
	onNodeNetwork = code(Code{
		ID: "KC122", Severity: Info, Title: "endpoints are pods on their node's network",
		Means: "Pods with hostNetwork have the node's address: two of them on one node share it, network policies see the node, and the port must be free on the node.",
		Seen:  "A selected pod has spec.hostNetwork.",
		Do:    "Nothing, if that is meant. Else take hostNetwork out of the pod template.",
	})
	badAddress = code(Code{
		ID: "KC123", Severity: Error, Title: "a pod has an address that cannot be an endpoint",
		Means: "A selected pod says that its address is a loopback, link-local, multicast or unspecified one. The API refuses slices and Endpoints with such addresses, so the controller can write none with that pod in it, and other pods that should be added or removed wait too.",
		Seen:  "status.podIPs of a selected pod (k8s.io/kubernetes pkg/apis/core/validation, ValidateEndpointIP).",
		Do:    "Correct the node's address (kubelet --node-ip) or take the pod out of the selection.",
	})
)

// selection judges what the Service selects.
func (j *judge) selection() {
	spec := j.svc.Spec
	if len(spec.Selector) == 0 || spec.Kind == "ExternalName" || j.svc.Facts.Unselectable || len(j.svc.Facts.Pods) > 0 || !j.quiet(collect.SourcePods) {
		return
	}
	if !j.workloadsKnown() {
		return // one may be scaled to 0
	}
	zero := len(j.svc.Workloads) > 0
	for _, w := range j.svc.Workloads {
		zero = zero && w.Replicas == 0
	}
	if zero {
		w := j.svc.Workloads[0]
		j.add(scaledToZero, j.since(), fmt.Sprintf("no endpoints: %s %s has 0 replicas", w.Kind, w.Name),
			"to start it: "+j.kubectl("scale %s/%s --replicas=1", strings.ToLower(shell(w.Kind)), shell(w.Name)))
		return
	}
	sel := labels(spec.Selector)
	near, how := j.nearest(false)
	if len(near) > 0 {
		j.add(selectorMistyped, j.since(), fmt.Sprintf("selects %s, which no pod has; %s %s %s: %s", sel, plural(len(near), "pod"), map[bool]string{true: "has", false: "have"}[len(near) == 1], how, names(near)),
			"correct the selector with "+j.kubectl("edit service %s", shell(j.svc.Name))+", or the labels in the pods' template")
		return
	}
	msg := fmt.Sprintf("selects %s, and %s", sel, noneOf(len(j.podsOf()), "pod in namespace "+j.svc.Namespace, "pods in namespace "+j.svc.Namespace, "has that"))
	if near, how := j.nearest(true); len(near) > 0 {
		msg += fmt.Sprintf("; nearest is %s, which another Service selects (%s)", how, plural(len(near), "pod"))
	}
	j.add(selectsNothing, j.since(), msg,
		"compare with "+j.kubectl("get pods --show-labels"))
}

// workloadsKnown reports that no source of workloads is still about to tell what there
// is; one that may not be read never is.
func (w *world) workloadsKnown() bool {
	for _, id := range []collect.SourceID{collect.SourceDeployments, collect.SourceReplicaSets, collect.SourceStatefulSets, collect.SourceDaemonSets} {
		if src := w.sources[id]; src != nil && (src.State == "" || src.State == collect.SourceStarting || src.State == collect.SourceListing) {
			return false
		}
	}
	return true
}

// since is when what is true of the Service's pods now began, as far as that was seen.
func (j *judge) since() time.Time { return j.changed }

// podsOf are all pods of the Service's namespace.
func (j *judge) podsOf() []anyPod {
	if list, ok := j.everyPod[j.svc.Namespace]; ok {
		return list
	}
	var list []anyPod
	seen := map[string]bool{}
	for _, o := range j.s.Services {
		if o.Namespace != j.svc.Namespace {
			continue
		}
		for i := range o.Facts.Pods {
			if p := &o.Facts.Pods[i]; !seen[p.UID] {
				seen[p.UID] = true
				list = append(list, anyPod{p, true})
			}
		}
	}
	for i := range j.s.Unselected[j.svc.Namespace] {
		list = append(list, anyPod{&j.s.Unselected[j.svc.Namespace][i], false})
	}
	j.everyPod[j.svc.Namespace] = list
	return list
}

// nearest names the pods that the selector was probably meant for, and says which
// label of the first they have instead. selected chooses among the pods that other
// Services select, which may well be meant for those.
func (j *judge) nearest(selected bool) (pods []string, how string) {
	for _, p := range j.podsOf() {
		if p.selected != selected || p.Pod.Terminal() || p.Pod.Terminating() {
			continue
		}
		instead := nearly(j.svc.Spec.Selector, p.Pod.Labels)
		if instead == "" || how != "" && how != instead {
			continue
		}
		how = instead
		pods = append(pods, p.Name)
	}
	return pods, how
}

// nameKeys are labels that by custom hold an application's name.
var nameKeys = map[string]bool{"app": true, "name": true, "k8s-app": true, "run": true, "component": true, "app.kubernetes.io/name": true, "app.kubernetes.io/instance": true, "app.kubernetes.io/component": true}

// nearly gives the label that a pod has in place of the only one that the selector
// asks for and the pod lacks, when it was probably meant; else "".
func nearly(selector, have map[string]string) string {
	key := ""
	for k, v := range selector {
		if have[k] == v {
			continue
		}
		if key != "" {
			return ""
		}
		key = k
	}
	if key == "" {
		return ""
	}
	want := selector[key]
	if v, ok := have[key]; ok {
		if mistyped(want, v) {
			return key + "=" + v
		}
		return ""
	}
	best := ""
	for k, v := range have {
		if _, used := selector[k]; used || v != want {
			continue
		}
		if mistyped(k, key) || strings.HasSuffix(k, "/"+key) || strings.HasSuffix(key, "/"+k) || nameKeys[k] && nameKeys[key] {
			if x := k + "=" + v; best == "" || x < best {
				best = x
			}
		}
	}
	return best
}

// counting are the selected pods that may be endpoints for long: neither on their way
// out nor ended.
func (j *judge) counting() []*timeline.PodFacts {
	var out []*timeline.PodFacts
	for i := range j.svc.Facts.Pods {
		if p := &j.svc.Facts.Pods[i]; !p.Pod.Terminating() && !p.Pod.Terminal() {
			out = append(out, p)
		}
	}
	return out
}

// settled reports that the Service's workloads are done, as far as they are seen.
func (j *judge) settled() bool {
	for _, w := range j.svc.Workloads {
		if !w.Settled {
			return false
		}
	}
	return true
}

// ports judges named target ports.
func (j *judge) ports() {
	pods := j.counting()
	if len(pods) == 0 || len(j.svc.Spec.Selector) == 0 || !j.quiet(collect.SourcePods) {
		return
	}
	for _, port := range j.svc.Spec.Ports {
		if port.TargetName == "" {
			continue
		}
		var lack, other []string
		for _, p := range pods {
			has := false
			for _, x := range p.Pod.Ports {
				has = has || x.Name == port.TargetName && x.Protocol == port.Protocol
				other = append(other, fmt.Sprintf("%s (%d/%s)", x.Name, x.Port, x.Protocol))
			}
			if !has {
				lack = append(lack, p.Name)
			}
		}
		what := fmt.Sprintf("port %d targets the container port named %q (%s)", port.Port, port.TargetName, port.Protocol)
		switch {
		case len(lack) == len(pods):
			there := "they name no port"
			if len(other) > 0 {
				there = "they name " + names(other)
			}
			j.add(portMissing, j.since(), fmt.Sprintf("%s, and %s; %s", what, noneOf(len(pods), "selected pod", "selected pods", "has it"), there),
				"set targetPort to a port that the pods have: "+j.kubectl("edit service %s", shell(j.svc.Name)))
		case len(lack) > 0 && j.settled():
			j.add(portMissingSome, j.since(), fmt.Sprintf("%s, which %d of %s %s: %s", what, len(lack), plural(len(pods), "selected pod"), verb(len(lack), "lack"), names(lack)),
				"name that port in the template of all pods that the Service selects, or narrow the selector")
		}
	}
}

// hostNetwork judges the addresses that pods have.
func (j *judge) hostNetwork() {
	if !j.told(collect.SourcePods) || len(j.svc.Spec.Selector) == 0 {
		return
	}
	var host []string
	for _, p := range j.counting() {
		if p.Pod.HostNetwork {
			host = append(host, p.Name)
		}
		for _, ip := range p.Pod.IPs {
			if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() {
				j.add(badAddress, p.Pod.Created, fmt.Sprintf("pod %s says that its address is %s, which the API refuses in slices: no slice with it can be written", p.Name, ip),
					"correct the address of node "+p.Pod.Node+" (kubelet --node-ip), or delete the pod: "+j.kubectl("delete pod %s", shell(p.Name)))
			}
		}
	}
	if len(host) > 0 {
		j.add(onNodeNetwork, time.Time{}, fmt.Sprintf("%d of %s %s on the node's network (hostNetwork): %s", len(host), plural(len(j.counting()), "selected pod"), isAre(len(host)), names(host)),
			"nothing to do if that is meant; else take hostNetwork out of the pods' template")
	}
}
