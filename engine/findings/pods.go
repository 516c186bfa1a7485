package findings

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

var (
	noneReady = code(Code{
		ID: "KC104", Severity: Error, Title: "none of the selected pods is ready",
		Means: "The Service selects pods, and not one of them is ready, so that connections are refused (or go to pods that are shutting down).",
		Seen:  "Every selected pod that is not on its way out says Ready: False, and either a reason is known (KC110 to KC115 tell which) or it has been so for 30 s. Not said where publishNotReadyAddresses is set.",
		Do:    "Find out why: the finding says what is known of each pod.",
	})
	probeFails = code(Code{
		ID: "KC110", Severity: Warning, Title: "pods are unready because their readiness probe fails",
		Means: "The kubelet asks the container and does not get the answer that the probe wants, so that the pod is no endpoint.",
		Seen:  "A selected pod has been unready for 10 s, its containers are not ready either, and the kubelet's Events (Unhealthy) tell of a readiness probe that failed since.",
		Do:    "See what the probe asks and what it gets: kubectl describe pod shows both. Compare port and path with what the container serves, and the time-out with how long it takes.",
	})
	gateNotSet = code(Code{
		ID: "KC111", Severity: Warning, Title: "a readiness gate is not set",
		Means: "All containers of the pod are ready, and the pod is not: something that it names in spec.readinessGates has not said yes. That is for a controller outside the kubelet to do, often one of a load balancer.",
		Seen:  "For 30 s a selected pod has ContainersReady: True and Ready: False on a node that is ready (k8s.io/kubernetes pkg/kubelet/status, GeneratePodReadyCondition).",
		Do:    "Look at spec.readinessGates and at the controller that sets the condition; it may not run, or not know the pod.",
	})
	notScheduled = code(Code{
		ID: "KC112", Severity: Warning, Title: "pods cannot be scheduled",
		Means: "The scheduler finds no node for the pod.",
		Seen:  "For 10 s a selected pod has PodScheduled: False with the reason Unschedulable.",
		Do:    "Read the scheduler's reason in kubectl describe pod: too little CPU or memory, a taint, a node selector, a volume.",
	})
	crashLoop = code(Code{
		ID: "KC113", Severity: Warning, Title: "containers crash again and again",
		Means: "The kubelet starts the container, it ends, and the kubelet waits longer each time before it tries again.",
		Seen:  "A container of a selected pod waits with the reason CrashLoopBackOff.",
		Do:    "Read the log of the run before: kubectl logs --previous.",
	})
	cannotStart = code(Code{
		ID: "KC114", Severity: Warning, Title: "containers cannot start",
		Means: "The image cannot be pulled, or the container cannot be made: a ConfigMap or Secret is missing, a command does not exist.",
		Seen:  "For 10 s a container of a selected pod waits with a reason such as ImagePullBackOff, CreateContainerConfigError or RunContainerError.",
		Do:    "Read the kubelet's reason in kubectl describe pod.",
	})
	nodeNotReady = code(Code{
		ID: "KC115", Severity: Warning, Title: "pods are unready because their node is",
		Means: "The node's kubelet has stopped reporting, and the node lifecycle controller marked the pods on it as not ready.",
		Seen:  "A selected pod is not ready and its Node is not either.",
		Do:    "Look at the node: kubectl describe node. The pods are replaced after tolerationSeconds (5 min by default).",
	})
)

const (
	patience     = 10 * time.Second // for what is known to be wrong
	longPatience = 30 * time.Second // for what may just take its time
)

// trouble is why a pod is not ready.
type trouble struct {
	code   *Code
	detail string
	since  time.Time
	pod    *timeline.PodFacts
}

// readiness judges selected pods that are not ready.
func (j *judge) readiness() {
	if !j.told(collect.SourcePods) || len(j.svc.Spec.Selector) == 0 || j.svc.Spec.Kind == "ExternalName" {
		return
	}
	pods := j.counting()
	var by map[*Code][]trouble
	ready, unknown := 0, 0
	var youngest time.Time
	for _, p := range pods {
		if p.Pod.IsReady() {
			ready++
			continue
		}
		t := j.whyNotReady(p)
		if t.since.After(youngest) {
			youngest = t.since
		}
		if t.code == nil {
			unknown++
			continue
		}
		if by == nil {
			by = map[*Code][]trouble{}
		}
		by[t.code] = append(by[t.code], t)
	}
	var why []string
	for _, c := range []*Code{probeFails, gateNotSet, notScheduled, crashLoop, cannotStart, nodeNotReady} {
		list := by[c]
		if len(list) == 0 {
			continue
		}
		j.podTrouble(c, list, len(pods))
		why = append(why, fmt.Sprintf("%s: %d (%s)", c.Title, len(list), c.ID))
	}
	if len(pods) == 0 || ready > 0 || j.svc.Spec.PublishNotReadyAddresses {
		return
	}
	if unknown > 0 && j.heard(collect.SourcePods).Before(youngest.Add(longPatience)) {
		return
	}
	if unknown > 0 {
		why = append(why, fmt.Sprintf("no reason is known: %d", unknown))
	}
	j.add(noneReady, youngest, fmt.Sprintf("%s; %s", noneOf(len(pods), "selected pod", "selected pods", "is ready"), strings.Join(why, "; ")),
		"see "+j.kubectl("describe pods -l %s", shell(labels(j.svc.Spec.Selector))))
}

