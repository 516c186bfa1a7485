package findings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Finding is one thing that was recognised.
type Finding struct {
	Code *Code
	// Object is what it is about: "Service default/web", "Node n1", "Source kube/pods".
	Object string
	// Message says it with names and numbers, Fix in one sentence what to do.
	Message, Fix string
	// Since is since when it is so; zero when that is not known.
	Since time.Time

	// Where to look: any may be empty.
	Namespace, Service, Node, Path string
}

// Find judges a snapshot: the Services that keep chooses (nil for all), the nodes and
// the sources. The same snapshot gives the same list: the worst first, then the oldest,
// those without a known start last.
func Find(s *timeline.Snapshot, keep func(*timeline.Service) bool) []Finding {
	w := newWorld(s)
	for _, svc := range s.Services {
		if keep == nil || keep(svc) {
			w.kept = append(w.kept, svc)
		}
	}
	for _, svc := range w.kept {
		if svc.Deleted.IsZero() {
			w.judge(svc)
		}
	}
	w.judgeNodes()
	w.judgeSources()
	slices.SortStableFunc(w.found, compare)
	return w.found
}

// Count gives how many findings have the severities of a Service's row.
func Count(list []Finding) (errors, warnings int) {
	for i := range list {
		switch list[i].Code.Severity {
		case Error:
			errors++
		case Warning:
			warnings++
		}
	}
	return errors, warnings
}

func compare(a, b Finding) int {
	since := func(f *Finding) int64 {
		if f.Since.IsZero() {
			return 1<<63 - 1
		}
		return f.Since.UnixNano()
	}
	return cmp.Or(a.Code.Severity.rank()-b.Code.Severity.rank(), cmp.Compare(since(&a), since(&b)),
		cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code.ID, b.Code.ID), cmp.Compare(a.Message, b.Message))
}

// world is a snapshot being judged.
type world struct {
	s       *timeline.Snapshot
	kept    []*timeline.Service
	sources map[collect.SourceID]*timeline.SourceStatus
	gaps    map[collect.SourceID]*timeline.Gap // open ones
	nodes   map[string]*timeline.Node
	// everyPod lists all pods of a namespace, made when it is asked for; each with
	// whether a Service selects it.
	everyPod  map[string][]anyPod
	lateNodes map[string]*lateNode
	found     []Finding
}

type anyPod struct {
	*timeline.PodFacts
	selected bool
}

func newWorld(s *timeline.Snapshot) *world {
	w := &world{s: s, sources: map[collect.SourceID]*timeline.SourceStatus{}, gaps: map[collect.SourceID]*timeline.Gap{},
		nodes: map[string]*timeline.Node{}, everyPod: map[string][]anyPod{}}
	for i := range s.Sources {
		w.sources[s.Sources[i].ID] = &s.Sources[i]
	}
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.To.IsZero() {
			w.gaps[g.Source] = g
		}
	}
	for i := range s.Nodes {
		w.nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	return w
}

// told reports that the sources have each told all there is, and go on telling.
func (w *world) told(ids ...collect.SourceID) bool {
	for _, id := range ids {
		src := w.sources[id]
		if src == nil || src.State != collect.SourceSynced || w.gaps[id] != nil {
			return false
		}
	}
	return true
}

// heard is until when the sources have told everything; zero when one has not.
func (w *world) heard(ids ...collect.SourceID) time.Time {
	var out time.Time
	for i, id := range ids {
		src := w.sources[id]
		if src == nil || src.Vouched.IsZero() {
			return time.Time{}
		}
		if i == 0 || src.Vouched.Before(out) {
			out = src.Vouched
		}
	}
	return out
}

// heardOf is heard for what a plane has and should have.
func (w *world) heardOf(p timeline.PlaneID) time.Time {
	switch p.Kind {
	case timeline.PlaneRules:
		return w.heard(collect.SourceServices, collect.SourceEndpointSlices, collect.RulesSource(p.Node))
	case timeline.PlaneEndpoints:
		return w.heard(collect.SourceServices, collect.SourcePods, collect.SourceEndpoints)
	}
	return w.heard(collect.SourceServices, collect.SourcePods, collect.SourceEndpointSlices)
}

// judge is one Service being judged.
type judge struct {
	*world
	svc *timeline.Service
	// changed is when the Service or its pods last changed, as far as that was seen.
	changed time.Time
}

// settle is how long what just changed is left alone.
const settle = 10 * time.Second

// recent is how far back what is over still counts.
const recent = 15 * time.Minute

var serviceRules = []func(*judge){
	(*judge).selection, (*judge).readiness, (*judge).ports, (*judge).hostNetwork,
	(*judge).noSelector, (*judge).otherSlices, (*judge).legacy, (*judge).duplicates, (*judge).slicesBehind, (*judge).writes, (*judge).takenOver,
	(*judge).stoppedButRouted, (*judge).mostNodes, (*judge).unexpected,
	(*judge).local, (*judge).zones, (*judge).deadNodes,
	(*judge).preStop, (*judge).flapping, (*judge).minReady, (*judge).together, (*judge).probePeriod, (*judge).official, (*judge).wrongPod,
	(*judge).design,
}

func (w *world) judge(svc *timeline.Service) {
	if !w.told(collect.SourceServices) || svc.Spec == nil || svc.Slices == nil {
		return
	}
	j := &judge{world: w, svc: svc, changed: svc.Spec.Created}
	later := func(t time.Time) {
		if t.After(j.changed) {
			j.changed = t
		}
	}
	for _, m := range svc.Marks {
		if m.Kind == "action" {
			later(m.At)
		}
	}
	var told map[string]bool // pods that say when they were made
	for i := range svc.Facts.Pods {
		p := &svc.Facts.Pods[i]
		if later(p.Pod.Created); !p.Pod.Created.IsZero() {
			if told == nil {
				told = map[string]bool{}
			}
			told[p.UID] = true
		}
	}
	for i := range svc.Pods {
		first := told[svc.Pods[i].UID]
		for _, c := range svc.Pods[i].Changes {
			// What is seen first may have been so for long.
			if !c.Claimed && !first && c.At.After(w.s.First) {
				later(c.At)
			}
			first = first && c.Claimed
		}
	}
	for _, rule := range serviceRules {
		rule(j)
	}
}

// quiet reports that nothing about the Service or its pods has changed for long
// enough, by what the sources tell.
func (j *judge) quiet(ids ...collect.SourceID) bool {
	return j.told(ids...) && !j.heard(ids...).Before(j.changed.Add(settle))
}

func (j *judge) name() string { return j.svc.Namespace + "/" + j.svc.Name }

// add reports something about the Service.
func (j *judge) add(c *Code, since time.Time, message, fix string) {
	j.report(Finding{Code: c, Object: "Service " + j.name(), Message: message, Fix: fix, Since: since, Namespace: j.svc.Namespace, Service: j.svc.Name})
}

func (w *world) report(f Finding) {
	f.Object, f.Message, f.Fix = collect.Plain(f.Object), collect.Plain(f.Message), collect.Plain(f.Fix)
	if !f.Since.IsZero() {
		f.Since = f.Since.UTC()
	}
	w.found = append(w.found, f)
}

// kubectl is a command line on the Service's namespace.
func (j *judge) kubectl(format string, args ...any) string {
	return "kubectl -n " + shell(j.svc.Namespace) + " " + fmt.Sprintf(format, args...)
}
