package reference

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Path is what happened to one endpoint because of one root event.
type Path struct {
	Root              string // "r" and the resourceVersion of the root event
	Endpoint          Endpoint
	Cause             string
	Origin, NotBefore time.Time
	Hops              map[string]*Hop // by plane
}

func (p *Path) hop(plane string, h *Hop) { p.Hops[plane] = h }

// story finds the paths of one Service.
type story struct {
	h     *History
	svc   string
	paths []*Path
	slice map[Endpoint]*track
}

// Paths lists the paths of a Service's endpoints that the events so far tell of.
// Frontends are left out.
func (h *History) Paths(svc string) []*Path {
	st := &story{h: h, svc: svc, slice: map[Endpoint]*track{}}
	ids, planes := h.everSeen(svc)
	for _, id := range ids {
		t := &track{h: h, svc: svc, plane: Slices, id: id}
		st.slice[id] = t
		for k := 1; k < len(h.moments); k++ {
			t.next(k, st.rootInSlices(k, id))
		}
	}
	nodes := map[string][]*track{}
	for _, plane := range planes {
		for _, id := range ids {
			nodes[plane] = append(nodes[plane], &track{h: h, svc: svc, plane: plane, id: id})
		}
	}
	for k := 1; k < len(h.moments); k++ {
		for _, plane := range planes {
			for _, t := range nodes[plane] {
				t.next(k, st.rootInRules(k, t.id))
			}
		}
	}
	return slices.DeleteFunc(st.paths, func(p *Path) bool { return len(p.Hops) == 0 })
}