// whyNotReady gives the reason, as far as one is known and has lasted.
func (j *judge) whyNotReady(p *timeline.PodFacts) trouble {
	heard := j.heard(collect.SourcePods)
	t := trouble{pod: p, since: j.unreadySince(p)}
	lasts := func(d time.Duration) bool { return !heard.Before(t.since.Add(d)) }
	pod, node := p.Pod, j.nodes[p.Pod.Node]
	switch {
	case pod.Waiting == "CrashLoopBackOff":
		t.code, t.detail = crashLoop, plural(int(pod.Restarts), "restart")
	case !lasts(patience):
	case pod.Scheduled != nil && !pod.Scheduled.Status && pod.Scheduled.Reason == "Unschedulable":
		t.code, t.detail = notScheduled, j.lastEvent(p.UID, "FailedScheduling")
	case pod.Waiting != "":
		t.code, t.detail = cannotStart, pod.Waiting
	case node != nil && node.Exists && !node.Ready && j.told(collect.SourceNodes):
		t.code, t.detail = nodeNotReady, "node "+pod.Node
	case pod.Ready == nil:
	case pod.ContainersReady != nil && pod.ContainersReady.Status:
		if lasts(longPatience) && node != nil && node.Ready {
			t.code, t.detail = gateNotSet, ""
		}
	default:
		for _, pr := range p.Failed {
			if pr.Kind == "readiness" && !pr.Last.Before(t.since.Add(-time.Second)) {
				t.code, t.detail = probeFails, pr.Message
			}
		}
	}
	return t
}

// unreadySince is since when a pod is not ready: what it claims, else what was seen.
func (j *judge) unreadySince(p *timeline.PodFacts) time.Time {
	if r := p.Pod.Ready; r != nil && !r.Since.IsZero() {
		return r.Since
	}
	if !p.Pod.Created.IsZero() {
		return p.Pod.Created
	}
	for i := range j.svc.Pods {
		if t := &j.svc.Pods[i]; t.UID == p.UID && len(t.Changes) > 0 {
			return t.Changes[len(t.Changes)-1].At
		}
	}
	return j.s.First
}

// lastEvent is the message of the last Kubernetes Event of a reason about an object.
func (j *judge) lastEvent(uid, reason string) string {
	out := ""
	for _, m := range j.svc.Marks {
		if k, ok := m.Step.(*collect.KubeEvent); ok && k.UID == uid && k.Reason == reason {
			out = k.Message
		}
	}
	return out
}

func (j *judge) podTrouble(c *Code, list []trouble, of int) {
	var who []string
	oldest, detail := list[0].since, ""
	for _, t := range list {
		who = append(who, t.pod.Name)
		if t.since.Before(oldest) {
			oldest = t.since
		}
		if t.detail != "" {
			detail = t.detail
		}
	}
	what := map[*Code]string{
		probeFails: "not ready because the readiness probe fails", gateNotSet: "not ready although all containers are: a readiness gate is not set",
		notScheduled: "not scheduled", crashLoop: "crashing again and again", cannotStart: "unable to start a container", nodeNotReady: "on a node that is not ready",
	}[c]
	msg := fmt.Sprintf("%d of %s %s %s: %s", len(list), plural(of, "selected pod"), isAre(len(list)), what, names(who))
	if d := j.heard(collect.SourcePods).Sub(oldest); d > 0 {
		msg += ", for " + age(d)
	}
	if detail != "" {
		msg += " (" + detail + ")"
	}
	first := shell(list[0].pod.Name)
	fix := map[*Code]string{
		probeFails:   "compare what the probe asks with what the container serves: " + j.kubectl("describe pod %s", first),
		gateNotSet:   "find the controller that sets the condition: " + j.kubectl("get pod %s -o jsonpath='{.spec.readinessGates}'", first),
		notScheduled: "read the scheduler's reason: " + j.kubectl("describe pod %s", first),
		crashLoop:    "read the log of the run before: " + j.kubectl("logs --previous %s", first),
		cannotStart:  "read the kubelet's reason: " + j.kubectl("describe pod %s", first),
		nodeNotReady: "look at the node: kubectl describe node " + shell(list[0].pod.Pod.Node),
	}[c]
	j.add(c, oldest, msg, fix)
}
