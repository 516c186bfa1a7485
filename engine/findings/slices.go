package findings

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Managers of slices (the label endpointslice.kubernetes.io/managed-by).
const (
	controllerName = "endpointslice-controller.k8s.io"
	mirroringName  = "endpointslicemirroring-controller.k8s.io"
)

var (
	noEndpoints = code(Code{
		ID: "KC201", Severity: Warning, Title: "a Service without selector has no endpoints",
		Means: "A Service without selector gets its endpoints from slices or Endpoints that somebody else writes, and there are none.",
		Seen:  "spec.selector is empty, the type is not ExternalName, and for 10 s no EndpointSlice of the Service has an endpoint.",
		Do:    "Write an EndpointSlice with the label kubernetes.io/service-name, or give the Service a selector.",
	})
	byHand = code(Code{
		ID: "KC202", Severity: Info, Title: "the endpoints are made by hand",
		Means: "The Service has no selector, so that nothing adds, removes or checks its endpoints but whoever wrote them. A selector that is added later takes them away.",
		Seen:  "spec.selector is empty and there are slices with endpoints. The Service default/kubernetes, which the API server keeps, is left out.",
		Do:    "Nothing, if that is meant.",
	})
	besideThePods = code(Code{
		ID: "KC203", Severity: Warning, Title: "slices of another manager add endpoints beside the pods",
		Means: "The Service has a selector, and there is also an EndpointSlice that the EndpointSlice controller does not manage: nodes route to its endpoints as well, and nothing takes them out when they stop answering.",
		Seen:  "An EndpointSlice of the Service with endpoints whose label endpointslice.kubernetes.io/managed-by names neither of Kubernetes' controllers.",
		Do:    "Delete the slice if it is a leftover: the finding names it.",
	})
	legacyCut = code(Code{
		ID: "KC204", Severity: Warning, Title: "the Endpoints object is cut at 1,000 addresses",
		Means: "The legacy Endpoints object holds 1,000 addresses at most, the others are left out. Whoever still reads Endpoints misses them; kube-proxy reads slices and has all.",
		Seen:  "The annotation endpoints.kubernetes.io/over-capacity: truncated.",
		Do:    "Let what reads Endpoints read EndpointSlices.",
	})
	legacyApart = code(Code{
		ID: "KC205", Severity: Warning, Title: "the Endpoints object says something else than the pods",
		Means: "The legacy Endpoints object is not as the pods want it, which is another controller's work than the slices (kubernetes/kubernetes 125638, 127429). kube-proxy does not read it; other programs may.",
		Seen:  "An address in the Endpoints differs from what the pods want for longer than the budget of slices (5 s).",
		Do:    "Let what reads Endpoints read EndpointSlices; to have the object written anew, delete it: the controller makes it again.",
	})
	duplicateSlices = code(Code{
		ID: "KC206", Severity: Warning, Title: "endpoints are in two slices",
		Means: "The same endpoint with the same ports is in two EndpointSlices. kube-proxy counts it once, other readers may count it twice (kubernetes/kubernetes 100033: the controller's cache was behind its own create).",
		Seen:  "Two slices of one manager have an address, pod and port set in common, and no slice of the Service has changed for 5 s.",
		Do:    "If it stays, delete one of the slices: the controller writes what is missing.",
	})
	slicesLate = code(Code{
		ID: "KC207", Severity: Error, Title: "the EndpointSlices are behind the pods",
		Means: "The slices do not say what the pods do: ready pods get no connections, or pods that are gone still do, on all nodes. The EndpointSlice controller does not run, is overloaded, is throttled, or cannot write.",
		Seen:  "An endpoint in the slices differs from what Service and pods want for longer than the budget of slices (5 s).",
		Do:    "Look at kube-controller-manager: does it run, is its queue long, is it throttled by the API server (kubernetes/kubernetes 108077, 47597)? Events of the Service tell of writes that failed.",
	})
	writeConflicts = code(Code{
		ID: "KC209", Severity: Warning, Title: "writes of slices fail and are tried again",
		Means: "The EndpointSlice controller could not write: another write came first, or the API server refused. It tries again after 1 s, then 2 s and so on, and the trigger time is lost, so that the official metric hears nothing of it.",
		Seen:  "An Event FailedToUpdateEndpointSlices about the Service, or a step of the reconciler that conflicted, within 15 min.",
		Do:    "Once is nothing (kubernetes/kubernetes 92928). If it goes on, look for another program that writes the Service's slices, and at the reason in the Event.",
	})
	writesGivenUp = code(Code{
		ID: "KC210", Severity: Error, Title: "the controller gave up on the Service",
		Means: "After too many failed tries the reconciler dropped the Service from its queue: its slices stay as they are until something changes again, or the next resync.",
		Seen:  "A step \"dropped\" of the reconciler about the Service, within 15 min.",
		Do:    "Remove the cause of the failures, then touch the Service so that it is queued again.",
	})
	handMadeGone = code(Code{
		ID: "KC211", Severity: Warning, Title: "hand-made endpoints went when the Service got a selector",
		Means: "A Service without selector got one: from then on the controllers write its endpoints, and those that were made by hand are no longer published.",
		Seen:  "A removal of an address that no pod stands behind, caused by a change of the selector, within 15 min.",
		Do:    "If the addresses should stay, put them into a slice of your own with another endpointslice.kubernetes.io/managed-by.",
	})
)

