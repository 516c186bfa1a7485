package timeline

import (
	"slices"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// mirrors reports that the mirroring controller copies this Service's Endpoints
// into slices, and that they are known: the Service has no selector
// (k8s.io/kubernetes pkg/controller/endpointslicemirroring, syncEndpoints).
func (s *service) mirrors() bool {
	return s.exists && s.spec != nil && len(s.spec.Selector) == 0 && s.m.ready(collect.SourceServices, collect.SourceEndpoints)
}

// mirrorWants are the endpoints that mirrored slices should hold.
func (s *service) mirrorWants() map[EndpointID]val {
	if !s.mirrors() || s.legacy == nil {
		return nil
	}
	out := map[EndpointID]val{}
	for _, e := range desired.Mirrored(s.legacy.obj) {
		uid := e.PodUID
		if uid == "" {
			uid = ManualUID
		}
		id := EndpointID{UID: uid, IP: e.Address}
		ports := slices.Clone(e.Ports)
		sortSlicePorts(ports)
		out[id] = s.values.slice(s.bits(e.Ready, e.Serving, e.Terminating), ports)
		s.call(id, e.PodName, "")
	}
	return out
}

// mirrorCut reports that a subset is over what is mirrored: which of its
// addresses are, is not for us to say, so the slices are taken as they are.
func (s *service) mirrorCut() bool {
	return s.legacy != nil && len(s.legacy.obj.Addresses) > desired.MaxMirrored
}

// remirror brings what is wanted of mirrored slices in line with the Endpoints.
// Endpoints that slices of other managers publish too are those managers'
// business, and those that selected pods want are the pods'.
func (ch *change) remirror(s *service) {
	if !s.m.ready(collect.SourceServices, collect.SourceEndpoints) {
		return
	}
	wants := s.mirrorWants()
	if s.mirrorCut() {
		wants = nil
	}
	ids := make([]EndpointID, 0, len(wants)+len(s.mirror))
	for id := range wants {
		ids = append(ids, id)
	}
	for id := range s.mirror {
		if _, ok := wants[id]; !ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	taken := map[EndpointID]bool{}
	for _, pub := range s.publishedBy() {
		if pub.foreign {
			taken[pub.id] = true
		}
	}
	for _, entries := range s.wants {
		for i := range entries {
			taken[entries[i].id] = true
		}
	}
	slices.SortFunc(ids, compareIDs)
	s.mirror = wants
	for _, id := range ids {
		if taken[id] {
			continue
		}
		var made *path
		var pathOf func(direction) *path
		if !ch.baseline {
			pathOf = func(d direction) *path {
				made = s.pathFor(ch.rootHere(), id, ch.mirrorCause(), opOf(d), ch.moment())
				return made
			}
		}
		ch.setWant(s.slices, id, wants[id], pathOf)
		if made != nil {
			ch.adoptEdited(s, made)
		}
	}
	if s.spec != nil && !s.managed() {
		s.lanesFromSlices()
		s.recordWanted(ch.at)
	}
}

// mirrorCause tells why this event moves what mirrored slices should hold.
func (ch *change) mirrorCause() Cause {
	if ch.serviceCause != "" {
		return ch.serviceCause
	}
	return CauseEndpointsEdited
}
