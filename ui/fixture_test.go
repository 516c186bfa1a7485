package ui_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// manyServices is Web beside others that are converged, stalled, headless and
// deleted.
func manyServices() *timeline.Snapshot {
	snap := lanestest.Converging()
	for i, name := range []string{"shop/cart", "shop/checkout", "shop/search", "kube-system/kube-dns"} {
		ns, n, _ := strings.Cut(name, "/")
		spec := lanestest.Web(time.Second)
		spec.Namespace, spec.Name = ns, n
		svc := spec.Service()
		switch i {
		case 1:
			svc.State, svc.Since = timeline.Stalled, snap.Now.Add(-14*time.Second)
			svc.Differences = []timeline.Difference{{Plane: timeline.PlaneID{Kind: timeline.PlaneSlices}, Kind: "missing", Since: svc.Since}}
		case 2:
			svc.RoutedByProxy, svc.WhyNot, svc.Rules = false, "headless: clients get the addresses from DNS", timeline.NodePlanes{}
			svc.Coverage = timeline.Coverage{}
		case 3:
			svc.Deleted = snap.Now.Add(-time.Minute)
		}
		snap.Services = append(snap.Services, svc)
	}
	return snap
}

// withGap is Web with a broken source and gaps.
func withGap() *timeline.Snapshot {
	snap := lanestest.Converging()
	snap.Gaps = []timeline.Gap{
		{Source: "rules/node-2", From: lanestest.Start.Add(2 * time.Second), To: lanestest.Start.Add(2500 * time.Millisecond), Why: "12 notifications overran the socket"},
		{Source: collect.SourcePods, From: lanestest.Start.Add(9 * time.Second), Why: "watch closed by the API server"},
	}
	snap.Sources[0].State, snap.Sources[0].Detail = collect.SourceBroken, "connection refused: retrying in 1.6 s"
	snap.Dropped = 3
	return snap
}

// troubled is manyServices with much to find.
func troubled() *timeline.Snapshot {
	snap := manyServices()
	snap.Nodes[1].Proxy = &collect.ProxyState{Node: snap.Nodes[1].Name, Reachable: true, Healthy: new(bool)}
	snap.Nodes[2].SyncFailed = snap.Now.Add(-40 * time.Second)
	snap.Nodes[2].Unknown = []string{"rules of Service shop/old, which does not exist"}
	snap.Sources = append(snap.Sources, timeline.SourceStatus{ID: collect.SourceKubeEvents, State: collect.SourceForbidden, Detail: "cannot list events in namespace default"})
	snap.Service("shop", "checkout").Differences[0].Endpoint = timeline.Endpoint{Pod: "checkout-7c9d-8hk2m"}
	cart := snap.Service("shop", "cart")
	spec := *cart.Spec
	spec.Selector = map[string]string{"app": "crat"}
	cart.Spec, cart.Facts, cart.Pods = &spec, timeline.Facts{}, nil
	snap.Unselected = map[string][]timeline.PodFacts{"shop": {
		{Name: "cart-5d9f-x2x4k", UID: "1", Pod: &collect.Pod{Labels: map[string]string{"app": "cart"}}},
		{Name: "cart-5d9f-zz7qp", UID: "2", Pod: &collect.Pod{Labels: map[string]string{"app": "cart"}}},
	}}
	return snap
}

// evil is text that nobody should have let through.
var evil = []string{
	"\x1b[2J\x1b[31mred\x1b]0;owned\x07", strings.Repeat("a", 253), "\u4e2d\u6587\u540d\u5b57\u670d\u52a1\u4e2d\u6587\u540d\u5b57",
	"\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "line\nbreak\r\ttab", "\u202eoverride", "zw\u200d\u200bj\ufe0f",
	"\U0001f469\u200d\U0001f4bb\U0001f1e9\U0001f1ea", "\xff\xfe", "e\u0301\u0301\u0301",
}

// hostile is Web with names that no terminal should see.
func hostile() *timeline.Snapshot {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	for i := range svc.Pods {
		svc.Pods[i].Name = evil[i%len(evil)]
	}
	for i, p := range svc.Paths {
		p.Endpoint.Pod, p.By = evil[i%len(evil)], evil[(i+3)%len(evil)]
		p.Endpoint.Node = evil[(i+2)%len(evil)]
		for k := range p.Rules {
			p.Rules[k].Plane.Node = evil[(i+k)%len(evil)]
			p.Rules[k].Note = evil[(i+k+1)%len(evil)]
		}
		p.Slice.Note = evil[(i+1)%len(evil)]
	}
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
		for i := range p.Members {
			p.Members[i].Endpoint.Pod = evil[i%len(evil)]
		}
		for i := range p.Changes {
			p.Changes[i].Note = evil[i%len(evil)]
		}
	}
	svc.Coverage.BlindWhy = map[string]string{}
	for i, e := range evil {
		svc.Coverage.Blind = append(svc.Coverage.Blind, e)
		svc.Coverage.BlindWhy[e] = evil[(i+1)%len(evil)]
		svc.Differences = append(svc.Differences, timeline.Difference{
			Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: e}, Kind: "stale", Since: snap.Now,
			Endpoint: timeline.Endpoint{EndpointID: timeline.EndpointID{UID: e}, Pod: e, Node: evil[(i+4)%len(evil)]},
		})
	}
	for i := range svc.Marks {
		svc.Marks[i].Text = evil[i%len(evil)]
		if k, ok := svc.Marks[i].Step.(*collect.ReconcileStep); ok {
			c := *k
			c.Detail, c.Controller = evil[i%len(evil)], evil[(i+1)%len(evil)]
			svc.Marks[i].Step = &c
		}
	}
	for i, e := range evil {
		s := lanestest.Web(time.Second).Service()
		s.Name = e
		s.Spec.Selector = map[string]string{e: evil[(i+1)%len(evil)]}
		s.Spec.Ports[0].TargetName = e
		s.WhyNot = e
		s.Workloads[0].Name = e
		snap.Services = append(snap.Services, s)
		snap.Nodes = append(snap.Nodes, timeline.Node{Name: e, Zone: e, Exists: true, Ready: i%2 == 0, Rules: timeline.Blind, Unknown: []string{e}, Sync: &collect.SyncStep{Step: e, Detail: e}})
		snap.Sources = append(snap.Sources, timeline.SourceStatus{ID: collect.SourceID(e), State: collect.SourceBroken, Detail: e})
		snap.Gaps = append(snap.Gaps, timeline.Gap{Source: collect.SourceID(e), From: snap.Now, Why: e})
		snap.Marks = append(snap.Marks, timeline.Mark{At: snap.Now, Kind: "event", Text: e, Node: fmt.Sprint(e)})
	}
	snap.Session.Rules = evil[0]
	return snap
}