// endpoints counts those in the slices.
func (j *judge) endpoints() (n int) {
	for _, sl := range j.svc.Facts.Slices {
		n += len(sl.Slice.Endpoints)
	}
	return n
}

// noSelector judges a Service that no pods speak for.
func (j *judge) noSelector() {
	if len(j.svc.Spec.Selector) > 0 || j.svc.Spec.Kind == "ExternalName" || j.name() == "default/kubernetes" || !j.quiet(collect.SourceEndpointSlices) {
		return
	}
	if n := j.endpoints(); n > 0 {
		var in []string
		for _, sl := range j.svc.Facts.Slices {
			in = append(in, sl.Name)
		}
		j.add(byHand, time.Time{}, fmt.Sprintf("no selector: %s made by hand (or by another program) in %s", plural(n, "endpoint"), names(in)),
			"nothing to do if that is meant; nothing takes out an address that stops answering")
		return
	}
	if c, ok := j.svc.Slices.At(j.s.Now); ok && j.heardOf(j.svc.Slices.ID).Sub(c.At) < settle && !c.Baseline {
		return
	}
	j.add(noEndpoints, j.since(), "no selector and no endpoints: connections are refused",
		"write an EndpointSlice with the label kubernetes.io/service-name="+shell(j.svc.Name)+", or set a selector: "+j.kubectl("edit service %s", shell(j.svc.Name)))
}

// otherSlices judges slices beside the controller's.
func (j *judge) otherSlices() {
	if len(j.svc.Spec.Selector) == 0 || !j.told(collect.SourceEndpointSlices) {
		return
	}
	for _, sl := range j.svc.Facts.Slices {
		if m := sl.Slice.ManagedBy; m != controllerName && m != mirroringName && len(sl.Slice.Endpoints) > 0 {
			who := "that says nobody manages it"
			if m != "" {
				who = "managed by " + m
			}
			j.add(besideThePods, sl.Slice.Created, fmt.Sprintf("slice %s, %s, adds %s beside the selected pods", sl.Name, who, plural(len(sl.Slice.Endpoints), "endpoint")),
				"if it is a leftover: "+j.kubectl("delete endpointslice %s", shell(sl.Name)))
		}
	}
}

