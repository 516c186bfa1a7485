package lanestest

import (
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Fallback is a Service of two pods that were told to end five seconds ago and
// still serve: its slices call none ready, its rules rightly route to both.
func Fallback() *timeline.Snapshot {
	spec := Web(ms(1500))
	spec.Pods = spec.Pods[1:3]
	snap := spec.Snapshot()
	svc := snap.Services[0]
	at := snap.Now.Add(-5 * time.Second)
	for i := range svc.Pods {
		svc.Pods[i].Changes = append(svc.Pods[i].Changes, timeline.PodChange{At: at, Phase: timeline.PodTerminating})
		hop := timeline.Hop{Plane: svc.Slices.ID, Step: at, At: at.Add(ms(8)), Lag: ms(8), FromStep: ms(8), Status: timeline.StatusArrived}
		svc.Paths = append(svc.Paths, &timeline.Path{
			ID: "kept-" + svc.Pods[i].UID, Namespace: svc.Namespace, Service: svc.Name, Op: timeline.OpChange, Cause: timeline.CausePodTerminating,
			Endpoint: svc.Slices.Members[i].Endpoint, Origin: timeline.Moment{At: at}, Slice: &hop, Status: timeline.StatusArrived,
		})
	}
	for _, p := range []*timeline.Plane{svc.Slices, svc.Endpoints} {
		p.Changes = append(p.Changes, timeline.PlaneChange{At: at, Knowledge: timeline.Known})
		for i := range p.Members {
			p.Members[i].Changes = append(p.Members[i].Changes, timeline.MemberChange{At: at, Agrees: true})
		}
	}
	return snap
}
