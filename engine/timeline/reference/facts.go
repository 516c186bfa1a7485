package reference

import (
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// pod, service and so on are objects as the last event about them told.
type pod struct {
	name, uid string
	*collect.Pod
}

type service struct {
	uid    string
	exists bool
	*collect.Service
}

type epSlice struct {
	name string
	*collect.EndpointSlice
}

type node struct {
	exists bool
	*collect.Node
}

// facts is everything that a list of events tells, each thing by its last word.
// Objects are keyed "namespace/name".
type facts struct {
	pods      map[string]pod
	services  map[string]service
	slices    map[string]epSlice
	endpoints map[string]*collect.Endpoints
	nodes     map[string]node
	rules     map[string]map[collect.RulePortKey]collect.RulePort // of the nodes whose rules were ever dumped

	session collect.Session
	sources map[collect.SourceID]*source
}

// source is how a source of events is.
type source struct {
	state   collect.SourceStateName
	listed  bool // its first list is complete
	vouched time.Time
	gap     bool      // one is open
	lost    time.Time // since when, if a Gap told
}

// look goes through all events from the first.
func look(events []collect.Event) *facts {
	f := &facts{
		pods: map[string]pod{}, services: map[string]service{}, slices: map[string]epSlice{}, endpoints: map[string]*collect.Endpoints{},
		nodes: map[string]node{}, rules: map[string]map[collect.RulePortKey]collect.RulePort{}, sources: map[collect.SourceID]*source{},
	}
	for i := range events {
		f.hear(&events[i])
	}
	return f
}

func gone(e *collect.Event) bool { return e.Op == collect.OpDeleted || e.Op == collect.OpGone }

func (f *facts) hear(e *collect.Event) {
	key := e.Object.Namespace + "/" + e.Object.Name
	switch p := e.Payload.(type) {
	case *collect.Advance:
		return
	case *collect.Session:
		f.session = *p
		return
	case *collect.Pod:
		if was, ok := f.pods[key]; gone(e) && ok && was.uid == e.UID {
			delete(f.pods, key)
		} else if !gone(e) {
			f.pods[key] = pod{e.Object.Name, e.UID, p}
		}
	case *collect.Service:
		if was, ok := f.services[key]; gone(e) && ok && was.uid == e.UID {
			f.services[key] = service{e.UID, false, p}
		} else if !gone(e) {
			f.services[key] = service{e.UID, true, p}
		}
	case *collect.EndpointSlice:
		if f.slices[key] = (epSlice{e.Object.Name, p}); gone(e) {
			delete(f.slices, key)
		}
	case *collect.Endpoints:
		if f.endpoints[key] = p; gone(e) {
			delete(f.endpoints, key)
		}
	case *collect.Node:
		f.nodes[e.Object.Name] = node{!gone(e), p}
	case *collect.Rules:
		f.hearRules(p)
	}
	f.hearSource(e)
}

func (f *facts) hearRules(r *collect.Rules) {
	was := f.rules[r.Node]
	now := map[collect.RulePortKey]collect.RulePort{}
	if !r.Baseline {
		for k, p := range was {
			now[k] = p
		}
	}
	for _, p := range r.Ports {
		if now[p.RulePortKey] = p; p.Empty() {
			delete(now, p.RulePortKey)
		}
	}
	f.rules[r.Node] = now
}

// hearSource takes what an event says of the source it comes from.
func (f *facts) hearSource(e *collect.Event) {
	s := f.sources[e.Source]
	if s == nil {
		s = &source{}
		f.sources[e.Source] = s
	}
	kube := strings.HasPrefix(string(e.Source), "kube/")
	until := e.At
	switch p := e.Payload.(type) {
	case *collect.SourceState:
		s.state = p.State
		switch p.State {
		case collect.SourceSynced:
			s.listed, s.gap = true, false
		case collect.SourceBroken:
			if !s.gap {
				s.lost = s.vouched
			}
			s.gap = s.gap || s.listed || !kube
			return
		}
	case *collect.Gap:
		if !s.gap || p.From.Before(s.lost) {
			s.lost = p.From
		}
		s.gap = p.To.IsZero()
		return
	case *collect.Vouch:
		until = p.Until
	case *collect.Rules:
		s.gap = s.gap && !p.Baseline
	}
	// Between a break and the end of the next list a watch vouches for nothing.
	if (!kube || s.state == collect.SourceSynced) && until.After(s.vouched) {
		s.vouched = until
	}
}

// listed reports that the sources have each completed their first list.
func (f *facts) listed(ids ...collect.SourceID) bool {
	return !slices.ContainsFunc(ids, func(id collect.SourceID) bool { return f.sources[id] == nil || !f.sources[id].listed })
}

// nodeGone reports that there is no such node.
func (f *facts) nodeGone(name string) bool {
	return name != "" && f.listed(collect.SourceNodes) && !f.nodes[name].exists
}

// leftOut reports that a node is gone or not ready.
func (f *facts) leftOut(name string) bool {
	n := f.nodes[name]
	return f.listed(collect.SourceNodes) && (!n.exists || n.Ready == nil || !n.Ready.Status)
}

// slicesOf lists the slices of a Service by name.
func (f *facts) slicesOf(svc string) (out []epSlice) {
	ns, name, _ := strings.Cut(svc, "/")
	for key, sl := range f.slices {
		if strings.HasPrefix(key, ns+"/") && sl.Service == name {
			out = append(out, sl)
		}
	}
	slices.SortFunc(out, func(a, b epSlice) int { return strings.Compare(a.name, b.name) })
	return out
}