// legacy judges the Endpoints object.
func (j *judge) legacy() {
	v1 := j.svc.Facts.Legacy
	if v1 == nil || !j.told(collect.SourceEndpoints) {
		return
	}
	if v1.Truncated {
		j.add(legacyCut, time.Time{}, fmt.Sprintf("the Endpoints object has %s and says that it was cut; the slices have %d", addresses(len(v1.Addresses)), j.endpoints()),
			"let what reads Endpoints read EndpointSlices: "+j.kubectl("get endpointslices -l kubernetes.io/service-name=%s", shell(j.svc.Name)))
	}
	if t := j.overdue(func(d *timeline.Difference) bool { return d.Plane.Kind == timeline.PlaneEndpoints }); t.n > 0 && j.told(collect.SourcePods) {
		j.add(legacyApart, t.since, "the Endpoints object "+t.text()+"; the slices are another controller's",
			"to have it written anew: "+j.kubectl("delete endpoints %s", shell(j.svc.Name)))
	}
}

// overdue are differences that have outgrown their budget, as far as is known.
type overdue struct {
	n, missing, stale, unexpected, changed int
	since                                  time.Time
	age                                    time.Duration
	nodes                                  map[string]bool
	who                                    []string
}

func (j *judge) overdue(of func(*timeline.Difference) bool) overdue {
	var t overdue
	for i := range j.svc.Differences {
		d := &j.svc.Differences[i]
		if !of(d) {
			continue
		}
		budget := cmp.Or(j.s.Budgets.Slices, 5*time.Second)
		if d.Plane.Kind == timeline.PlaneRules {
			budget = cmp.Or(j.s.Budgets.Rules, 10*time.Second)
			if !slices.Contains(j.svc.Coverage.Seen, d.Plane.Node) {
				continue
			}
		}
		a := j.heardOf(d.Plane).Sub(d.Since)
		if a <= budget {
			continue
		}
		t.n++
		switch d.Kind {
		case "missing":
			t.missing++
		case "stale":
			t.stale++
		case "unexpected":
			t.unexpected++
		default:
			t.changed++
		}
		if t.since.IsZero() || d.Since.Before(t.since) {
			t.since = d.Since
		}
		t.age = max(t.age, a)
		if t.nodes == nil {
			t.nodes = map[string]bool{}
		}
		t.nodes[d.Plane.Node] = true
		t.who = append(t.who, endpointName(&d.Endpoint))
	}
	return t
}

// text tells what is different: "lacks 2 endpoints and has 1 too many (a, b), for 34 s".
func (t *overdue) text() string {
	var out []string
	if t.missing > 0 {
		out = append(out, "lacks "+plural(t.missing, "endpoint"))
	}
	if n := t.stale + t.unexpected; n > 0 {
		out = append(out, fmt.Sprintf("has %d too many", n))
	}
	if t.changed > 0 {
		out = append(out, fmt.Sprintf("has %d otherwise", t.changed))
	}
	return fmt.Sprintf("%s (%s), for %s", strings.Join(out, " and "), names(t.who), age(t.age))
}

func endpointName(e *timeline.Endpoint) string {
	switch {
	case e.Pod != "":
		return e.Pod
	case e.IP.IsValid():
		return e.IP.String()
	}
	return "the frontends"
}

// slicesBehind judges differences in the slices.
func (j *judge) slicesBehind() {
	if !j.told(collect.SourcePods, collect.SourceEndpointSlices) {
		return
	}
	t := j.overdue(func(d *timeline.Difference) bool { return d.Plane.Kind == timeline.PlaneSlices })
	if t.n == 0 {
		return
	}
	text := strings.NewReplacer("lacks", "lack", "has", "have").Replace(t.text())
	j.add(slicesLate, t.since, "the EndpointSlices "+text+", by the word of Service and pods",
		"see whether kube-controller-manager runs and can write: "+j.kubectl("get events --field-selector involvedObject.name=%s", shell(j.svc.Name)))
}

