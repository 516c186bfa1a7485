package timeline

import (
	"fmt"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// legacyState is the Service's v1 Endpoints object.
type legacyState struct {
	rv  uint64
	obj *collect.Endpoints
}

// onEndpoints takes a legacy Endpoints object.
func (ch *change) onEndpoints() {
	e := ch.e
	s := ch.m.service(e.Object.Namespace, e.Object.Name)
	ch.touch(s)
	s.legacy = &legacyState{rv: e.ResourceVersion, obj: e.Payload.(*collect.Endpoints)}
	s.endpoints.note = fmt.Sprintf("rev %d", e.ResourceVersion)
	if e.Op == collect.OpDeleted || e.Op == collect.OpGone {
		s.legacy, s.endpoints.note = nil, "deleted"
	}
	s.endpoints.touch()
	ch.rereadLegacy(s)
}

// rereadLegacy takes the legacy object as it is now. One that was cut at its
// capacity, or that no controller writes, is taken as it is.
func (ch *change) rereadLegacy(s *service) {
	if !s.m.ready(collect.SourceEndpoints) {
		return
	}
	had := map[EndpointID]val{}
	asIs := s.spec != nil && !s.managed()
	if s.legacy != nil {
		asIs = asIs || s.spec != nil && s.legacy.obj.Truncated
		for _, a := range s.legacy.obj.Addresses {
			uid := a.PodUID
			if uid == "" {
				uid = ManualUID
			}
			ports := slices.Clone(a.Ports)
			sortSlicePorts(ports)
			id := EndpointID{UID: uid, IP: a.IP.Unmap()}
			v := s.values.slice(s.bits(a.Ready, a.Ready, false), ports)
			had[id] = v
			s.call(id, a.PodName, "")
		}
	}
	ids := make([]EndpointID, 0, len(had))
	for id := range had {
		ids = append(ids, id)
	}
	for c := range s.endpoints.cells() {
		if _, ok := had[c.id]; !ok {
			ids = append(ids, c.id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	var pods map[EndpointID]val
	if !asIs {
		pods = s.legacyWants()
	}
	for _, id := range ids {
		if asIs {
			ch.setWant(s.endpoints, id, had[id], nil)
		} else {
			// What was taken as it was until now is the pods' again.
			ch.setWant(s.endpoints, id, pods[id], nil)
		}
		ch.setHad(s.endpoints, id, had[id])
	}
	ch.remirror(s)
}

// legacyWants are what the Service's pods want of the legacy object.
func (s *service) legacyWants() map[EndpointID]val {
	out := make(map[EndpointID]val, len(s.wants))
	for _, entries := range s.wants {
		for i := range entries {
			if entries[i].v1 != absent {
				out[entries[i].id] = entries[i].v1
			}
		}
	}
	return out
}
