package lanestest

import (
	"net/netip"
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Never, as a lag, means not yet.
const Never = time.Duration(-1 << 62)

// Pod is one pod's life and how the planes followed it.
type Pod struct {
	Name, Node, IP string
	// Moments; zero means not yet. Base pods were there before the first
	// event.
	Base                                      bool
	Created, Started, Ready, Term, Stop, Gone time.Time
	Add, Remove                               Lags
}

// Lags are how long after the root event each plane followed; node lags count
// from the root too.
type Lags struct {
	Slice, Endpoints time.Duration
	Nodes            map[string]time.Duration
}

// Spec is a Service and everything that happened to it.
type Spec struct {
	Namespace, Name string
	First, Now      time.Time
	Watermark       time.Time
	Nodes           []string
	Pods            []Pod
	Actions         []timeline.Mark
	Reconciles      []time.Time
	Gaps            []timeline.Gap
	Blind           []string // nodes that nothing observes
	// Pasts are what is claimed of planes from before First.
	Pasts map[timeline.PlaneID]*timeline.Past
}

// Snapshot derives the Snapshot at Now.
func (s Spec) Snapshot() *timeline.Snapshot {
	svc := s.Service()
	snap := &timeline.Snapshot{
		Session: collect.Session{Kind: "lab", Name: "lab", Version: "v1.37.2", Rules: "kernel (" + strconv.Itoa(len(s.Nodes)) + " netns)", Started: s.First},
		Seq:     1000, Now: s.Now, Watermark: s.Watermark, First: s.First,
		Services:           []*timeline.Service{svc},
		Gaps:               s.Gaps,
		Reconciler:         &collect.ReconcileStep{Controller: "endpointslice", Step: "wrote", Queue: 0},
		MaxResourceVersion: 1842,
		Workloads: map[string]timeline.Workload{
			"Deployment/default/web": {Kind: "Deployment", Name: "web", Replicas: 5, Settled: true, ResourceVersion: 1840},
		},
	}
	for i, n := range s.Nodes {
		snap.Nodes = append(snap.Nodes, timeline.Node{
			Name: n, Zone: "zone-" + string(rune('a'+i%3)), Ready: true, Exists: true, Rules: timeline.Known, Generation: uint32(77 + i), Vouched: s.Watermark,
			Sync: &collect.SyncStep{Node: n, Step: "committed", Generation: uint32(77 + i), Took: 4 * time.Millisecond},
		})
	}
	for _, n := range s.Blind {
		for i := range snap.Nodes {
			if snap.Nodes[i].Name == n {
				snap.Nodes[i].Rules = timeline.Blind
			}
		}
	}
	for _, id := range []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceEndpoints, collect.SourceNodes} {
		snap.Sources = append(snap.Sources, timeline.SourceStatus{ID: id, State: collect.SourceSynced, Vouched: s.Watermark, Needed: true})
	}
	for _, n := range s.Nodes {
		snap.Sources = append(snap.Sources, timeline.SourceStatus{ID: collect.RulesSource(n), State: collect.SourceSynced, Vouched: s.Watermark, Needed: true})
	}
	return snap
}