// duplicates judges endpoints that are in two slices.
func (j *judge) duplicates() {
	if !j.told(collect.SourceEndpointSlices) || len(j.svc.Facts.Slices) < 2 {
		return
	}
	changed := time.Time{}
	if c, ok := j.svc.Slices.At(j.s.Now); ok {
		changed = c.At
		if c.Baseline { // by the objects' own words
			changed = time.Time{}
			for _, sl := range j.svc.Facts.Slices {
				if w := sl.Slice.Written; w.After(changed) {
					changed = w
				}
			}
		}
	}
	if j.heard(collect.SourceEndpointSlices).Sub(changed) < cmp.Or(j.s.Budgets.Slices, 5*time.Second) {
		return
	}
	type key struct {
		manager string
		family  collect.Family
		ip      netip.Addr
		uid     string
		ports   string
	}
	in := map[key]string{}
	n := 0
	var both []string
	for _, sl := range j.svc.Facts.Slices {
		ports := slices.Clone(sl.Slice.Ports)
		slices.SortFunc(ports, func(a, b collect.SlicePort) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
		})
		for _, e := range sl.Slice.Endpoints {
			k := key{sl.Slice.ManagedBy, sl.Slice.Family, e.Address, e.PodUID, fmt.Sprint(ports)}
			if other, ok := in[k]; ok && other != sl.Name {
				n++
				both = append(both, other, sl.Name)
				continue
			}
			in[k] = sl.Name
		}
	}
	if n > 0 {
		last := both[len(both)-1]
		j.add(duplicateSlices, changed, fmt.Sprintf("%s %s in more than one slice: %s", plural(n, "endpoint"), isAre(n), names(both)),
			"if it stays: "+j.kubectl("delete endpointslice %s", shell(last))+"; the controller writes what is missing")
	}
}

// writes judges what went wrong when slices were written.
func (j *judge) writes() {
	n, given := 0, 0
	var last, dropped time.Time
	why, whyDropped := "", ""
	for _, m := range j.svc.Marks {
		if j.s.Now.Sub(m.At) > recent {
			continue
		}
		switch k := m.Step.(type) {
		case *collect.KubeEvent:
			if k.Reason == "FailedToUpdateEndpointSlices" {
				n += max(1, int(k.Count))
				last, why = m.At, k.Message
			}
		case *collect.ReconcileStep:
			switch k.Step {
			case "conflict":
				n++
				last, why = m.At, k.Detail
			case "dropped":
				given++
				dropped, whyDropped = m.At, k.Detail
			}
		}
	}
	if given > 0 {
		j.add(writesGivenUp, dropped, fmt.Sprintf("the controller dropped the Service from its queue %s: %s", times(given), whyDropped),
			"remove the cause, then have it queued again: "+j.kubectl("annotate service %s example.com/queued=again --overwrite", shell(j.svc.Name)))
	}
	if n > 0 {
		msg := "a write of its slices failed: " + why
		if n > 1 {
			msg = fmt.Sprintf("%d writes of its slices failed, the last one because: %s", n, why)
		}
		j.add(writeConflicts, last, msg,
			"once is nothing; if it goes on, find out who else writes them: "+j.kubectl("get endpointslices -l kubernetes.io/service-name=%s --show-managed-fields -o yaml", shell(j.svc.Name)))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// takenOver judges hand-made addresses that a selector took away.
func (j *judge) takenOver() {
	var ips []string
	var at time.Time
	for _, p := range j.recentPaths() {
		if p.Op == timeline.OpRemove && p.Cause == timeline.CauseSelectorChanged && p.Endpoint.UID == timeline.ManualUID {
			ips = append(ips, p.Endpoint.IP.String())
			at = p.Origin.At
		}
	}
	if len(ips) > 0 && len(j.svc.Spec.Selector) > 0 {
		j.add(handMadeGone, at, fmt.Sprintf("%s made by hand went when the Service got the selector %s: %s", plural(len(ips), "endpoint"), labels(j.svc.Spec.Selector), names(ips)),
			"to keep such addresses, put them into a slice of your own with its own endpointslice.kubernetes.io/managed-by label")
	}
}

// recentPaths are those that began within the time that still counts.
func (j *judge) recentPaths() []*timeline.Path {
	return j.svc.PathsFrom(j.s.Now.Add(-recent), j.s.Now)
}

func addresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}