// everSeen lists the endpoints and the nodes' planes of a Service in all moments.
func (h *History) everSeen(svc string) (ids []Endpoint, nodes []string) {
	for _, m := range h.moments {
		for plane, p := range m.planes[svc] {
			if strings.HasPrefix(plane, onNode) && !slices.Contains(nodes, plane) {
				nodes = append(nodes, plane)
			}
			for _, id := range p.endpoints() {
				if (id != Endpoint{}) && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	slices.SortFunc(ids, compare)
	slices.Sort(nodes)
	return ids, nodes
}

// path finds or makes the path of an endpoint that stems from the event of moment
// k.
func (st *story) path(k int, id Endpoint, cause string) *Path {
	e := st.h.moments[k].e
	return st.stemming(fmt.Sprint("r", e.ResourceVersion), id, cause, e.At, st.h.notBefore(k))
}

func (st *story) stemming(root string, id Endpoint, cause string, origin, notBefore time.Time) *Path {
	for _, p := range st.paths {
		if p.Root == root && p.Endpoint == id {
			return p
		}
	}
	p := &Path{Root: root, Endpoint: id, Cause: cause, Origin: origin, NotBefore: notBefore, Hops: map[string]*Hop{}}
	st.paths = append(st.paths, p)
	return p
}

// rootInSlices gives the path of a step in the slices at moment k: pods, nodes and
// Services move what is wanted of them. What slices publish that is wanted as it is
// makes no steps.
func (st *story) rootInSlices(k int, id Endpoint) func(int) *Path {
	if st.h.baseline(k) || st.asIs(k, id) {
		return nil
	}
	cause := ""
	switch p := st.h.moments[k].e.Payload.(type) {
	case *collect.Pod:
		cause = st.ofPod(k, id, p)
	case *collect.Service:
		cause = st.ofService(k, &id)
	case *collect.Node:
		cause = "node-gone"
		if st.h.moments[k].facts.nodes[st.h.moments[k].e.Object.Name].exists {
			cause = "node-added"
		}
	default:
		return nil
	}
	return func(int) *Path { return st.path(k, id, cause) }
}

// asIs reports that what is wanted of the endpoint is what slices publish.
func (st *story) asIs(k int, id Endpoint) bool {
	return st.h.moments[k].facts.published(st.svc)[id].asIs
}

// ofPod tells what about a pod moved what is wanted of one of its endpoints.
func (st *story) ofPod(k int, id Endpoint, now *collect.Pod) string {
	key := st.h.moments[k].e.Object.Namespace + "/" + st.h.moments[k].e.Object.Name
	before, after := st.h.moments[k-1].facts, st.h.moments[k].facts
	old, there := before.pods[key]
	if _, still := after.pods[key]; !still || there && old.uid == id.UID && after.pods[key].uid != id.UID {
		return "pod-gone"
	}
	if !there || old.uid != id.UID {
		if now.IsReady() {
			return "pod-ready"
		}
		return "pod-changed"
	}
	s := after.services[st.svc]
	_, wanted := st.h.at(k-1, st.svc, Slices).Want[id]
	_, wants := st.h.at(k, st.svc, Slices).Want[id]
	switch {
	case s.selects(old.Labels) != s.selects(now.Labels) && !reflect.DeepEqual(old.Labels, now.Labels):
		return "relabelled"
	case now.Terminal() && !old.Terminal():
		return "pod-terminal"
	case now.Terminating() && !old.Terminating():
		return "pod-terminating"
	case len(old.IPs) > 0 && !slices.Equal(old.IPs, now.IPs) && wanted != wants:
		return "address-changed"
	case now.IsReady() && !old.IsReady():
		return "pod-ready"
	case !now.IsReady() && old.IsReady():
		return "pod-unready"
	}
	return "pod-changed"
}

// ofService tells what about a Service moved what is wanted, of an endpoint in the
// slices or, without one, of the rules.
func (st *story) ofService(k int, id *Endpoint) string {
	old, now := st.h.moments[k-1].facts.services[st.svc], st.h.moments[k].facts.services[st.svc]
	switch {
	case !old.exists && now.exists, old.uid != now.uid:
		return "service-created"
	case !now.exists:
		return "service-deleted"
	}
	if id != nil {
		if !old.hasSelector() && now.hasSelector() {
			if _, wants := st.h.at(k, st.svc, Slices).Want[*id]; !wants {
				return "selector-changed" // it was wanted because it was there
			}
		}
		for _, p := range st.h.moments[k].facts.pods {
			if p.uid == id.UID && old.selects(p.Labels) != now.selects(p.Labels) {
				return "selector-changed"
			}
		}
	}
	switch {
	case !slices.Equal(old.Ports, now.Ports):
		return "ports-changed"
	case old.InternalPolicy != now.InternalPolicy || old.ExternalPolicy != now.ExternalPolicy:
		return "policy-changed"
	case old.PublishNotReadyAddresses != now.PublishNotReadyAddresses:
		return "publish-not-ready-changed"
	case old.SessionAffinity != now.SessionAffinity || old.AffinityTimeout != now.AffinityTimeout:
		return "affinity-changed"
	}
	return "service-changed"
}

// rootInRules gives the path of a step in a node's rules at moment k.
func (st *story) rootInRules(k int, id Endpoint) func(int) *Path {
	if st.h.baseline(k) {
		return nil
	}
	switch st.h.moments[k].e.Payload.(type) {
	case *collect.Service:
		return func(int) *Path { return st.path(k, id, st.ofService(k, nil)) }
	case *collect.Node:
		return func(int) *Path { return st.path(k, id, "hints-changed") }
	case *collect.EndpointSlice:
		return func(dir int) *Path { return st.behindSlice(k, id, dir) }
	}
	return nil
}

// behindSlice says what is behind a step that an event of a slice made: the step in
// the slices that the event satisfied, if need be one that was told of later; where
// the endpoint itself did not move, the step of another one that the event
// satisfied; where a controller that is behind writes what is wanted no more or what
// is half of what is wanted, that which it follows; else the event itself.
func (st *story) behindSlice(k int, id Endpoint, dir int) *Path {
	t := st.slice[id]
	var own []*step
	for _, s := range t.steps {
		if s.came == k && (s.end == k || s.k > k) {
			own = append(own, s)
		}
	}
	if s := prefer(own, dir); s != nil {
		return s.path
	}
	if t.had(k) == t.had(k-1) {
		cause := "hints-changed"
		if t.had(k).Fallback {
			cause = "fallback"
		}
		var all []*step
		for _, other := range st.slice {
			for _, s := range other.steps {
				if s.came == k && s.end == k {
					all = append(all, s)
				}
			}
		}
		// The last one to go is who made the difference.
		slices.SortFunc(all, func(a, b *step) int {
			x, y := st.h.moments[a.k].e, st.h.moments[b.k].e
			return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ResourceVersion, y.ResourceVersion), compare(a.id, b.id))
		})
		if s := prefer(all, -dir); s != nil {
			return st.stemming(s.path.Root, id, cause, s.path.Origin, s.path.NotBefore)
		}
		return st.path(k, id, cause)
	}
	for _, s := range slices.Backward(t.open(k)) {
		if s.dir == dir {
			return s.path
		}
	}
	// Who wrote what was wanted had heard of everything until then, and nobody is
	// behind for ever.
	heard := k
	for heard > 0 && (t.had(heard) == t.had(heard-1) || t.had(heard) != t.want(heard)) {
		heard--
	}
	for _, s := range slices.Backward(t.steps) {
		if s.end > heard && s.end <= k && s.hop.Status == "superseded" && s.to == t.had(k) && st.h.moments[k].e.At.Sub(st.h.moments[s.end].e.At) <= Behind {
			return s.path
		}
	}
	return st.path(k, id, "slice-edited")
}

// Behind is for how long a controller may be behind with what is wanted no more.
const Behind = 5 * time.Second

// prefer picks the latest step in the direction, else the latest.
func prefer(steps []*step, dir int) *step {
	for _, s := range slices.Backward(steps) {
		if s.dir == dir {
			return s
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return steps[len(steps)-1]
}