// Service derives the Service.
func (s Spec) Service() *timeline.Service {
	svc := &timeline.Service{
		Namespace: s.Namespace, Name: s.Name, UID: "svc-" + s.Name, RoutedByProxy: true,
		Spec: &collect.Service{
			Kind: "ClusterIP", Selector: map[string]string{"app": s.Name},
			Ports:      []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}},
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.11")},
		},
		Marks: append([]timeline.Mark(nil), s.Actions...),
		SliceList: []timeline.Slice{
			{Name: s.Name + "-bx4wq", ResourceVersion: 1841, Family: collect.IPv4, Endpoints: 5},
		},
		Workloads: []timeline.Workload{{Kind: "Deployment", Name: s.Name, Replicas: 5, Settled: true}},
	}
	for _, t := range s.Reconciles {
		svc.Marks = append(svc.Marks, timeline.Mark{At: t, Kind: "reconcile", Text: "wrote " + s.Name + "-bx4wq", Step: &collect.ReconcileStep{Controller: "endpointslice", Step: "wrote", Took: 6 * time.Millisecond, Writes: 1}})
	}
	sort.SliceStable(svc.Marks, func(i, j int) bool { return svc.Marks[i].At.Before(svc.Marks[j].At) })

	for i, p := range s.Pods {
		svc.Pods = append(svc.Pods, p.track(i, s.First))
		for _, op := range []timeline.Op{timeline.OpAdd, timeline.OpRemove} {
			if path := s.path(i, op); path != nil {
				svc.Paths = append(svc.Paths, path)
			}
		}
	}
	sort.SliceStable(svc.Paths, func(i, j int) bool { return svc.Paths[i].Origin.At.Before(svc.Paths[j].Origin.At) })
	svc.Wanted = s.wanted()
	svc.Slices = s.plane(timeline.PlaneID{Kind: timeline.PlaneSlices}, func(l Lags) (time.Duration, time.Duration) { return 0, l.Slice })
	svc.Endpoints = s.plane(timeline.PlaneID{Kind: timeline.PlaneEndpoints}, func(l Lags) (time.Duration, time.Duration) { return 0, l.Endpoints })
	for _, n := range s.Nodes {
		p := s.plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: n}, func(l Lags) (time.Duration, time.Duration) { return l.Slice, l.Nodes[n] })
		for _, b := range s.Blind {
			if b == n {
				p.Changes = []timeline.PlaneChange{{At: s.First, Knowledge: timeline.Blind}}
				p.Members, p.Arrivals = nil, nil
			}
		}
		svc.Rules = timeline.PlanesOf(append(svc.Rules.All(), p)...)
	}
	for id, past := range s.Pasts {
		svc.Plane(id).Past = past
	}
	svc.Episodes = s.episodes(svc)
	svc.Facts = s.facts(svc)
	s.state(svc)
	return svc
}

func (p Pod) uid() string { return "uid-" + p.Name }

func (p Pod) track(i int, first time.Time) timeline.PodTrack {
	t := timeline.PodTrack{Name: p.Name, UID: p.uid(), Node: p.Node, IPs: []netip.Addr{netip.MustParseAddr(p.IP)}, Owner: "ReplicaSet/web-7d9c"}
	add := func(at time.Time, ph timeline.PodPhase, claimed bool) {
		if !at.IsZero() {
			t.Changes = append(t.Changes, timeline.PodChange{At: at, Phase: ph, Claimed: claimed})
		}
	}
	if p.Base {
		if !p.Ready.IsZero() {
			add(p.Ready, timeline.PodReady, true)
		}
		add(first, timeline.PodReady, false)
	} else {
		add(p.Created, timeline.PodPending, false)
		add(p.Started, timeline.PodStarting, false)
		add(p.Ready, timeline.PodReady, false)
	}
	add(p.Term, timeline.PodTerminating, false)
	add(p.Stop, timeline.PodStopped, false)
	add(p.Gone, timeline.PodGone, false)
	return t
}

func (s Spec) endpoint(i int) timeline.Endpoint {
	p := s.Pods[i]
	ip := netip.MustParseAddr(p.IP)
	return timeline.Endpoint{EndpointID: timeline.EndpointID{UID: p.uid(), IP: ip}, Pod: p.Name, Node: p.Node, Family: collect.FamilyOf(ip), Ports: []int32{8080}}
}

// origin is the root event of a pod's addition or removal.
func (s Spec) origin(i int, op timeline.Op) (time.Time, Lags, bool) {
	p := s.Pods[i]
	if op == timeline.OpAdd {
		return p.Ready, p.Add, !p.Base && !p.Ready.IsZero() && !p.Ready.After(s.Now)
	}
	return p.Term, p.Remove, !p.Term.IsZero() && !p.Term.After(s.Now)
}

