package lanestest

import (
	"maps"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// facts are what the pods that exist at the end say.
func (s Spec) facts(svc *timeline.Service) timeline.Facts {
	var f timeline.Facts
	for i := range svc.Pods {
		t := &svc.Pods[i]
		now, ok := t.At(s.Now)
		if !ok || now.Phase == timeline.PodGone {
			continue
		}
		p := &collect.Pod{Labels: maps.Clone(svc.Spec.Selector), Node: t.Node, IPs: t.IPs, Ready: &collect.Condition{Status: now.Phase == timeline.PodReady}}
		if now.Phase == timeline.PodTerminating || now.Phase == timeline.PodStopped {
			p.Deletion = now.At
		}
		f.Pods = append(f.Pods, timeline.PodFacts{Name: t.Name, UID: t.UID, Pod: p})
	}
	return f
}