func (s Spec) path(i int, op timeline.Op) *timeline.Path {
	at, lags, ok := s.origin(i, op)
	if !ok {
		return nil
	}
	p := s.Pods[i]
	path := &timeline.Path{
		ID: string(op) + "-" + p.Name, Namespace: s.Namespace, Service: s.Name, Op: op, Cause: timeline.CausePodReady, By: "scale",
		Endpoint: s.endpoint(i), Origin: timeline.Moment{At: at, Claimed: at.Truncate(time.Second), ClaimedPrecision: time.Second}, Status: timeline.StatusArrived,
	}
	m := func(t time.Time) timeline.Moment {
		if t.IsZero() {
			return timeline.Moment{}
		}
		return timeline.Moment{At: t, Claimed: t.Truncate(time.Second), ClaimedPrecision: time.Second}
	}
	if op == timeline.OpAdd {
		sched := time.Time{}
		if !p.Created.IsZero() {
			sched = p.Created.Add(31 * time.Millisecond)
		}
		path.Before = timeline.Before{Created: m(p.Created), Scheduled: m(sched), Started: m(p.Started), Ready: m(p.Ready)}
	} else {
		path.Cause = timeline.CausePodTerminating
		path.After = timeline.After{Terminating: m(p.Term), Stopped: m(p.Stop), Gone: m(p.Gone)}
	}
	hop := func(id timeline.PlaneID, from, lag time.Duration, note string) timeline.Hop {
		h := timeline.Hop{Plane: id, Step: at.Add(from), Status: timeline.StatusOpen, Error: 200 * time.Microsecond}
		if lag != Never && !at.Add(lag).After(s.Now) {
			h.At, h.Lag, h.FromStep, h.Status, h.Note = at.Add(lag), lag, lag-from, timeline.StatusArrived, note
		}
		return h
	}
	sl := hop(timeline.PlaneID{Kind: timeline.PlaneSlices}, 0, lags.Slice, "web-bx4wq rev 1841")
	ep := hop(timeline.PlaneID{Kind: timeline.PlaneEndpoints}, 0, lags.Endpoints, "rev 1842")
	path.Slice, path.Endpoints = &sl, &ep
	if sl.Status == timeline.StatusOpen {
		path.Status = timeline.StatusOpen
	}
	last, all := time.Time{}, true
	for k, n := range s.Nodes {
		h := hop(timeline.PlaneID{Kind: timeline.PlaneRules, Node: n}, lags.Slice, lags.Nodes[n], "generation "+strconv.Itoa(77+k))
		h.Generation = uint32(77 + k)
		if h.Status == timeline.StatusOpen {
			path.Status, all = timeline.StatusOpen, false
		} else {
			if h.At.After(last) {
				last = h.At
			}
			h.Trigger = at.Truncate(time.Second) // as the trigger times are
			official := h.At.Sub(h.Trigger)
			h.Official = &official
		}
		path.Rules = append(path.Rules, h)
	}
	if op == timeline.OpRemove {
		if !all {
			last = s.Now
		}
		d := last.Sub(p.Term)
		path.Risk.FromTermination, path.Risk.Growing = &d, !all
		if !p.Stop.IsZero() && last.After(p.Stop) {
			e := last.Sub(p.Stop)
			path.Risk.FromExit = &e
		}
	}
	return path
}

func (s Spec) wanted() []timeline.Count {
	var at []time.Time
	for i := range s.Pods {
		for _, op := range []timeline.Op{timeline.OpAdd, timeline.OpRemove} {
			if t, _, ok := s.origin(i, op); ok {
				at = append(at, t)
			}
		}
	}
	at = append(at, s.First)
	sort.Slice(at, func(i, j int) bool { return at[i].Before(at[j]) })
	var out []timeline.Count
	for _, t := range at {
		n := 0
		for i, p := range s.Pods {
			add, _, added := s.origin(i, timeline.OpAdd)
			rem, _, removed := s.origin(i, timeline.OpRemove)
			in := p.Base || added && !add.After(t)
			if removed && !rem.After(t) {
				in = false
			}
			if in {
				n++
			}
		}
		if k := len(out); k > 0 && out[k-1].At.Equal(t) {
			out[k-1].N = n
			continue
		}
		out = append(out, timeline.Count{At: t, N: n})
	}
	return out
}
